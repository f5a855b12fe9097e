"""Each of River's estimators: explained, repeatable to the bit, or refused with a reason."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import orjson
import pytest

from tests.models.rivers import estimators, published, refusal, settings

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
        [sys.executable, "-W", "ignore", "-m", "tests.models.rivers"],
        stdout=subprocess.PIPE,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return dict(map(orjson.loads, result.stdout.splitlines()))


@pytest.mark.slow
def test_no_hash_seed_changes_anything() -> None:
    assert digests("1") == digests("2")
    assert len(digests("1")) == len([name for name in NAMES if not is_refused(name)])
