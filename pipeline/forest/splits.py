"""Where the background rows of a game leave the way of an observation through a tree."""

from typing import NamedTuple

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled, inlined
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.state import CATEGORIES, LEAF, NUMERIC, Integers, State
from fluxplain.forest.walk import Ways, common_way, step

WORD = 62
"""Rows whose bits are in the same integer: shifts of a positive one need no care."""

NOBODY = -1
"""The player of a column that keeps the observation's value."""

NONE = -1
"""Instead of a place or a node where there is none."""

NODE, OWN, OTHERS, PLAYER, LEAF_PLACE, COMING = range(6)
"""What a table has of each node that a mixture of the observation and a row may reach: its number;
the place in the table of the node to which it sends the observation; how many other nodes it sends
rows to, which follow that one; the player that decides between them; the place of a leaf among the
leaves that a mixture does reach; and the rows that the branch above sends to the node, as bits."""


class Game(NamedTuple):
    """An observation ``x`` whose ``players`` get their values from background rows.

    ``values`` are those of the rows, by column, shape (columns, rows). ``columns`` has of each
    feature its column, -1 if it is missing. ``players`` has of each column one of ``n_players``, or
    NOBODY. A mixture has the observation's values of some players, and a row's of the others.
    """

    x: Floats
    values: Floats
    columns: Integers
    players: Integers
    n_players: int


@borrowing
def words_of(n_rows: int) -> int:
    """Return how many integers have the bits of the rows."""
    return (n_rows + WORD - 1) // WORD


@compiled
def empty_table(state: State, game: Game) -> Integers:
    """Return room for any tree, which costs no time until it is used."""
    return np.empty((len(state.nodes.kind), COMING + words_of(game.values.shape[1])), np.int64)


@borrowing
def is_any(bits: Integers) -> bool:
    """Return whether any bit is set."""
    some = 0
    for word in range(len(bits)):
        some |= bits[word]
    return some != 0


@borrowing
def part_by_threshold(values: Floats, test: float, left: Integers, right: Integers) -> None:
    """Fill in the rows that a branch by a threshold sends to either side."""
    for word in range(len(left)):
        begin, bits = word * WORD, 0
        some = values[begin : begin + WORD]
        for k in range(len(some)):
            bits |= int(some[k] <= test) << k
        left[word], right[word] = bits, ((1 << len(some)) - 1) ^ bits


@borrowing
def part_by_category(values: Floats, test: float, left: Integers, right: Integers) -> None:
    """Fill in the rows that a branch by one category sends to either side."""
    for word in range(len(left)):
        begin, bits = word * WORD, 0
        some = values[begin : begin + WORD]
        for k in range(len(some)):
            bits |= int(some[k] == test) << k
        left[word], right[word] = bits, ((1 << len(some)) - 1) ^ bits


@inlined
def part_in_two(of: Ways, node: int, values: Floats, table: Integers, n: int) -> int:
    """Fill in who goes on from a branch with two ways; return how many other nodes rows go to.

    ``n`` is the place of the observation's node.
    """
    is_left = of.below[node, 0] == table[n, NODE]
    table[n + 1, NODE] = of.below[node, 1 if is_left else 0]
    left = table[n if is_left else n + 1, COMING:]
    right = table[n + 1 if is_left else n, COMING:]
    if of.kind[node] == NUMERIC:
        part_by_threshold(values, of.test[node], left, right)
    else:
        part_by_category(values, of.test[node], left, right)
    return 1 if is_any(table[n + 1, COMING:]) else 0


@inlined
def part_by_edges(of: Ways, node: int, values: Floats, common: int, table: Integers, n: int) -> int:
    """Fill in who goes on from a branch with an edge a category; see :func:`part_in_two`.

    Rows without an edge go to the node ``common``. Returns NONE if there is none, but needed.
    """
    end = n + 1
    for word in range(COMING, table.shape[1]):
        table[n, word] = 0
    for row in range(len(values)):
        edge = of.below[node, 0]
        while edge >= 0 and of.category[edge] != values[row]:
            edge = of.following[edge]
        target, place = of.target[edge] if edge >= 0 else common, n
        if target == NONE:
            return NONE
        while place < end and table[place, NODE] != target:
            place += 1
        if place == end:
            for word in range(COMING, table.shape[1]):
                table[place, word] = 0
            table[place, NODE], end = target, end + 1
        table[place, COMING + row // WORD] |= 1 << row % WORD
    return end - n - 1


@inlined
def split_at(of: Ways, game: Game, table: Integers, place: int, n: int, common: int) -> bool:
    """Append the nodes below a branch to a table of ``n``.

    What the branch has no way for goes to the node ``common``. Returns False if that is NONE, but
    needed.
    """
    node, n_others = table[place, NODE], 0
    own = step(of, node, game.x, game.columns)
    own = own if own >= 0 else common
    if own == NONE:
        return False
    table[n, NODE], column = own, game.columns[of.feature[node]]
    player = game.players[column] if column >= 0 else NOBODY
    if player != NOBODY and of.kind[node] == CATEGORIES:
        n_others = part_by_edges(of, node, game.values[column], common, table, n)
    elif player != NOBODY:
        n_others = part_in_two(of, node, game.values[column], table, n)
    table[place, OWN], table[place, PLAYER], table[place, OTHERS] = n, player, n_others
    return n_others != NONE


@borrowing
def split_below(
    of: Ways, game: Game, table: Integers, place: int, n: int, common: int
) -> tuple[int, int]:
    """Fill in a table of ``n`` nodes from a place on, up to a branch that needs a common way.

    ``common`` is that of the first branch. Returns the place, and how many nodes the table has.
    """
    while place < n:
        table[place, LEAF_PLACE] = table[place, OWN] = NONE
        table[place, OTHERS] = 0
        if of.kind[table[place, NODE]] != LEAF:
            if not split_at(of, game, table, place, n, common):
                break
            n += 1 + table[place, OTHERS]
        place, common = place + 1, NONE
    return place, n


@compiled
def split_tree(state: State, of: Ways, root: int, game: Game, table: Integers) -> int:
    """Fill in the table of all nodes that a mixture may reach; return how many they are."""
    table[0, NODE] = root
    place, n = split_below(of, game, table, 0, 1, NONE)
    while place < n:
        common = common_way(state, table[place, NODE])
        place, n = split_below(of, game, table, place, n, common)
    return n
