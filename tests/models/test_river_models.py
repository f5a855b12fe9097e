"""Each of River's estimators: explained, repeatable to the bit, or refused with a reason.

Run as a module, it prints a digest of what each publishes: the same whatever the hash seed.
"""

import hashlib
import importlib
import inspect
import os
import pkgutil
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pytest
import river
from river import anomaly, bandit, base, linear_model, metrics

from fluxplain.config import Config, ConfigError, check_references
from fluxplain.schemas import Record
from fluxplain.stages import ModelStage, process
from tests.kit.support import encoded, message, pickled, singles

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
        model={"factory": "tests.models.test_river_models:make", "params": {"name": name}},
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


def published(
    config: Config, *, restarted_at: int | None = None, limit: int = RECORDS
) -> list[bytes]:
    stage = ModelStage(config, "fluxplain.features-0")
    records: list[Record] = []
    for seq, value in enumerate(islice(values(config.label.type), limit)):
        if seq == restarted_at:
            stage = pickled(stage)
        records += singles(process(stage, message(seq, value)))
    return encoded(records)


def refusal(config: Config) -> str | None:
    try:
        check_references(config)
    except ConfigError as error:
        return str(error)
    return None


NOT_ONE = "not one class, number or score"

REFUSED = {
    "active:EntropySampler": NOT_ONE,
    **dict.fromkeys(
        ("anomaly:GaussianScorer", "anomaly:StandardAbsoluteDeviation"), "score_one must take (x)"
    ),
    "anomaly:PredictiveAnomalyDetection": "score_one must take (x)",
    **{
        f"cluster:{name}": NOT_ONE
        for name in (
            *("CluStream", "DBSTREAM", "DenStream", "KMeans", "ODAC", "STREAMKMeans"),
            "TextClust",
        )
    },
    **{
        f"multioutput:{name}": NOT_ONE
        for name in (
            *("ClassifierChain", "MonteCarloClassifierChain", "ProbabilisticClassifierChain"),
            *("RegressorChain", "MultiClassEncoder", "PerOutputRegressor", "PerOutputClassifier"),
        )
    },
    "tree:ISOUPTreeRegressor": NOT_ONE,
}
"""Which cannot be explained, and a part of the reason that is told."""

NEEDS_PYTHON = {"misc:ZstdClassifier": (3, 14)}

NAMES = [name.removeprefix("river.") for name in estimators()]


def is_refused(name: str) -> bool:
    return name in REFUSED or sys.version_info < NEEDS_PYTHON.get(name, (3, 0))


@pytest.mark.sampled(14)
@pytest.mark.parametrize("name", [name for name in NAMES if not is_refused(name)])
def test_is_explained_the_same_each_time_also_after_a_restart(name: str) -> None:
    config = settings(f"river.{name}")
    assert refusal(config) is None
    whole = published(config)
    assert sum(b'"ipfi":[[' in record for record in whole) == 150, "all but the first 10, of 3"
    assert published(config, restarted_at=30) == whole
    rarely = published(settings(f"river.{name}", ("ipdp",)))
    asked, seldom = ([each for each in all_ if b'"id":' in each] for all_ in (whole, rarely))
    assert asked == seldom, "being asked does not change the model"


@pytest.mark.parametrize("name", [name for name in NAMES if is_refused(name)])
def test_what_cannot_be_explained_is_refused(name: str) -> None:
    reason = refusal(settings(f"river.{name}"))
    assert REFUSED.get(name, "requires Python") in (reason or "")


def test_all_that_predicts_is_among_them() -> None:
    assert len(NAMES) >= 90
    assert set(REFUSED) <= set(NAMES)


@cache
def digests(hash_seed: str) -> dict[str, str]:
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.models.test_river_models"],
        stdout=subprocess.PIPE,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return dict(map(orjson.loads, result.stdout.splitlines()))


@pytest.mark.slow
def test_no_hash_seed_changes_anything() -> None:
    found = digests("1")
    assert found == digests("2")
    assert len(found) == len([name for name in NAMES if not is_refused(name)])


if __name__ == "__main__":
    for name in filter(lambda each: not is_refused(each), NAMES):
        records = published(settings(f"river.{name}"), limit=RECORDS // 2)
        print(orjson.dumps([name, hashlib.sha256(b"\n".join(records)).hexdigest()]).decode())
