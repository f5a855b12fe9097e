"""Which leaf each of many inputs of one observation reaches."""

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.state import LEAF, NUMERIC, Integers, State
from fluxplain.forest.walk import Ways, common_way, leaf_of, step, ways_of

BITS = 62
"""Number of bits that mark columns. Further columns share bits, which only costs time."""

BLOCK = 32
"""Columns that are compared together: most of a row is the observation."""

NO_COLUMN, SEVERAL = -1, -2
"""Which column is changed, where it is not exactly one."""

LONGEST = 64
"""Most nodes of the observation's own way that are kept; rows walk the rest."""


@borrowing
def mark_of(column: int) -> int:
    """Return the bit that marks a column."""
    return 1 << column % BITS


@borrowing
def changed_columns(rows: Floats, x: Floats, changed: Integers) -> None:
    """Fill in where each row differs from the observation, shape (rows, 2).

    The first are marks of the columns, the second is the column if it is exactly one.
    """
    # the compiler compares many integers at once, but neither numbers nor parts by their places
    n, bits, own = rows.shape[1], rows.view(np.int64), x.view(np.int64)
    for row in range(rows.shape[0]):
        marks, which = 0, NO_COLUMN
        for begin in range(0, n, BLOCK):
            mine, its = own[begin : begin + BLOCK], bits[row, begin : begin + BLOCK]
            differing = 0
            for k in range(len(its)):
                differing |= its[k] ^ mine[k]
            for k in range(len(its) if differing else 0):
                if its[k] != mine[k]:
                    marks |= mark_of(begin + k)
                    which = begin + k if which == NO_COLUMN else SEVERAL
        changed[row, 0], changed[row, 1] = marks, which


@compiled
def own_path(
    state: State,
    of: Ways,
    root: int,
    x: Floats,
    columns: Integers,
    path: Integers,
    tested: Integers,
    first: Integers,
) -> int:
    """Fill in the nodes on the observation's own way, and marks of the column that each tests.

    Returns how many they are; the last one is the leaf. Longer ways end in the middle. ``first``
    gets of each column the place of the first node that tests it; of others, that of the last node.
    """
    node, n = root, 0
    first[:] = -1
    while n < len(path):
        path[n], tested[n] = node, 0
        n += 1
        if of.kind[node] == LEAF:
            break
        column = columns[of.feature[node]]
        if column >= 0:
            tested[n - 1] = mark_of(column)
            first[column] = n - 1 if first[column] < 0 else first[column]
        following = step(of, node, x, columns)
        node = following if following >= 0 else common_way(state, node)
    for column in range(len(first)):
        first[column] = n - 1 if first[column] < 0 else first[column]
    return n


@borrowing
def reach_all(
    of: Ways,
    rows: Floats,
    columns: Integers,
    changed: Integers,
    path: Integers,
    tested: Integers,
    first: Integers,
    n: int,
    reached: Integers,
) -> None:
    """Fill in each row's leaf, or the first branch that has no way for it.

    ``changed`` tells where a row differs from the observation, whose own ``path`` of ``n`` nodes
    needs no second look; see :func:`changed_columns`. If only one column is changed, ``low`` and
    ``high`` are the thresholds around its value on the way: with a value between them, the next row
    has the same way.
    """
    before, low, high = NO_COLUMN, np.inf, -np.inf
    for row in range(len(rows)):
        which = changed[row, 1]
        if which >= 0 and which == before and low < rows[row, which] <= high:
            reached[row] = reached[row - 1]
            continue
        before, low, high = which, -np.inf, np.inf
        place = first[which] if which >= 0 else 0
        while place < n - 1 and not tested[place] & changed[row, 0]:
            place += 1
        node = path[place]
        while of.kind[node] != LEAF:
            following = step(of, node, rows[row], columns)
            if which >= 0 and columns[of.feature[node]] == which:
                if of.kind[node] != NUMERIC:
                    low = np.inf
                elif following == of.below[node, 0]:
                    high = min(high, of.test[node])
                else:
                    low = max(low, of.test[node])
            if following < 0:
                low = np.inf
                break
            node = following
        reached[row] = node


@compiled
def leaves_of(
    state: State, root: int, rows: Floats, x: Floats, columns: Integers, changed: Integers
) -> Integers:
    """Return the leaf of each row."""
    path, tested = np.empty((2, LONGEST), np.int64)
    reached, first = np.empty(len(rows), np.int64), np.empty(len(x), np.int64)
    of = ways_of(state)
    n = own_path(state, of, root, x, columns, path, tested, first)
    reach_all(of, rows, columns, changed, path, tested, first, n, reached)
    for row in range(len(rows)):
        if of.kind[reached[row]] != LEAF:
            reached[row] = leaf_of(state, reached[row], rows[row], columns)
    return reached


@borrowing
def group_rows(
    reached: Integers, nodes: Integers, first: Integers, last: Integers, following: Integers
) -> int:
    """Link the rows that reach the same node; return how many nodes are reached.

    They are ``nodes``; of each, ``first`` and ``last`` get a row. ``following`` gets the next one
    of each row, -1 behind the last. Rows that reach -1 are left out.
    """
    n, group = 0, 0
    for row in range(len(reached)):
        node = reached[row]
        if node < 0:
            continue
        following[row] = -1
        if n == 0 or nodes[group] != node:  # most reach that of the row before
            group = 0
            while group < n and nodes[group] != node:
                group += 1
        if group < n:
            following[last[group]] = row
        else:
            nodes[n], first[n], n = node, row, n + 1
        last[group] = row
    return n
