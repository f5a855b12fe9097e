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
"""Instead of a node, behind the last one of a list."""


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


class Splits(NamedTuple):
    """Of each node that a mixture may reach: where the observation and the rows go from it.

    A branch sends the observation to ``own``. ``other`` is the first of the other nodes to which it
    sends rows, ``following`` the next one of each, both NONE if there is none; ``player`` decides
    between them. ``coming`` are the rows that the branch above sends to a node, as bits, shape
    (nodes, words). ``place`` of a leaf is that among the leaves that a mixture does reach, NONE of
    others. ``waiting`` are nodes to look at.
    """

    own: Integers
    other: Integers
    following: Integers
    player: Integers
    place: Integers
    waiting: Integers
    coming: Integers


@compiled
def empty_splits(nodes: int, rows: int) -> Splits:
    """Return room for trees whose nodes are below ``nodes``."""
    lists = np.empty((6, nodes), np.int64)
    coming = np.empty((nodes, (rows + WORD - 1) // WORD), np.int64)
    return Splits(lists[0], lists[1], lists[2], lists[3], lists[4], lists[5], coming)


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
def part_by_edges(of: Ways, node: int, values: Floats, common: int, coming: Integers) -> bool:
    """Fill in the rows that each edge of a branch gets; those without an edge go to ``common``.

    Returns False if that is NONE, but needed.
    """
    edge = of.below[node, 0]
    while edge >= 0:
        coming[of.target[edge]] = 0
        edge = of.following[edge]
    for row in range(len(values)):
        edge = of.below[node, 0]
        while edge >= 0 and of.category[edge] != values[row]:
            edge = of.following[edge]
        target = of.target[edge] if edge >= 0 else common
        if target < 0:
            return False
        coming[target, row // WORD] |= 1 << row % WORD
    return True


@inlined
def link(of: Ways, node: int, splits: Splits) -> None:
    """Link the nodes to which a branch sends rows, without that of the observation."""
    by_edges = of.kind[node] == CATEGORIES
    place = of.below[node, 0] if by_edges else 0
    while place >= 0 if by_edges else place < 2:
        below = of.target[place] if by_edges else of.below[node, place]
        if below != splits.own[node] and is_any(splits.coming[below]):
            splits.following[below], splits.other[node] = splits.other[node], below
        place = of.following[place] if by_edges else place + 1


@inlined
def split_at(of: Ways, node: int, game: Game, splits: Splits, common: int) -> bool:
    """Fill in where a branch sends the observation and the rows.

    What it has no way for goes to the node ``common``. Returns False if that is NONE, but needed.
    """
    own = step(of, node, game.x, game.columns)
    own = own if own >= 0 else common
    if own < 0:
        return False
    column, coming = game.columns[of.feature[node]], splits.coming
    player = game.players[column] if column >= 0 else NOBODY
    splits.own[node], splits.player[node], splits.other[node] = own, player, NONE
    if player == NOBODY:
        return True
    values, is_done = game.values[column], True
    if of.kind[node] == CATEGORIES:
        is_done = part_by_edges(of, node, values, common, coming)
    else:
        left, right = coming[of.below[node, 0]], coming[of.below[node, 1]]
        if of.kind[node] == NUMERIC:
            part_by_threshold(values, of.test[node], left, right)
        else:
            part_by_category(values, of.test[node], left, right)
    link(of, node, splits)
    return is_done


@borrowing
def split_below(of: Ways, game: Game, splits: Splits, n: int, common: int) -> tuple[int, int]:
    """Fill in ``n`` nodes that wait, and those below, up to one that needs a ``common`` way.

    ``common`` is that of the last one that waits. Returns how many wait then, and how many are
    filled in.
    """
    waiting, filled = splits.waiting, 0
    while n > 0:
        node = waiting[n - 1]
        splits.place[node] = splits.other[node] = NONE
        if of.kind[node] != LEAF and not split_at(of, node, game, splits, common):
            break
        n, filled, common = n - 1, filled + 1, NONE
        if of.kind[node] == LEAF:
            continue
        waiting[n], n = splits.own[node], n + 1
        other = splits.other[node]
        while other >= 0:
            waiting[n], n = other, n + 1
            other = splits.following[other]
    return n, filled


@compiled
def split_tree(state: State, of: Ways, root: int, game: Game, splits: Splits) -> int:
    """Fill in all nodes that a mixture may reach; return how many they are."""
    splits.waiting[0], n, nodes, common = root, 1, 0, NONE
    while n > 0:
        n, filled = split_below(of, game, splits, n, common)
        nodes += filled
        if n > 0:
            common = common_way(state, splits.waiting[n - 1])
    return nodes
