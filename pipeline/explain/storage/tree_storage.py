"""Storages for conditional draws: trees with reservoirs in their leaves."""

import random
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from river.tree import HoeffdingAdaptiveTreeClassifier, HoeffdingAdaptiveTreeRegressor
from river.tree.nodes.branch import DTBranch

from fluxplain.evaluate import Observation, Value
from fluxplain.explain.parameter_checks import check_size
from fluxplain.explain.storage.bins import BinSplitter
from fluxplain.explain.storage.category_codes import Codes

MAX_DEPTH = 5
"""Largest number of splits above a leaf: 32 leaves resolve a condition well and bound memory."""


class TreeStorage:
    """Values of one feature, in the leaves of a tree that predicts it from the other features.

    A leaf keeps the values that reach it: each new one replaces a random old one, as in a geometric
    reservoir. A new leaf's reservoir is empty, and an alternate subtree, which may take over after
    a drift, fills its own. A branch counts the observations passed to each child, discounted by
    (1 - 1/size) each time, so that the shares are as recent as the values; otherwise the marginal
    would follow a drift of the other features only after as many observations again.

    Parameters
    ----------
    feature
        The feature whose values are stored.
    size
        Number of values in a leaf, at least 1.
    rng
        Source of random numbers.
    codes
        The categorical features with the numbers of their categories; may be shared.

    References
    ----------
    iSAGE (Muschalik et al. 2023), Section 3.2.2, Algorithms 3 and 4. The tree is the Hoeffding
    Adaptive Tree of Bifet and Gavaldà (2009).

    Examples
    --------
    ``b`` has the sign of ``a``:

    >>> from fluxplain.explain.storage import Codes
    >>> rng = random.Random(1)
    >>> storage = TreeStorage("b", 10, rng, Codes([]))
    >>> for _ in range(1000):
    ...     a = rng.uniform(-1.0, 1.0)
    ...     storage.update({"a": a, "b": 1.0 if a > 0.0 else -1.0})
    >>> set(storage.draws({"a": 0.5, "b": 1.0}, hidden={"b"}, n=20))
    {1.0}
    >>> sorted(set(storage.draws({"a": 0.5, "b": 1.0}, hidden={"a", "b"}, n=20)))
    [-1.0, 1.0]
    """

    def __init__(self, feature: str, size: int, rng: random.Random, codes: Codes) -> None:
        self.feature = feature
        self.size = check_size(size)
        self._rng = rng
        self._codes = codes
        self._tree: Any = None

    def __len__(self) -> int:
        """Return the number of values in all leaves."""
        return sum(map(len, self.leaves()))

    def leaves(self) -> Iterator[list[Value]]:
        """Return the values of each non-empty leaf, including those of alternate subtrees."""
        nodes = [self._tree._root] if self._tree is not None else []
        while nodes:
            node = nodes.pop()
            if isinstance(node, DTBranch):
                nodes += [*node.children, getattr(node, "_alternate_tree", None)]
            elif hasattr(node, "values"):
                yield node.values

    def update(self, x: Observation) -> None:
        """Learn the observation, then store its value in its leaf.

        Raises
        ------
        ValueError
            If a numeric feature has a value that is not a number.
        """
        self._codes.learn(x)
        numbers = self._codes(x)
        target = numbers.pop(self.feature)
        if self._tree is None:
            self._tree = _tree(self.feature in self._codes, [f for f in x if f in self._codes])
        # River compares the errors of two subtrees by their variances, which may both be 0
        with suppress(ZeroDivisionError):
            self._tree.learn_one(numbers, target)
        self._store(self._tree._root, numbers, x[self.feature])

    def _store(self, node: Any, numbers: dict[str, float], value: Value) -> None:
        keep = 1.0 - 1.0 / self.size
        while isinstance(node, DTBranch):
            alternate = getattr(node, "_alternate_tree", None)
            if alternate is not None:
                self._store(alternate, numbers, value)
            place = _place(node, numbers)
            node.passed = [keep * weight for weight in _passed(node)]
            node.passed[place] += 1.0
            node = node.children[place]
        values: list[Value] = node.__dict__.setdefault("values", [])
        if len(values) < self.size:
            values.append(value)
        else:
            values[self._rng.randrange(self.size)] = value

    def draws(self, x: Observation, hidden: Collection[str], n: int) -> list[Value]:
        """Return ``n`` values, given the features of the observation that are not hidden.

        A branch on a visible feature follows the observation; on a hidden one, a random child, in
        proportion to the observations passed to each.

        Parameters
        ----------
        x
            The observation.
        hidden
            The hidden features, among them the stored one.
        n
            Number of independent draws.

        Raises
        ------
        ValueError
            If nothing is stored yet, or as for :meth:`update`.
        """
        if self._tree is None:
            raise ValueError(f"no value of {self.feature} is stored yet")
        numbers = {f: v for f, v in self._codes(x).items() if f not in hidden}
        return [self._rng.choice(self._leaf(numbers).values) for _ in range(n)]

    def _leaf(self, numbers: dict[str, float]) -> Any:
        node = self._tree._root
        while isinstance(node, DTBranch):
            passed = _passed(node)
            place = _place(node, numbers) if node.feature in numbers else None
            # a child without observations is new and has no values yet
            if place is None or not passed[place]:
                [place] = self._rng.choices(range(len(passed)), passed)
            node = node.children[place]
        return node


def _passed(branch: Any) -> Sequence[float]:
    """Return how much the branch passed to each child."""
    passed: Sequence[float] = getattr(branch, "passed", (0.0, 0.0))
    return passed


def _place(branch: Any, numbers: dict[str, float]) -> int:
    """Return the child that the observation goes to; if it lacks the feature, as in River."""
    known = branch.feature in numbers
    place: int = branch.branch_no(numbers) if known else branch.most_common_path()[0]
    return place


def _tree(is_categorical: bool, nominal: list[str]) -> Any:
    """Return a tree of bounded size, deterministic and without memory measurements."""
    options: dict[str, Any] = {
        "max_depth": MAX_DEPTH,
        "binary_split": True,
        "nominal_attributes": nominal,
        "bootstrap_sampling": False,
        "memory_estimate_period": sys.maxsize,
    }
    if is_categorical:
        return HoeffdingAdaptiveTreeClassifier(leaf_prediction="mc", **options)
    return HoeffdingAdaptiveTreeRegressor(leaf_prediction="mean", splitter=BinSplitter(), **options)
