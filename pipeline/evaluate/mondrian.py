"""The evaluator for aggregated Mondrian forests."""

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import forest

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.fast import CopyingEvaluator
from fluxplain.evaluate.generic import plain_label
from fluxplain.evaluate.table import Labels, Table

Integers = NDArray[np.int32]

NONE = -1
"""The feature of a leaf, and what is below it."""

MOST_WASTE = 2
"""All nodes are copied again when there are so many times more copies than nodes."""


class MondrianEvaluator(CopyingEvaluator):
    """Follows all inputs through copies of the trees; :meth:`covers` is true for the model.

    A node that learns has one sample more, and so has each node above it: only these are copied
    again.
    """

    def _forget(self) -> None:
        self._copies = _Copies(0)

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports the model."""
        return type(model) in {forest.AMFClassifier, forest.AMFRegressor}

    def _table(self, inputs: Inputs) -> Table | None:
        observed, rows = inputs
        if not self.model._is_initialized or not self._is_regular():
            return None
        copies = self._follow()
        if observed.has_categories or not copies.features.keys() <= set(observed.features):
            return None
        columns = np.array([observed.features.index(f) for f in copies.features], np.int32)
        trees = list(self.model)
        roots = np.array([copies.place(tree._root) for tree in trees], np.int32)
        x = np.concatenate((observed.numbers[None, :], rows))
        sums = np.zeros((len(x), copies.shares.shape[1]))
        is_class = isinstance(self.model, forest.AMFClassifier)
        divisor = len(trees) if is_class else 1
        _add_up(x, columns, roots, *copies.arrays(), divisor, sums)
        sums = sums[1:]
        if not is_class:
            return Table((None,), sums / len(trees))
        classes = list(self.model._classes)
        order = [trees[0]._class_to_idx[c] for c in classes]
        labels: Labels = tuple(map(plain_label, classes))
        return Table(labels, np.ascontiguousarray(sums[:, order]))

    def _is_regular(self) -> bool:
        """Return whether all trees know the same classes, and predict as the forest says.

        An observation that cannot be learned may leave only some trees changed.
        """
        if isinstance(self.model, forest.AMFRegressor):
            return all(tree.use_aggregation == self.model.use_aggregation for tree in self.model)
        first, *others = self.model
        known = first._idx_to_class
        return set(known) == self.model._classes and all(t._idx_to_class == known for t in others)

    def _follow(self) -> "_Copies":
        """Copy what has learned since the last call."""
        trees = list(self.model)
        classes = len(getattr(self.model, "_classes", "1"))
        n_nodes = sum(tree._n_nodes for tree in trees)
        copies = self._copies
        if copies.shares.shape[1] != classes or len(copies.nodes) > MOST_WASTE * n_nodes:
            copies = self._copies = _Copies(classes)
        copies.follow(trees)
        return copies


class _Copies:
    """Nodes as arrays, with one element or row a node.

    Attributes
    ----------
    features
        The numbers of the features.
    shares
        Each node's own prediction, shape (nodes, classes).
    """

    def __init__(self, classes: int) -> None:
        self.nodes: list[Any] = []
        self.features: dict[str, int] = {}
        self.shares: Floats = np.zeros((0, classes))
        self._places: dict[int, int] = {}  # a node's id → its place in the arrays
        self._samples: list[int] = []
        self._children: list[Any] = []
        self._below: list[tuple[int, int]] = []
        self._branches: Integers = np.zeros((0, 3), np.int32)
        self._thresholds: Floats = np.zeros(0)
        self._portions: Floats = np.zeros(0)

    def arrays(self) -> tuple[Integers, Floats, Floats, Floats]:
        """Return the branches, the thresholds, the portions and the shares of all nodes.

        A branch is its feature, -1 for a leaf, and the places of its children; a portion is that
        of its own prediction which a node gives, and the shares are that prediction.
        """
        return self._branches, self._thresholds, self._portions, self.shares

    def place(self, node: Any) -> int:
        """Return a node's place, a new one if it has none."""
        place = self._places.setdefault(id(node), len(self.nodes))
        if place == len(self.nodes):
            self.nodes.append(node)  # keeps its id from another node
            self._samples.append(0)
            self._children.append(None)
            self._below.append((-1, -1))
        return place

    def follow(self, trees: Sequence[Any]) -> None:
        """Copy what has changed in the trees."""
        nodes, samples, known, below = self.nodes, self._samples, self._children, self._below
        changed, moved = [], []
        roots = [self.place(tree._root) for tree in trees]
        waiting = [place for place in roots if samples[place] != nodes[place].n_samples]
        while waiting:
            place = waiting.pop()
            node = nodes[place]
            samples[place] = node.n_samples
            changed.append(place)
            if node.is_leaf:
                continue
            first, second = children = node.children
            if known[place] is not children:
                known[place] = children
                below[place] = self.place(first), self.place(second)
                feature = self.features.setdefault(node.feature, len(self.features))
                moved.append((place, feature, *below[place], node.threshold))
            left, right = below[place]
            if samples[left] != first.n_samples:
                waiting.append(left)
            if samples[right] != second.n_samples:
                waiting.append(right)
        self._reserve()
        if moved:
            branches = np.array(moved, np.float64)
            places = branches[:, 0].astype(np.intp)
            self._branches[places], self._thresholds[places] = branches[:, 1:4], branches[:, 4]
        if changed:
            of = [nodes[place] for place in changed]
            self.shares[changed] = _predictions(trees[0], of, self.shares.shape[1])
            self._portions[changed] = _portions(trees[0], of)

    def _reserve(self) -> None:
        """Make room for all nodes."""
        more = len(self.nodes) - len(self._portions)
        if more > 0:
            more = max(more, len(self._portions))
            self._branches = np.pad(self._branches, ((0, more), (0, 0)), constant_values=NONE)
            self._thresholds = np.pad(self._thresholds, (0, more))
            self._portions = np.pad(self._portions, (0, more))
            self.shares = np.pad(self.shares, ((0, more), (0, 0)))


