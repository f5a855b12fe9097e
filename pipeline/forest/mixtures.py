"""Follows the mixtures of an observation and background rows through a tree.

All rows that take the same way are followed together, so the time depends on the tree, and little
on the number of rows.

References
----------
Lundberg et al. (2020), From local explanations to global understanding with explainable AI for
trees: interventional TreeSHAP, which follows one row after the other.
"""

from typing import NamedTuple

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled, inlined
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.splits import (
    COMING,
    LEAF_PLACE,
    NODE,
    NONE,
    OTHERS,
    OWN,
    PLAYER,
    WORD,
    Game,
    split_tree,
    words_of,
)
from fluxplain.forest.state import Integers, State
from fluxplain.forest.walk import ways_of

PLACE, DECIDED, MINE_N, LAST, SIDE, BITS = range(6)
"""What is kept of mixtures with the same way: the place of the node that they have reached; how
many players are decided, and how many of them have the observation's values; who was decided last,
and how; and the bits of their rows."""

OPEN, THEIRS, MINE = range(3)
"""Whose values a player has: not decided, the row's, or the observation's."""


class Walk(NamedTuple):
    """Mixtures that are on their way: a stack.

    ``share`` is a! b! / (a + b)! if a players have the observation's values, and b the row's.
    ``decided`` are the players of the mixtures on top, in the order of the way; ``side`` says of
    each player whose values it has.
    """

    stack: Integers
    share: Floats
    decided: Integers
    side: Integers


@borrowing
def count_bits(number: int) -> int:
    """Return how many bits of a positive integer are set."""
    found = number - (number >> 1 & 0x5555555555555555)
    found = (found & 0x3333333333333333) + (found >> 2 & 0x3333333333333333)
    found = found + (found >> 4) & 0x0F0F0F0F0F0F0F0F
    found += found >> 8
    found += found >> 16
    return int(found + (found >> 32) & 0x7F)


@inlined
def decide(of: Walk, top: int, n: int) -> int:
    """Take back decisions of mixtures that were on top before; return how many hold now."""
    wanted, last = of.stack[top, DECIDED], of.stack[top, LAST]
    while n > 0 and n >= wanted:
        n -= 1
        of.side[of.decided[n]] = OPEN
    if wanted > 0:
        of.decided[wanted - 1], of.side[last] = last, of.stack[top, SIDE]
    return int(wanted)


@inlined
def push(of: Walk, top: int, n: int, place: int, player: int, side: int) -> None:
    """Put mixtures at ``n`` that go on to a node, where the player was decided if it was open."""
    stack, mine, decided = of.stack, of.stack[top, MINE_N], of.stack[top, DECIDED]
    stack[n, PLACE], of.share[n] = place, of.share[top]
    stack[n, LAST], stack[n, SIDE] = stack[top, LAST], stack[top, SIDE]
    if of.side[player] == OPEN:
        decided += 1
        mine += 1 if side == MINE else 0
        stack[n, LAST], stack[n, SIDE] = player, side
        of.share[n] *= (mine if side == MINE else decided - mine) / decided
    stack[n, DECIDED], stack[n, MINE_N] = decided, mine


@inlined
def take(stack: Integers, top: int, n: int, table: Integers, place: int, stays: bool) -> bool:
    """Give those on top that a branch sends to a place, or all but those, to the mixtures at ``n``.

    Returns whether there are any.
    """
    some = 0
    for word in range(stack.shape[1] - BITS):
        coming = table[place, COMING + word]
        bits = stack[top, BITS + word] & (~coming if stays else coming)
        stack[n, BITS + word] = bits
        some |= bits
    return some != 0


@inlined
def part_ways(of: Walk, top: int, table: Integers, place: int) -> int:
    """Let mixtures on top part at a branch; return how many entries the stack has then.

    Rows that go where the observation goes stay on top, and their player open.
    """
    n, own, player, part = top + 1, table[place, OWN], table[place, PLAYER], True
    if of.side[player] == OPEN:
        part = take(of.stack, top, n, table, own, True)
        if part:
            push(of, top, n, own, player, MINE)
            n += 1
    for other in range(own + 1, own + 1 + table[place, OTHERS] if part else 0):
        if take(of.stack, top, n, table, other, False):
            push(of, top, n, other, player, THEIRS)
            n += 1
    some = take(of.stack, top, top, table, own, False) if part else True
    of.stack[top, PLACE] = own if some else NONE
    return n


@inlined
def credit(of: Walk, top: int, parts: Floats) -> None:
    """Add the parts of a leaf's prediction that its players get for the mixtures on top."""
    rows = 0
    for word in range(BITS, of.stack.shape[1]):
        rows += count_bits(of.stack[top, word])
    n, mine, share = of.stack[top, DECIDED], of.stack[top, MINE_N], rows * of.share[top]
    if mine == 0:
        parts[-1] += rows
    gain = share / mine if mine > 0 else 0.0
    loss = share / (n - mine) if n > mine else 0.0
    for k in range(n):
        player = of.decided[k]
        parts[player] += gain if of.side[player] == MINE else -loss


@borrowing
def follow(table: Integers, of: Walk, leaves: Integers, parts: Floats) -> int:
    """Fill in the leaves that mixtures reach, and their parts; return how many they are.

    All mixtures are on the stack, at the root. See :func:`parts_of`.
    """
    stack, n, decided, n_leaves = of.stack, 1, 0, 0
    while n > 0:
        top = n - 1
        place = stack[top, PLACE]
        if place == NONE:
            n = top
            continue
        decided = decide(of, top, decided)
        while table[place, OWN] != NONE and (
            table[place, OTHERS] == 0 or of.side[table[place, PLAYER]] == MINE
        ):
            place = table[place, OWN]
        if table[place, OWN] != NONE:
            n = part_ways(of, top, table, place)
            continue
        if table[place, LEAF_PLACE] == NONE:
            leaves[n_leaves], table[place, LEAF_PLACE] = table[place, NODE], n_leaves
            parts[n_leaves] = 0.0
            n_leaves += 1
        credit(of, top, parts[table[place, LEAF_PLACE]])
        n = top
    return n_leaves


@compiled
def start(game: Game, nodes: int) -> Walk:
    """Return all mixtures at the root of a tree of which they may reach some ``nodes``."""
    n_rows, n_players = game.values.shape[1], game.n_players
    words = words_of(n_rows)
    # an entry for each node beside a way, and one for each on it
    stack, share = np.empty((2 * nodes, BITS + words), np.int64), np.empty(2 * nodes)
    stack[0, :BITS], share[0] = 0, 1.0
    for word in range(words):
        stack[0, BITS + word] = (1 << min(WORD, n_rows - word * WORD)) - 1
    return Walk(stack, share, np.empty(n_players, np.int64), np.full(n_players, OPEN))


@compiled
def parts_of(state: State, tree: int, game: Game, table: Integers) -> tuple[Integers, Floats]:
    """Return the leaves that mixtures reach, and how much of each one's prediction players get.

    The latter has the shape (leaves, players + 1) and is summed over all rows. The last column is
    for no player: in how many rows the leaf predicts if all players have the row's values.
    ``table`` is room for what is found of the tree.
    """
    root = state.trees.root[tree]
    if root < 0:
        return np.empty(0, np.int64), np.empty((0, game.n_players + 1))
    nodes = split_tree(state, ways_of(state), root, game, table)
    leaves, parts = np.empty(nodes, np.int64), np.empty((nodes, game.n_players + 1))
    n = follow(table, start(game, nodes), leaves, parts)
    return leaves[:n], parts[:n]
