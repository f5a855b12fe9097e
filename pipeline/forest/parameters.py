"""River's parameters of a tree as numbers for compiled loops, always of the same types."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from river.tree.splitter import GaussianSplitter

from fluxplain.forest.criteria import GINI, HELLINGER, INFO_GAIN
from fluxplain.forest.names import Names, UnsupportedError, ranks_of
from fluxplain.forest.pool import Size
from fluxplain.forest.state import (
    ADAPTIVE,
    BAYES,
    BETTER,
    LINEAR,
    MAJORITY,
    MEANS,
    Flags,
    Settings,
)

_PREDICTIONS = {
    "mc": MAJORITY,
    "nb": BAYES,
    "nba": ADAPTIVE,
    "mean": MEANS,
    "model": LINEAR,
    "adaptive": BETTER,
}

DEFAULT_SPLITS: int = GaussianSplitter().n_splits

_CRITERIA = {"info_gain": INFO_GAIN, "gini": GINI, "hellinger": HELLINGER}


def settings_of(given: Mapping[str, Any], names: Names, size: Size) -> Settings:
    """Return what the arrays follow of a tree's parameters."""
    classes = names.classes
    most = max((len(each) for each in names.categories if each is not None), default=0)
    category_ranks = np.zeros((size.features, max(most, 1)), dtype=np.int64)
    for feature, categories in enumerate(names.categories):
        if categories:
            category_ranks[feature] = ranks_of(categories, category_ranks.shape[1])
    return Settings(
        prediction=_PREDICTIONS[given["leaf_prediction"]],
        criterion=_CRITERIA[given["split_criterion"]],
        nb_threshold=float(given["nb_threshold"]),
        max_depth=float(
            sys.getrecursionlimit() - 20 if given["max_depth"] is None else given["max_depth"]
        ),
        n_splits=_splits(given["splitter"]),
        binary_split=bool(given["binary_split"]),
        merit_preprune=bool(given["merit_preprune"]),
        remove_poor_attrs=bool(given["remove_poor_attrs"]),
        stop_mem_management=bool(given["stop_mem_management"]),
        min_branch_fraction=float(given["min_branch_fraction"]),
        max_share_to_split=float(given["max_share_to_split"]),
        zero=classes.get(0, -1),
        one=classes.get(1, -1),
        ranks=ranks_of(classes, size.classes),
        category_ranks=category_ranks,
        nominal=_nominal(names, size),
        max_bytes=float(given["max_size"] * 2.0**20),
        period=_period(given["memory_estimate_period"]),
        two=2.0,
        half=0.5,
    )


def _nominal(names: Names, size: Size) -> Flags:
    nominal = np.zeros(size.features, np.bool_)
    nominal[: len(names.categories)] = [each is not None for each in names.categories]
    return nominal


def _period(weight: float) -> float:
    """Return after which weight sizes are estimated, or raise ``UnsupportedError``."""
    if not weight > 0:
        raise UnsupportedError(f"memory_estimate_period is {weight}")
    return float(weight)


def _splits(splitter: Any) -> int:
    """Return how many thresholds a splitter tries; raise ``UnsupportedError`` for another one."""
    if splitter is None:
        return DEFAULT_SPLITS
    if type(splitter) is not GaussianSplitter:
        raise UnsupportedError(f"its splitter is a {type(splitter).__name__}")
    if type(splitter.n_splits) is not int:
        raise UnsupportedError(f"its splitter makes {splitter.n_splits} splits")
    return splitter.n_splits
