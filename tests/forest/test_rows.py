"""What arrays answer about many changed inputs at once is what they answer about each."""

from random import Random
from typing import Any

import numpy as np
import pytest

from fluxplain.evaluate import Encoding, Inputs, evaluator_for
from tests.forest.models import outcome, pair, stream_of
from tests.forest.parameters import HASTY
from tests.forest.streams import STREAMS, Stream

CASES: list[tuple[str, dict[str, Any]]] = [
    ("ARFClassifier", {}),
    ("HoeffdingTreeClassifier", {"grace_period": 20}),
    ("HoeffdingTreeRegressor", {}),
    ("HoeffdingTreeRegressor", {"leaf_prediction": "mean"}),
    ("ARFRegressor", {"aggregation_method": "mean", "disable_weighted_vote": False}),
    ("LeveragingBaggingClassifier", {}),
    *[
        ("HoeffdingAdaptiveTreeRegressor", {**HASTY, "leaf_prediction": prediction})
        for prediction in ("mean", "adaptive")
    ],
    *[
        ("HoeffdingAdaptiveTreeClassifier", {**HASTY, "leaf_prediction": prediction})
        for prediction in ("mc", "nb", "nba")
    ],
]


def changed(records: Stream, x: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an observation, and inputs that differ from it in some values."""
    found = [x]
    for k, (other, _) in enumerate(records):
        names = [name for name in x if name in other][k % 3 :: 1 + k % 4]
        found.append({**x, **{name: other[name] for name in names}})
    for name, own in x.items():  # as the points of a grid
        values = [other[name] for other, _ in records if name in other]
        if isinstance(own, float):
            values = sorted(values)
        found += [{**x, name: value} for value in values]
    return found


@pytest.mark.parametrize(("kind", "parameters"), CASES)
@pytest.mark.parametrize(
    "stream",
    [pytest.param(each, marks=[] if each == "missing" else pytest.mark.slow) for each in STREAMS],
)
def test_rows_are_answered_as_if_each_were_asked(
    kind: str, parameters: dict[str, Any], stream: str
) -> None:
    records = stream_of(kind, stream, 600, parameters)
    _, model = pair(kind, parameters)
    for i, (x, y) in enumerate(records):
        outcome(model.learn_one, x, y)
        if i % 60 == 59 and x and model.river is None:
            rows = changed(records[i - 15 : i], x)
            coded = np.array([[model.code(name, row[name]) for name in x] for row in rows])
            labels, numbers = model.answer_rows(tuple(x), coded[0], coded)
            for row, given in zip(rows, numbers.tolist(), strict=True):
                if kind.endswith("Regressor"):
                    assert repr(given) == repr([model.predict_one(row)])
                    continue
                asked = model.predict_proba_one(row)
                assert [*zip(labels, given, strict=True)] == [*asked.items()]


NUMBERED: Any = {
    "numbers": lambda rng: rng.choice((7, 15, 100)),
    "flags": lambda rng: rng.random() < 0.5,
    "fractions": lambda rng: rng.choice((0.5, -0.0, 2.0**60)),
}
"""Values that River takes as categories if the feature is named so."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("beside", ["text", 0.5])
@pytest.mark.parametrize("values", NUMBERED)
@pytest.mark.parametrize(
    "kind",
    ["HoeffdingTreeClassifier", "ARFClassifier", "HoeffdingTreeRegressor", "BaggingClassifier"],
)
def test_numbers_that_are_categories_are_told_apart(kind: str, values: str, beside: Any) -> None:
    """An encoding takes them as numbers, unless it was told about them."""
    rng = Random(1)
    given = {"nominal_attributes": ["code"], "grace_period": 20}
    if kind == "ARFClassifier":
        given["max_features"] = None
    if kind.endswith("Regressor"):
        given["leaf_prediction"] = "mean"
    _, model = pair(kind, given)
    codes = sorted({NUMBERED[values](rng) for _ in range(50)})
    told, untold = Encoding(), Encoding()
    told.learn({"code": "text"})
    answered = set[str]()
    for _ in range(300):
        code = rng.choice(codes)
        x = {"code": code, "v": rng.random(), "beside": beside}
        model.learn_one(x, int((code == codes[-1]) != (rng.random() < 0.05)))
        for encoding in (told, untold):
            rows = [{**x, "code": other} for other in codes]
            table = evaluator_for(model)(Inputs.replacing(encoding.observe(x), rows))
            outputs = table.outputs()
            ask = getattr(model, "predict_proba_one", model.predict_one)
            assert outputs == [ask(row) for row in rows]
            answered |= {str(each) for each in outputs}
    assert model.river is None
    assert len(answered) > 100
