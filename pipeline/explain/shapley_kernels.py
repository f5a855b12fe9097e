"""Inner loops of sampled Shapley values; see :mod:`fluxplain.evaluate.compiled`."""

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Places


@compiled
def put_chains(
    rows: Floats, columns: Places, stored: Floats, starts: Places, orders: Places
) -> None:
    """Reveal the players of each stored observation one by one, in an order of its own.

    ``rows`` has the observation in each row, shape (stored · (players - 1), columns): the inputs
    between those without and with all players. ``columns`` has the column of each feature,
    ``stored`` the shape (stored, features). The features of each player begin at ``starts``, and
    ``orders`` are the players, shape (stored, players).
    """
    n, k = orders.shape
    for i in range(n):
        for shown in range(1, k):
            row = i * (k - 1) + shown - 1
            for place in range(shown, k):
                player = orders[i, place]
                for f in range(starts[player], starts[player + 1]):
                    rows[row, columns[f]] = stored[i, f]


@compiled
def add_gains(own: Floats, ends: Floats, numbers: Floats, orders: Places, gains: Floats) -> None:
    """Add what the output gains when each player is revealed, shape (stored, players, labels).

    ``own`` is the output on the observation, ``ends`` those on the stored ones, and ``numbers``
    those on the inputs in between; see :func:`put_chains`.
    """
    n, k = orders.shape
    for i in range(n):
        for place in range(k):
            for c in range(len(own)):
                row = i * (k - 1) + place
                before = ends[i, c] if place == 0 else numbers[row - 1, c]
                after = own[c] if place == k - 1 else numbers[row, c]
                gains[i, orders[i, place], c] += after - before


@compiled
def put_sets(
    rows: Floats, columns: Places, stored: Floats, starts: Places, players: Places
) -> None:
    """Hide the players that are not in a set, for each set but those of none and of all.

    ``rows`` has the shape (sets · stored, columns): first those of the first set. The bits of a
    set's number say which of the ``players`` are in it; for the rest see :func:`put_chains`.
    """
    n, k = len(stored), len(players)
    for chosen in range(1, (1 << k) - 1):
        for i in range(n):
            row = (chosen - 1) * n + i
            for place in range(k):
                if not chosen >> place & 1:
                    player = players[place]
                    for f in range(starts[player], starts[player + 1]):
                        rows[row, columns[f]] = stored[i, f]
