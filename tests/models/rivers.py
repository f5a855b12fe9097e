"""River's classifiers, regressors, anomaly detectors and clusterers, each in a model stage.

Run as a module, it prints a digest of what each publishes: the same whatever the hash seed.
"""

import hashlib
import importlib
import inspect
import pkgutil
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
import river
from river import anomaly, bandit, base, linear_model, metrics

from fluxplain.config import Config, ConfigError, check_references
from fluxplain.schemas import Record
from fluxplain.stages import ModelStage, process
from tests.kit.support import encoded, message, pickled

CLASSIFIERS = (base.Classifier, base.MultiLabelClassifier, base.Clusterer)
REGRESSORS = (base.Regressor, base.MultiTargetRegressor)
DETECTORS = (base.AnomalyDetector, base.AnomalyFilter, base.SupervisedAnomalyDetector)

LOSSES = {"boolean": "brier", "number": "squared_error", "none": "minus_score"}

RECORDS = 60


@cache
def estimators() -> dict[str, Any]:
    """Return ``module:Class`` → class of all that predict something."""
    found = {}
    for module in pkgutil.iter_modules(river.__path__, "river."):
        for name, value in vars(importlib.import_module(module.name)).items():
            is_one = inspect.isclass(value) and not inspect.isabstract(value)
            if is_one and issubclass(value, (*CLASSIFIERS, *REGRESSORS, *DETECTORS)):
                found[f"{module.name}:{name}"] = value
    return found


def label(name: str) -> str:
    estimator = estimators()[name]
    if issubclass(estimator, DETECTORS):
        return "none"
    return "number" if issubclass(estimator, REGRESSORS) else "boolean"


def make(name: str, seed: int) -> Any:
    """Return an estimator, with the arguments that River tests it with, or ours, and the seed."""
    estimator = estimators()[name]
    arguments = _arguments(name) or next(iter(estimator._unit_test_params()))
    if "seed" in inspect.signature(estimator).parameters:
        arguments = {"seed": seed, **arguments}
    return estimator(**arguments)


def _arguments(name: str) -> dict[str, Any]:
    """Return arguments where River has none, or such as leave something to chance."""
    logistic, linear = linear_model.LogisticRegression, linear_model.LinearRegression
    sampled = {"classifier": logistic(), "desired_dist": {False: 0.5, True: 0.5}}
    classifiers = {
        "models": [logistic(l2=l2) for l2 in (0.0, 0.1)],
        "metric": metrics.Accuracy(),
    }
    absolute = {"func": abs, "inverse_func": abs}
    policy = {"policy": bandit.EpsilonGreedy(0.2, seed=1)}
    trees = anomaly.HalfSpaceTrees(n_trees=3, window_size=20, seed=1)
    given: dict[str, dict[str, Any]] = {
        "anomaly:ThresholdFilter": {"anomaly_detector": trees, "threshold": 0.95},
        "compose:TargetTransformRegressor": {"regressor": linear(), **absolute},
        "imblearn:RandomOverSampler": sampled,
        "imblearn:RandomSampler": sampled,
        "imblearn:RandomUnderSampler": sampled,
        "model_selection:BanditClassifier": {**classifiers, **policy},
        "model_selection:BanditRegressor": {
            "models": [linear(l2=l2) for l2 in (0.0, 0.1)],
            "metric": metrics.MAE(),
            **policy,
        },
        "model_selection:SuccessiveHalvingClassifier": {**classifiers, "budget": 30},
        "preprocessing:TargetMinMaxScaler": {"regressor": linear()},
        "preprocessing:TargetStandardScaler": {"regressor": linear()},
    }
    return given.get(name.removeprefix("river."), {})


def settings(name: str, methods: tuple[str, ...] = ("ipfi", "isage", "ipdp")) -> Config:
    return Config(
        features=dict.fromkeys("abc", "numeric"),
        label={"type": label(name)},
        model={"factory": "tests.models.rivers:make", "params": {"name": name}},
        explain={
            "methods": list(methods),
            "loss": LOSSES[label(name)],
            "ipfi": {"reservoir_size": 10},
            "isage": {"reservoir_size": 10, "inner_samples": 2},
            "ipdp": {"storage_size": 10, "grid_size": 3},
        },
    )


def values(kind: str) -> Iterator[dict[str, Any]]:
    rng = random.Random(1)
    for _ in range(RECORDS):
        a, b, c = rng.random(), rng.random(), rng.random()
        y = {"boolean": a + b > 1.0, "number": 2.0 * a - b}.get(kind)
        yield {"x": {"a": a, "b": b, "c": c}, "y": y}


def published(config: Config, *, restarted_at: int | None = None) -> list[bytes]:
    stage = ModelStage(config, "fluxplain.features-0")
    records: list[Record] = []
    for seq, value in enumerate(values(config.label.type)):
        if seq == restarted_at:
            stage = pickled(stage)
        records += process(stage, message(seq, value))
    return encoded(records)


def refusal(config: Config) -> str | None:
    try:
        check_references(config)
    except ConfigError as error:
        return str(error)
    return None


def main() -> None:
    """Print a digest of each estimator that can be used."""
    for name in estimators():
        config = settings(name)
        if refusal(config) is None:
            digest = hashlib.sha256(b"\n".join(published(config))).hexdigest()
            print(orjson.dumps([name, digest]).decode())


if __name__ == "__main__":
    main()