def _predictions(tree: Any, nodes: list[Any], n_classes: int) -> Floats:
    """Return the nodes' own predictions, shape (nodes, classes)."""
    if not hasattr(tree, "dirichlet"):
        return np.array([[node.predict()] for node in nodes], np.float64)
    counts = _flat(map(_counts, nodes))
    if len(counts) < len(nodes) * n_classes:
        counts = _flat(each + [0] * (n_classes - len(each)) for each in map(_counts, nodes))
    samples = np.fromiter(map(_samples, nodes), np.float64, len(nodes))[:, None]
    shares: Floats = counts.reshape(-1, n_classes) + tree.dirichlet
    shares /= samples + tree.dirichlet * n_classes
    return shares


def _portions(tree: Any, nodes: list[Any]) -> Floats:
    """Return the portion that each node's own prediction has of what it predicts."""
    portions, weights, of_trees = _flat(map(_weights, nodes)).reshape(-1, 3).T
    if tree.use_aggregation:
        portions = np.where(portions == 1.0, 1.0, 0.5 * np.exp(weights - of_trees))
    return np.asarray(portions, np.float64)


_counts, _samples = attrgetter("counts"), attrgetter("n_samples")
_weights = attrgetter("is_leaf", "weight", "log_weight_tree")


def _flat(rows: Iterable[Iterable[float]]) -> Floats:
    return np.fromiter(chain.from_iterable(rows), np.float64)


@compiled
def _add_up(  # noqa: PLR0917  compiled functions take arrays
    x: Floats,
    columns: Integers,
    roots: Integers,
    branches: Integers,
    thresholds: Floats,
    portions: Floats,
    shares: Floats,
    divisor: float,
    sums: Floats,
) -> None:
    """Add each tree's prediction, divided by ``divisor``; ``sums`` has the shape (rows, classes).

    A tree's prediction is that of the root, as its portion says, and for the rest that of the tree
    below. The first row of ``x`` is the observation itself. What the nodes on its path give is
    computed once: another row leaves the path where a replaced value sends it to the other side.
    """
    n_classes = sums.shape[1]
    given = np.empty(n_classes)
    for root in roots:
        path = _path(x, columns, root, branches, thresholds)
        limits = thresholds[path[:, 0]]
        parts = np.zeros((len(path), n_classes + 1))  # what was given so far, and the rest
        _give(path, portions, shares, parts)
        last = len(path) - 1
        for row in range(x.shape[0]):
            k = 0
            while k < last and (x[row, path[k, 1]] > limits[k]) == (path[k, 3] == 1):
                k += 1
            for c in range(n_classes):
                given[c] = parts[k, c]
            node, rest = path[k, 2], parts[k, n_classes]
            while node != NONE:
                for c in range(n_classes):
                    given[c] += rest * portions[node] * shares[node, c]
                rest *= 1.0 - portions[node]
                node = _next(x, row, columns, node, branches, thresholds)
            for c in range(n_classes):
                sums[row, c] += given[c] / divisor


@borrowing
def _next(  # noqa: PLR0917  compiled functions take arrays
    x: Floats, row: int, columns: Integers, node: int, branches: Integers, thresholds: Floats
) -> int:
    """Return the node below; NONE below a leaf."""
    if branches[node, 0] == NONE:
        return NONE
    is_right = x[row, columns[branches[node, 0]]] > thresholds[node]
    return int(branches[node, 2 if is_right else 1])


@compiled
def _path(
    x: Floats, columns: Integers, root: int, branches: Integers, thresholds: Floats
) -> Integers:
    """Return the first row's path: each node, its column, the other child, whether it goes right.

    The last node is a leaf, of which the column and the other child are NONE.
    """
    length, node = 0, root
    while node != NONE:
        node = _next(x, 0, columns, node, branches, thresholds)
        length += 1
    path = np.full((length, 4), NONE, np.int32)
    node = root
    for k in range(length - 1):
        below = _next(x, 0, columns, node, branches, thresholds)
        is_right = below == branches[node, 2]
        path[k, 0], path[k, 1] = node, columns[branches[node, 0]]
        path[k, 2], path[k, 3] = branches[node, 1 if is_right else 2], is_right
        node = below
    path[length - 1, 0] = node
    return path


@borrowing
def _give(path: Integers, portions: Floats, shares: Floats, parts: Floats) -> None:
    """Add up what the nodes of a path give, from the root on."""
    rest = 1.0
    for k in range(path.shape[0]):
        node = path[k, 0]
        for c in range(shares.shape[1]):
            before = parts[k - 1, c] if k else 0.0
            parts[k, c] = before + rest * portions[node] * shares[node, c]
        rest *= 1.0 - portions[node]
        parts[k, shares.shape[1]] = rest
