"""Candidate splits of a number for regression trees, in bounded memory."""

from bisect import bisect_left
from itertools import pairwise
from typing import Any

from river.stats import Var
from river.tree.splitter.base import Splitter
from river.tree.utils import BranchFactory, combine_stats


class BinSplitter(Splitter):
    """Candidate splits of a regression tree, between a bounded number of bins of any width.

    A new value becomes a bin; if there are too many, the two nearest merge. River's own splitters
    keep every value, or need to know the scale of the numbers.

    Parameters
    ----------
    bins
        How many bins are kept, at least 2.

    References
    ----------
    Ben-Haim and Tom-Tov (2010), A Streaming Parallel Decision Tree Algorithm, Section 2.1,
    Algorithms 1 and 2.

    Examples
    --------
    >>> from river.tree.split_criterion import VarianceReductionSplitCriterion
    >>> splitter, seen = BinSplitter(4), Var()
    >>> for x in range(100):
    ...     splitter.update(float(x), float(x >= 50), 1.0)
    ...     seen.update(float(x >= 50))
    >>> best = splitter.best_evaluated_split_suggestion(
    ...     VarianceReductionSplitCriterion(), seen, "x", True
    ... )
    >>> 40 < best.split_info < 60
    True
    """

    def __init__(self, bins: int = 32) -> None:
        super().__init__()
        self.bins = bins
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
        if len(centres) > self.bins:
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
