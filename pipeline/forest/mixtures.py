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
from fluxplain.forest.splits import NONE, WORD, Game, Splits, split_tree
from fluxplain.forest.state import LEAF, Integers, Kinds, State
from fluxplain.forest.walk import ways_of

NODE, DECIDED, OWN, PLAYER, SIDE, BITS = range(6)
"""What is kept of mixtures with the same way: the node that they have reached; how many players
are decided, and how many of them have the observation's values; who was decided last, and how; and
the bits of their rows."""

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
    stack, wanted = of.stack, of.stack[top, DECIDED]
    while n > max(wanted - 1, 0):
        n -= 1
        of.side[of.decided[n]] = OPEN
    if wanted > 0:
        of.decided[wanted - 1] = stack[top, PLAYER]
        of.side[stack[top, PLAYER]] = stack[top, SIDE]
    return int(wanted)


@inlined
def push(of: Walk, top: int, n: int, node: int, player: int, side: int) -> None:
    """Put mixtures at ``n`` that go on to a node, where the player was decided if it was open."""
    stack, own, decided = of.stack, of.stack[top, OWN], of.stack[top, DECIDED]
    stack[n, NODE], of.share[n] = node, of.share[top]
    stack[n, PLAYER], stack[n, SIDE] = stack[top, PLAYER], stack[top, SIDE]
    if of.side[player] == OPEN:
        decided += 1
        own += side == MINE
        stack[n, PLAYER], stack[n, SIDE] = player, side
        of.share[n] *= (own if side == MINE else decided - own) / decided
    stack[n, DECIDED], stack[n, OWN] = decided, own


@borrowing
def leave(stack: Integers, top: int, n: int, coming: Integers, stays: bool) -> bool:
    """Give those on top that a branch sends to a node, or all but those, to the mixtures at ``n``.

    Returns whether there are any.
    """
    some = 0
    for word in range(len(coming)):
        bits = stack[top, BITS + word]
        bits &= ~coming[word] if stays else coming[word]
        stack[n, BITS + word] = bits
        some |= bits
    return some != 0


@inlined
def part_ways(of: Walk, top: int, node: int, splits: Splits) -> int:
    """Let mixtures on top part at a branch; return how many entries the stack has then.

    Rows that go where the observation goes stay on top, and their player open.
    """
    n, own, player = top + 1, splits.own[node], splits.player[node]
    if of.side[player] == OPEN:
        if not leave(of.stack, top, n, splits.coming[own], True):
            of.stack[top, NODE] = own
            return n
        push(of, top, n, own, player, MINE)
        n += 1
    other = splits.other[node]
    while other >= 0:
        if leave(of.stack, top, n, splits.coming[other], False):
            push(of, top, n, other, player, THEIRS)
            n += 1
        other = splits.following[other]
    of.stack[top, NODE] = own if leave(of.stack, top, top, splits.coming[own], False) else NONE
    return n


@inlined
def credit(of: Walk, top: int, parts: Floats) -> None:
    """Add the parts of a leaf's prediction that its players get for the mixtures on top."""
    rows = 0
    for bits in of.stack[top, BITS:]:
        rows += count_bits(bits)
    n, own, share = of.stack[top, DECIDED], of.stack[top, OWN], rows * of.share[top]
    if own == 0:
        parts[-1] += rows
    gain = share / own if own > 0 else 0.0
    loss = share / (n - own) if n > own else 0.0
    for k in range(n):
        player = of.decided[k]
        parts[player] += gain if of.side[player] == MINE else -loss


@borrowing
def follow(kind: Kinds, splits: Splits, of: Walk, leaves: Integers, parts: Floats) -> int:
    """Fill in the leaves that mixtures reach, and their parts; return how many they are.

    All mixtures are on the stack, at the root. See :func:`parts_of`.
    """
    stack, n, decided, n_leaves = of.stack, 1, 0, 0
    while n > 0:
        top = n - 1
        node = stack[top, NODE]
        if node == NONE:
            n = top
            continue
        decided = decide(of, top, decided)
        while kind[node] != LEAF and (
            splits.other[node] == NONE or of.side[splits.player[node]] == MINE
        ):
            node = splits.own[node]
        if kind[node] != LEAF:
            n = part_ways(of, top, node, splits)
            continue
        if splits.place[node] == NONE:
            leaves[n_leaves], splits.place[node] = node, n_leaves
            n_leaves += 1
        credit(of, top, parts[splits.place[node]])
        n = top
    return n_leaves


@compiled
def start(root: int, game: Game, nodes: int) -> Walk:
    """Return all mixtures at the root of a tree with some ``nodes``."""
    n_rows, n_players = game.values.shape[1], game.n_players
    words = (n_rows + WORD - 1) // WORD
    # an entry for each node beside a way, and one for each on it
    stack, share = np.empty((2 * nodes, BITS + words), np.int64), np.empty(2 * nodes)
    stack[0, :BITS], share[0] = 0, 1.0
    stack[0, NODE] = root
    for word in range(words):
        stack[0, BITS + word] = (1 << min(WORD, n_rows - word * WORD)) - 1
    return Walk(stack, share, np.empty(n_players, np.int64), np.full(n_players, OPEN))


@compiled
def parts_of(state: State, tree: int, game: Game, splits: Splits) -> tuple[Integers, Floats]:
    """Return the leaves that mixtures reach, and how much of each one's prediction players get.

    The latter has the shape (leaves, players + 1) and is summed over all rows. The last column is
    for no player: in how many rows the leaf predicts if all players have the row's values.
    """
    root = state.trees.root[tree]
    if root < 0:
        return np.empty(0, np.int64), np.empty((0, game.n_players + 1))
    nodes = split_tree(state, ways_of(state), root, game, splits)
    leaves, parts = np.empty(nodes, np.int64), np.zeros((nodes, game.n_players + 1))
    n = follow(state.nodes.kind, splits, start(root, game, nodes), leaves, parts)
    return leaves[:n], parts[:n]
