"""The models that exist as River's objects and as arrays, and parameters for each."""

import pickle
from collections.abc import Mapping
from typing import Any

from river import base, drift, forest, metrics, tree

from fluxplain.forest import ARFClassifier, HoeffdingTreeClassifier
from tests.forest.streams import Stream

TREE: dict[str, dict[str, Any]] = {
    "defaults": {},
    "majority": {"leaf_prediction": "mc"},
    "bayes": {"leaf_prediction": "nb", "nb_threshold": 30},
    "gini": {"split_criterion": "gini"},
    "hellinger": {"split_criterion": "hellinger", "tau": 0.2},
    "shallow": {"max_depth": 2},
    "binary": {"binary_split": True},
    "no null split": {"merit_preprune": False},
    "poor features off": {"remove_poor_attrs": True, "leaf_prediction": "mc", "delta": 0.3},
    "stops growing": {"stop_mem_management": True, "grace_period": 10, "tau": 0.2},
    "branches and shares": {"min_branch_fraction": 0.2, "max_share_to_split": 0.6},
    "nominal numbers": {"nominal_attributes": ["d", "elevel", "digit"]},
    "thresholds": {"splitter": tree.splitter.GaussianSplitter(n_splits=3)},
}
"""Parameters that trees and forests have."""

FOREST: dict[str, dict[str, Any]] = {
    **TREE,
    "all features": {"max_features": None},
    "one feature": {"max_features": 1, "grace_period": 20, "delta": 0.1},
    "half of the features": {"max_features": 0.5, "grace_period": 30},
    "log2": {"max_features": "log2"},
    "equal votes": {"disable_weighted_vote": True, "lambda_value": 1},
    "no detectors": {"drift_detector": drift.NoDrift(), "warning_detector": drift.NoDrift()},
    "another detector": {
        "drift_detector": drift.PageHinkley(threshold=5),
        "warning_detector": drift.NoDrift(),
    },
    "log loss": {"metric": metrics.LogLoss()},
}

LIMITED: dict[str, Any] = {
    "max_size": 0.05,
    "memory_estimate_period": 500,
    "grace_period": 20,
    "delta": 0.1,
}
"""Parameters of trees that outgrow their limit of memory."""

KINDS: dict[str, tuple[Any, Any, dict[str, Any], dict[str, dict[str, Any]]]] = {
    "ARFClassifier": (forest.ARFClassifier, ARFClassifier, {"n_models": 4, "seed": 1}, FOREST),
    "HoeffdingTreeClassifier": (
        tree.HoeffdingTreeClassifier,
        HoeffdingTreeClassifier,
        {"grace_period": 50, "tau": 0.1},
        TREE,
    ),
}
"""Name → River's class, ours, what all tests give them, and sets of more parameters."""

CASES = [(kind, parameters) for kind, (*_, each) in KINDS.items() for parameters in each]


def pair(kind: str, parameters: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return River's model and ours with the same parameters."""
    theirs, ours, common, _ = KINDS[kind]
    given = {**common, **parameters}
    return theirs(**given), ours(**given)


def learn_both(river: Any, ours: Any, stream: Stream) -> tuple[Any, Any]:
    """Let both learn, compare each prediction, and convert and pickle them on the way."""
    for i, (x, y) in enumerate(stream):
        if i == len(stream) // 3 and ours.river is None:
            ours = type(ours).from_river(river)
        if i == len(stream) // 2:  # River's sets have another order then, which decides ties
            ours, river = pickle.loads(pickle.dumps((ours, river)))
        expected, given = river.predict_proba_one(x), ours.predict_proba_one(x)
        assert [*given.items()] == [*expected.items()], i
        river.learn_one(x, y)
        ours.learn_one(x, y)
    return river, ours


def summary(model: base.Classifier) -> list[Any]:
    """Return what the trees have become, and the state of the random numbers."""
    trees = model.data if isinstance(model, forest.ARFClassifier) else [model]
    found: list[Any] = [(each.summary, each.classes) for each in trees if each._root is not None]
    if isinstance(model, forest.ARFClassifier):
        found += [model._rng.getstate(), model.n_drifts_detected(), model.n_warnings_detected()]
    return found
