"""Parameters of trees and forests for the comparison with River."""

from typing import Any

from river import drift, linear_model, metrics, optim, tree

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

REGRESSION_TREE: dict[str, dict[str, Any]] = {
    "defaults": {},
    "mean": {"leaf_prediction": "mean"},
    "model": {"leaf_prediction": "model"},
    "another learning rate": {
        "leaf_model": linear_model.LinearRegression(
            optim.SGD(0.001), l2=0.1, intercept_lr=0.1, intercept_init=2.0, clip_gradient=10.0
        ),
        "model_selector_decay": 0.5,
    },
    "shallow": {"max_depth": 2},
    "binary": {"binary_split": True, "leaf_prediction": "mean"},
    "no null split": {"merit_preprune": False},
    "poor features off": {"remove_poor_attrs": True, "delta": 0.3, "leaf_prediction": "mean"},
    "stops growing": {"stop_mem_management": True, "grace_period": 10, "tau": 0.2},
    "nominal numbers": {"nominal_attributes": ["d", "elevel", "digit"], "leaf_prediction": "mean"},
    "exact thresholds": {"splitter": tree.splitter.EBSTSplitter()},
    "rounded to tens": {"splitter": tree.splitter.TEBSTSplitter(digits=-1)},
}
"""Parameters that regression trees and forests of them have."""

REGRESSION_FOREST: dict[str, dict[str, Any]] = {
    **REGRESSION_TREE,
    "all features": {"max_features": None},
    "one feature": {"max_features": 1, "grace_period": 20, "delta": 0.1},
    "mean of trees": {"aggregation_method": "mean"},
    "weighted mean": {"aggregation_method": "mean", "disable_weighted_vote": False},
    "no detectors": {"drift_detector": drift.NoDrift(), "warning_detector": drift.NoDrift()},
    "another detector": {
        "drift_detector": drift.PageHinkley(threshold=5),
        "warning_detector": drift.NoDrift(),
    },
    "absolute error": {"metric": metrics.MAE(), "lambda_value": 2},
}

BAGGING = {
    name: TREE[name]
    for name in ("defaults", "majority", "binary", "poor features off", "stops growing")
}

LEVERAGING: dict[str, dict[str, Any]] = {
    **BAGGING,
    "at least once": {"bagging_method": "wt"},
    "at most once": {"bagging_method": "subag"},
}


HASTY: dict[str, Any] = {
    "drift_detector": drift.ADWIN(delta=0.5, clock=8, grace_period=5),
    "drift_window_threshold": 10,
    "switch_significance": 1.0,
    "grace_period": 20,
    "delta": 0.1,
}
"""Parameters of adaptive trees that often grow alternate trees, and switch to them."""

PATIENCE: dict[str, dict[str, Any]] = {
    "no bootstrap": {"bootstrap_sampling": False},
    "small window": {"drift_window_threshold": 20},
    "no window": {"drift_window_threshold": 0},
    "sure switches": {"switch_significance": 1e-4, "drift_window_threshold": 50},
    "hasty": HASTY,
    "hasty, shallow": {**HASTY, "max_depth": 1},
    "hasty, seldom splits": {**HASTY, "grace_period": 150},
    "no detector": {"drift_detector": drift.NoDrift()},
    "another detector": {
        "drift_detector": drift.PageHinkley(min_instances=20, threshold=3),
        "drift_window_threshold": 30,
    },
    "a detector that draws": {
        "drift_detector": drift.KSWIN(alpha=0.05, window_size=40, stat_size=10, seed=3),
        "drift_window_threshold": 30,
    },
}
"""Parameters that adaptive trees for classification and for regression have."""

ADAPTIVE: dict[str, dict[str, Any]] = {
    **TREE,
    **PATIENCE,
    "hasty, majority": {**HASTY, "leaf_prediction": "mc"},
    "hasty, bayes": {**HASTY, "leaf_prediction": "nb", "bootstrap_sampling": False},
    "hasty, binary": {**HASTY, "binary_split": True},
    "a binary detector": {
        "drift_detector": drift.binary.DDM(warm_start=10, drift_threshold=1.5),
        "drift_window_threshold": 30,
    },
}

ADAPTIVE_REGRESSION: dict[str, dict[str, Any]] = {
    **REGRESSION_TREE,
    **PATIENCE,
    "least samples": {"min_samples_split": 20},
    "hasty, mean": {**HASTY, "leaf_prediction": "mean"},
    "hasty, model": {**HASTY, "leaf_prediction": "model", "bootstrap_sampling": False},
    "hasty, binary": {**HASTY, "binary_split": True, "leaf_prediction": "mean"},
    "hasty, poor features off": {**HASTY, "remove_poor_attrs": True, "leaf_prediction": "mean"},
    "hasty, negative window": {**HASTY, "drift_window_threshold": -1, "leaf_prediction": "mean"},
}
"""Parameters that adaptive trees have."""

LIMITED: dict[str, Any] = {
    "max_size": 0.05,
    "memory_estimate_period": 250,
    "grace_period": 20,
    "delta": 0.1,
}
"""Parameters of trees that outgrow their limit of memory."""

SMALL = {"grace_period": 50, "tau": 0.1}
