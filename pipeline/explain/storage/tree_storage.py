"""Storages for conditional draws: trees with reservoirs in their leaves."""

import random
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from numbers import Real
from typing import Any

from river.stats import Var
from river.tree import HoeffdingAdaptiveTreeClassifier, HoeffdingAdaptiveTreeRegressor
from river.tree.nodes.branch import DTBranch
from river.tree.splitter.base import Splitter
from river.tree.utils import BranchFactory, combine_stats

from fluxplain.evaluate import Observation, Value
from fluxplain.explain.parameter_checks import check_size
from fluxplain.explain.randoms import below

MAX_DEPTH = 5
"""Largest number of splits above a leaf: 32 leaves resolve a condition well and bound memory."""

BINS = 32
"""Most bins of a numeric feature in a leaf, between which it may be split."""

MOST_CATEGORIES = 50
"""Largest number of categories that a tree distinguishes: a leaf counts them, and their pairs."""


class Codes:
    """Numbers the categories of some features; all after the first ones share one number."""

    def __init__(self, features: Collection[str]) -> None:
        self._tables: dict[str, dict[Value, int]] = {feature: {} for feature in features}

    def __contains__(self, feature: str) -> bool:
        """Return whether the feature is categorical."""
        return feature in self._tables

    def learn(self, x: Observation) -> None:
        """Number the categories of an observation."""
        for feature, table in self._tables.items():
            if feature in x and len(table) < MOST_CATEGORIES:
                table.setdefault(x[feature], len(table))

    def __call__(self, x: Observation) -> dict[str, float]:
        """Return the observation in numbers; raise ``ValueError`` if a numeric value is not one."""
        return {feature: self._number(feature, value) for feature, value in x.items()}

    def _number(self, feature: str, value: Value) -> float:
        table = self._tables.get(feature)
        if table is not None:
            return table.get(value, MOST_CATEGORIES)
        if not isinstance(value, float | int | Real):  # the first two are checked faster
            raise ValueError(
                f"{feature} is {value!r}, but must be a number unless it is categorical"
            )
        return value


class TreeStorage:
    """Values of one feature, in the leaves of a tree that predicts it from the other features.

    A leaf keeps the values that reach it: each new one replaces a random old one, as in a geometric
    reservoir. A new leaf's reservoir is empty, and an alternate subtree, which may take over after
    a drift, fills its own. A branch counts the observations passed to each child, discounted by
    (1 - 1/size) each time, so that the shares are as recent as the values; otherwise the marginal
    would follow a drift of the other features only after as many observations again.

    ``size`` is the number of values in a leaf. ``codes`` has the categorical features; several
    storages may share it.

    References
    ----------
    iSAGE (Muschalik et al. 2023), Section 3.2.2, Algorithms 3 and 4. The tree is the Hoeffding
    Adaptive Tree of Bifet and Gavaldà (2009).

    Examples
    --------
    ``b`` has the sign of ``a``:

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

        Raises ``ValueError`` if a numeric feature has a value that is not a number.
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
            values[below(self.size, self._rng)] = value

    def draws(self, x: Observation, hidden: Collection[str], n: int) -> list[Value]:
        """Return ``n`` independent draws, given the features that are not hidden.

        The stored feature is among the hidden ones. A branch on a visible feature follows the
        observation; on a hidden one, a random child, in proportion to the observations passed to
        each. Raises ``ValueError`` if nothing is stored yet, or as :meth:`update`.
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


class BinSplitter(Splitter):
    """Candidate splits of a regression tree, between a bounded number of bins of any width.

    A new value becomes a bin; of more than :data:`BINS`, the two nearest merge. River's own
    splitters keep every value, or need to know the scale of the numbers.

    References
    ----------
    Ben-Haim and Tom-Tov (2010), A Streaming Parallel Decision Tree Algorithm, Section 2.1,
    Algorithms 1 and 2.
    """

    def __init__(self) -> None:
        super().__init__()
        self._centres: list[float] = []
        self._targets: list[Var] = []

    @property
    def is_target_class(self) -> bool:
        """Whether it is for classification."""
        return False

    def update(self, att_val: float, target_val: float, w: float) -> None:
        """Take a value of the feature with its target."""
        centres, targets = self._centres, self._targets
        place = bisect_left(centres, att_val)
        if place < len(centres) and centres[place] == att_val:
            targets[place].update(target_val, w)
            return
        target = Var()
        target.update(target_val, w)
        centres.insert(place, att_val)
        targets.insert(place, target)
        if len(centres) > BINS:
            self._merge()

    def _merge(self) -> None:
        centres, targets = self._centres, self._targets
        gaps = [high - low for low, high in pairwise(centres)]
        place = gaps.index(min(gaps))
        gap, added = gaps[place], targets.pop(place + 1)
        share = added.n / (targets[place].n + added.n)
        targets[place] += added
        centres[place] += share * gap
        del centres[place + 1]

    def cond_proba(self, att_val: object, target_val: object) -> float:
        """Raise ``NotImplementedError``: only classification needs it."""
        raise NotImplementedError

    def best_evaluated_split_suggestion(
        self,
        criterion: Any,
        pre_split_dist: Var,
        att_idx: object,
        binary_only: bool,  # noqa: ARG002  River's interface
    ) -> BranchFactory:
        """Return the best threshold between two bins, or a suggestion not to split."""
        best, left = BranchFactory(), Var()
        for place in range(len(self._centres) - 1):
            left = left + self._targets[place]
            children = [left, combine_stats(pre_split_dist, left, subtract=True)]
            merit = criterion.merit_of_split(pre_split_dist, children)
            if merit > best.merit:
                threshold = (self._centres[place] + self._centres[place + 1]) / 2.0
                best = BranchFactory(merit, att_idx, threshold, children)
        return best
