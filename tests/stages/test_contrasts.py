"""The model is compared with an older one, and the cause of a change is named."""

import pickle
import random
from itertools import pairwise
from typing import Any

import orjson
import pytest

from fluxplain.evaluate import encoding
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Change, Explanation
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.methods import Method
from fluxplain.stages import contrasts
from fluxplain.stages.contrasts import EVERY
from tests.kit import support as kit
from tests.kit.stages import local
from tests.measure.behind import streams
from tests.measure.behind.__main__ import records_of
from tests.measure.behind.streams import BEGIN

SHORT = BEGIN - 2500
"""Observations that are left out at the beginning: older models exist after 2,000, and the change
is compared for 1,000."""


SOON = 100
"""Observations between two copies of the model, in short streams."""


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the model often."""
    monkeypatch.setattr(contrasts, "AGE", SOON)


def published(name: str, method: Method = "ipfi") -> list[tuple[Explanation, Contrast]]:
    """Return explanations of a short stream with their contrasts."""
    records = records_of(streams.CAUSES[name], seed=1, methods=(method,), end=5 * SOON)
    explanations = kit.of_kind(records, Explanation)
    return [(e, each) for e in explanations for each in e.contrasts or ()]


@pytest.mark.slow
@pytest.mark.parametrize("name", streams.CAUSES)
def test_the_cause_of_the_largest_change_is_named(name: str) -> None:
    records = records_of(streams.CAUSES[name], seed=1, methods=("ipfi",), begin=SHORT)
    causes = [c for c in kit.of_kind(records, Change) if c.cause is not None]
    largest = max(causes, key=lambda c: c.effect_size or 0.0)
    assert largest.cause is not None
    assert largest.cause.kind == name.partition(",")[0]


@pytest.mark.usefixtures("soon")
def test_one_of_some_observations_is_compared_with_a_model_old_enough() -> None:
    found = [each for e, each in published("model") if e.feature == "x0"]
    assert [each.seq % EVERY for each in found] == [0] * len(found)
    assert {SOON <= each.seq - each.since <= 2 * SOON for each in found} == {True}
    assert len({each.since for each in found}) > 1


@pytest.mark.usefixtures("soon")
def test_a_model_that_does_not_learn_is_the_older_one() -> None:
    found = [each for _, each in published("data")]
    assert {(each.new - each.old, each.new_then - each.old_then) for each in found} == {(0.0, 0.0)}
    assert found


@pytest.mark.usefixtures("soon")
def test_that_of_a_curve_is_its_increment() -> None:
    found = published("model", "ipdp")
    for e, each in found:
        assert each.new == pytest.approx(e.increments[e.seqs.index(each.seq)], rel=1e-9)
    assert found


class Clock:
    """A model whose output is its input: the time."""

    def predict_one(self, x: dict[str, Any]) -> float:
        return float(x["a"])

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        """Learn nothing."""


@pytest.mark.usefixtures("soon")
def test_the_older_observations_are_as_far_apart_as_the_newer_ones() -> None:
    config = kit.linear_config(
        model=Clock,
        features={"a": "numeric"},
        explain={"methods": ["ipfi"], "ipfi": {"reservoir_size": 1}},
    )
    values = [orjson.dumps({"x": {"a": t}, "y": 0.0}) for t in range(5 * SOON)]
    explanations = kit.of_kind(local(config, values), Explanation)
    found = [each for e in explanations for each in e.contrasts or ()]
    for since in {each.since for each in found}:
        # all differ from the same replacement
        then = sorted(each.old_then for each in found if each.since == since)
        assert {b - a for a, b in pairwise(then)} == {float(EVERY)}
    assert len(found) > 2 * SOON // EVERY


@pytest.mark.slow
@pytest.mark.parametrize("name", ["data", "labels", "labels, more input"])
def test_of_a_model_that_does_not_learn_no_part_is_its_own(name: str) -> None:
    records = records_of(streams.CAUSES[name], seed=2, methods=("isage",), begin=SHORT)
    known = [c for c in kit.of_kind(records, Change) if c.cause is not None]
    [largest] = sorted(known, key=lambda c: c.effect_size or 0.0)[-1:]
    assert largest.cause is not None
    assert largest.cause.kind == name.partition(",")[0]
    assert {each.cause and each.cause.model for each in known} == {0.0}


class Locked(kit.Additive):
    """A model that cannot be copied."""

    def __deepcopy__(self, memo: object) -> "Locked":
        """Fail, like a lock."""
        raise TypeError("cannot pickle '_thread.lock' object")


@pytest.mark.usefixtures("soon")
def test_a_model_that_cannot_be_copied_is_explained_without_contrasts() -> None:
    config = kit.linear_config(model=Locked)
    records = local(config, kit.linear_records(3 * SOON))
    explanations = kit.of_kind(records, Explanation)
    assert explanations[-1].seq > 2 * SOON
    assert not any(each.contrasts for each in explanations)


class Names:
    """A model whose output depends on a number and on the characters of a text."""

    def __init__(self) -> None:
        self.weight = 0.0

    def predict_one(self, x: dict[str, Any]) -> float:
        return float(self.weight * x["a"] + sum(map(ord, x["name"])))

    def learn_one(self, _x: dict[str, Any], _y: float) -> None:
        self.weight += 0.01


@pytest.mark.usefixtures("soon")
def test_a_restart_changes_no_contrast_of_a_feature_with_many_categories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encoding, "MOST_CATEGORIES", SOON)
    config = kit.linear_config(
        model=Names,
        features={"a": "numeric", "name": "categorical"},
        explain={"methods": ["ipfi"], "ipfi": {"reservoir_size": 20}},
    )
    rng = random.Random(3)
    values = [
        orjson.dumps({"x": {"a": rng.gauss(0.0, 1.0), "name": f"m{t}"}, "y": rng.random()})
        for t in range(400)
    ]

    def records(restart_at: int) -> list[bytes]:
        pipeline, found = LocalPipeline(config), []
        for t, value in enumerate(values):
            if t == restart_at:
                pipeline = pickle.loads(pickle.dumps(pipeline))
            found += pipeline.step(t, value)
        explanations = kit.of_kind(found, Explanation)
        # of each comparison there are two contrasts, one for each feature
        compared = [c.seq for e in explanations for c in e.contrasts or ()]
        assert sorted(compared) == [seq for seq in sorted({*compared}) for _ in range(2)]
        assert {*compared} == {*range(min(compared), max(compared) + 1, EVERY)}
        return [each.encode() for each in found]

    expected = records(0)
    assert records(253) == expected
