"""Anomaly detectors: explained through their score, with labels and without."""

import pickle
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from river import anomaly, compose

from fluxplain.config import Config, ConfigError, check_references
from fluxplain.evaluate import choose
from fluxplain.local import LocalPipeline
from fluxplain.models import FaultClassifier, from_river, minus_score
from fluxplain.models.model_store import ModelFolder
from fluxplain.models.scores import Scored
from fluxplain.schemas import DeadLetter, Evaluation, Explanation, Prediction
from fluxplain.stages import ModelStage
from tests.kit.announced import announcement, taken
from tests.kit.support import Constant, message, of_kind, pickled, run

STREAM = "fluxplain.features-0"


class FarFrom:
    """How far the number is from the mean; the user's own detector."""

    def __init__(self) -> None:
        self.mean, self.n = 0.0, 0

    def learn_one(self, x: Mapping[str, Any]) -> None:
        self.n += 1
        self.mean += (x["a"] - self.mean) / self.n

    def score_one(self, x: Mapping[str, Any]) -> float:
        return abs(float(x["a"]) - self.mean)


class FarTogether(FarFrom):
    """The same, asked about many observations in one call."""

    def score_many(self, rows: Sequence[Mapping[str, Any]]) -> list[float]:
        return [self.score_one(x) for x in rows]


def config(factory: str = "tests.models.test_scores:FarFrom", **more: Any) -> Config:
    tables: dict[str, Any] = {
        "features": {"a": "numeric", "b": "numeric"},
        "label": {"type": "none"},
        "model": {"factory": factory},
        "explain": {
            "loss": "minus_score",
            "emit_every": 1,
            "ipfi": {"reservoir_size": 5, "inner_samples": "all"},
            "isage": {"reservoir_size": 5, "inner_samples": "all"},
            "ipdp": {"storage_size": 5, "grid_size": 3},
        },
        **more,
    }
    return Config(**tables)


RECORDS = [{"x": {"a": 1.0 if i % 2 else -1.0, "b": float(i % 3)}} for i in range(20)]
UNUSUAL = {"x": {"a": 9.0, "b": 1.0}, "y": "no label is read"}


@pytest.mark.parametrize(("factory", "kind"), [("FarFrom", "generic"), ("FarTogether", "batch")])
def test_what_makes_a_score_is_important(factory: str, kind: str) -> None:
    settings = config(f"tests.models.test_scores:{factory}")
    check_references(settings)
    assert choose(settings.make_model()).kind == kind
    pipeline = LocalPipeline(settings)
    for seq, record in enumerate([*RECORDS, UNUSUAL]):
        records = pipeline.step(seq, message(seq, record).value)
    [prediction] = of_kind(records, Prediction)
    score = prediction.prediction
    assert isinstance(score, float)
    assert score == pytest.approx(9.0, abs=0.1)
    assert (prediction.loss, prediction.y) == (-score, None)
    last = {(e.method, e.feature): e.increments[-1] for e in of_kind(records, Explanation)}
    # other values of a are 1 from the mean; b plays no part
    assert last["ipfi", "a"] == pytest.approx(8.0, abs=0.3)
    assert last["ipfi", "b"] == 0.0
    # all that is above the mean score, which is smoothed, and so not quite that of the reservoir
    assert last["isage", "a"] > 6.0 > abs(last["isage", "b"]) * 6.0
    assert last["ipdp", "a"] > 0.0
    assert last["ipdp", "b"] == 0.0


def test_it_learns_from_every_observation_and_survives_a_restart() -> None:
    stage = ModelStage(config(), STREAM)
    half = len(RECORDS) // 2
    first = run(stage, [message(i, record) for i, record in enumerate(RECORDS[:half])])
    rest = [message(i, record) for i, record in enumerate(RECORDS[half:], start=half)]
    again = run(pickled(stage), rest)
    assert again == run(stage, rest)
    assert stage.model.detector.n == len(RECORDS)
    assert not of_kind(first + again, DeadLetter)
    assert of_kind(again, Evaluation)


