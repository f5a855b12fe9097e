"""Which leaf of a tree each perturbed input reaches.

The path of the observation is walked once. A replaced feature matters only where a branch tests
it: there the inputs part, and those that leave the path are followed further, together as long as
they go the same way. Nothing is remembered from one observation to the next, so whatever the tree
did meanwhile (splits, drifts, pruned or replaced subtrees) cannot be missed.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from river.tree.base import Branch
from river.tree.nodes.branch import NumericBinaryBranch

from pipeline.evaluate.base import Observation
from pipeline.evaluate.inputs import Inputs, Item

Strayed = list[tuple[Any, list[int]]]
"""Leaf → the rows that reach it; None in place of a leaf if the tree itself must be asked."""

LEAF, NUMERIC, BRANCH, ALTERNATE = 0, 1, 2, 4
"""What a node is; a branch of a Hoeffding adaptive tree may have an alternate tree."""

_kinds: dict[type, int] = {}


@dataclass(slots=True)
class Routes:
    """Where the inputs of one observation end in one tree.

    Attributes
    ----------
    leaf
        The leaf of the observation; None if the tree itself must be asked.
    stayed
        Feature → the inputs with only this one replaced that reach the same leaf.
    strayed
        The others, and those with several features replaced.
    """

    leaf: Any
    stayed: dict[str, list[Item]]
    strayed: Strayed


def route(root: Any, inputs: Inputs) -> Routes:
    """Return where each input ends, going as ``Branch.walk`` of River goes."""
    x, node = inputs.x, root
    stayed = dict(inputs.singles)
    strayed: Strayed = []
    if inputs.several:
        _follow_several(root, inputs, list(inputs.several), strayed)
    while kind := _kinds.get(type(node)) or node_kind(node):
        if kind & ALTERNATE and node._alternate_tree:
            node = None
            break
        feature, below = node.feature, _child(node, kind, x)
        items = stayed.get(feature)
        if items:
            stayed[feature] = []
            for child, parted in _part(node, kind, x, items):
                if child is below:
                    stayed[feature] = parted
                else:
                    _follow(child, x, feature, parted, strayed)
        node = below
    return Routes(node, stayed, strayed)


def node_kind(node: Any) -> int:
    """Return what a node is, from its class."""
    cls = type(node)
    kind = _kinds.get(cls)
    if kind is None:
        kind = LEAF
        if isinstance(node, Branch):
            # a class of somebody's own may go another way
            numeric = cls.branch_no is NumericBinaryBranch.branch_no
            kind = NUMERIC if numeric else BRANCH
            if hasattr(node, "_alternate_tree"):
                kind |= ALTERNATE
        _kinds[cls] = kind
    return kind


def _child(node: Any, kind: int, x: Observation) -> Any:
    try:
        if kind & NUMERIC:
            return node.children[0 if x[node.feature] <= node.threshold else 1]
        return node.next(x)
    except KeyError:  # the feature is missing, or the category new
        return node.most_common_path()[1]


def _part(node: Any, kind: int, x: Observation, items: list[Item]) -> list[tuple[Any, list[Item]]]:
    """Return the children, with the inputs that go there; they differ in the tested feature."""
    if kind & NUMERIC:
        threshold = node.threshold
        left = [item for item in items if item[0] <= threshold]
        if not left:
            return [(node.children[1], items)]
        if len(left) == len(items):
            return [(node.children[0], items)]
        # not the negation: as River compares, what is not below goes right
        right = [item for item in items if not item[0] <= threshold]
        return [(node.children[0], left), (node.children[1], right)]
    parts: dict[int, tuple[Any, list[Item]]] = {}
    for item in items:
        child = _child(node, kind, {**x, node.feature: item[0]})
        parts.setdefault(id(child), (child, []))[1].append(item)
    return list(parts.values())


def _follow(node: Any, x: Observation, feature: str, items: list[Item], strayed: Strayed) -> None:
    """Follow inputs in which one feature is replaced."""
    while kind := _kinds.get(type(node)) or node_kind(node):
        if kind & ALTERNATE and node._alternate_tree:
            node = None
            break
        if node.feature != feature:
            node = _child(node, kind, x)
            continue
        (node, items), *others = _part(node, kind, x, items)
        for child, parted in others:
            _follow(child, x, feature, parted, strayed)
    strayed.append((node, [row for _, row in items]))


def _follow_several(node: Any, inputs: Inputs, rows: list[int], strayed: Strayed) -> None:
    """Follow inputs in which several features are replaced."""
    while kind := _kinds.get(type(node)) or node_kind(node):
        if kind & ALTERNATE and node._alternate_tree:
            node = None
            break
        (node, rows), *others = _part_several(node, kind, inputs.several, rows)
        for child, parted in others:
            _follow_several(child, inputs, parted, strayed)
    strayed.append((node, rows))


def _part_several(
    node: Any, kind: int, several: Mapping[int, Observation], rows: list[int]
) -> list[tuple[Any, list[int]]]:
    if kind & NUMERIC:
        feature, threshold = node.feature, node.threshold
        with suppress(KeyError):
            left = [row for row in rows if several[row][feature] <= threshold]
            if not left:
                return [(node.children[1], rows)]
            if len(left) == len(rows):
                return [(node.children[0], rows)]
            right = [row for row in rows if not several[row][feature] <= threshold]
            return [(node.children[0], left), (node.children[1], right)]
    parts: dict[int, tuple[Any, list[int]]] = {}
    for row in rows:
        child = _child(node, kind, several[row])
        parts.setdefault(id(child), (child, []))[1].append(row)
    return list(parts.values())