def test_minus_score_is_of_scores_only() -> None:
    assert minus_score("whatever", 0.25) == -0.25
    with pytest.raises(TypeError, match="needs a score"):
        minus_score(True, {True: 1.0})


def test_a_filter_says_whether_something_is_a_fault() -> None:
    trees = anomaly.HalfSpaceTrees(window_size=50, seed=1)
    model = FaultClassifier(anomaly.QuantileFilter(trees, q=0.95))
    rng = random.Random(1)
    for _ in range(300):
        model.learn_one({"a": rng.uniform(0.4, 0.6)}, None)
    assert model.predict_proba_one({"a": 0.5}) == {False: 1.0, True: 0.0}
    assert model.predict_proba_one({"a": 0.95}) == {False: 0.0, True: 1.0}


def test_a_score_that_is_no_probability_is_told() -> None:
    model = FaultClassifier(FarFrom())
    with pytest.raises(ValueError, match=r"score 2.5 is not a probability.*QuantileFilter"):
        model.predict_proba_one({"a": 2.5})


@pytest.mark.parametrize(
    ("label", "kind"), [("boolean", FaultClassifier), ("none", compose.Pipeline)]
)
def test_a_pipeline_that_ends_with_a_detector_fits_the_labels(label: str, kind: type) -> None:
    steps = ["river.preprocessing:MinMaxScaler", "river.anomaly:HalfSpaceTrees"]
    model = from_river(steps, label=label, seed=1)
    assert type(model) is kind
    assert str(model) == "MinMaxScaler | HalfSpaceTrees"
    assert str(Scored(model)) == str(model)


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ({"explain": {"loss": "cross_entropy"}}, ["explain.loss", "'none'", "minus_score"]),
        (
            {"label": {"type": "number"}},
            ["explain.loss is 'minus_score'", "'number'", "squared_error"],
        ),
        (
            {"label": {"type": "number"}, "explain": {"loss": "squared_error"}},
            ["FarFrom", "no predict_one", "set label.type to 'none'"],
        ),
        (
            {"model": {"factory": "river.linear_model:LinearRegression"}},
            ["LinearRegression", "no score_one"],
        ),
    ],
)
def test_what_does_not_fit_together_is_told(more: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        check_references(config(**more))
    assert all(part in str(error.value) for part in parts), str(error.value)


@pytest.mark.parametrize(
    ("key", "value", "shown"), [("column", "fault", "'fault'"), ("topic", True, "true")]
)
def test_there_is_no_column_and_no_topic_of_labels(key: str, value: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=f"{key} is {shown}, but type is 'none'"):
        config(label={"type": "none", key: value})


def test_nothing_waits_for_a_label() -> None:
    stage = ModelStage(config(), STREAM)
    first, *_ = run(stage, [message(0, {"id": "a", **RECORDS[0]})])
    assert isinstance(first, Prediction)
    assert (first.labels, first.y) == (None, None)
    [letter] = of_kind(run(stage, [message(1, {"id": "a", "y": True})]), DeadLetter)
    assert letter.reason == "a label that comes later is not wanted: label.type is 'none'"


def test_another_detector_takes_over_and_what_is_none_does_not(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path)
    other = FarFrom()
    other.mean, other.n = 100.0, 1000
    settings = config(
        control={"topic": True},
        model={
            "factory": "tests.models.test_scores:FarFrom",
            "directory": str(tmp_path),
            "learn": False,
        },
    )
    values: list[Any] = [
        *RECORDS[:3],
        announcement(folder.put(pickle.dumps(Constant())), "constant"),
        *RECORDS[3:6],
        announcement(folder.put(pickle.dumps(other)), "far"),
        *RECORDS[6:9],
    ]
    records = taken(settings, values)
    [letter] = of_kind(records, DeadLetter)
    assert letter.reason == (
        "model constant cannot take over: it is a Constant, which has no score_one: "
        "it needs score_one"
    )
    scores = [each.prediction for each in of_kind(records, Prediction)]
    assert scores[:6] == [1.0] * 6
    assert scores[6:] == [101.0, 99.0, 101.0]
