"""Metrics of the time that a worker's model takes."""

import pytest
from prometheus_client import CollectorRegistry

from fluxplain.kafka.metrics.worker_metrics import ModelTimes
from fluxplain.schemas.methods import METHODS
from fluxplain.stages import ModelStage
from fluxplain.stages.metering import Work
from tests.kit.support import linear_config, linear_records, messages_of, run

EVALUATION, PREDICTION, LEARNING, REASONS, CONTRASTS = (
    f"fluxplain_{work}_seconds_total"
    for work in ("evaluation", "prediction", "learning", "reasons", "contrasts")
)

NOTHING: dict[str, float] = {
    **dict.fromkeys(METHODS, 0.0),
    PREDICTION: 0.0,
    LEARNING: 0.0,
    REASONS: 0.0,
    CONTRASTS: 0.0,
}


class Clock:
    """Goes on by what its owner says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> str:
        self.now += seconds
        return "done"

    def fails(self, seconds: float) -> str:
        self.now += seconds
        raise ValueError("failed")


class Model:
    """Takes a second of a clock for each input, and ten to learn."""

    clock = Clock()

    def predict_one(self, x: dict[str, float]) -> float:
        self.clock.passes(1.0)
        return x["a"]

    def learn_one(self, _x: dict[str, float], _y: float) -> None:
        self.clock.passes(10.0)


class Times(ModelTimes):
    """The times of a model role's calls, by a clock."""

    def __init__(self, clock: Clock) -> None:
        self._registry = CollectorRegistry()
        super().__init__("model", self._registry, clock)

    def exported(self) -> dict[str, float]:
        """Return the values, by method or name."""
        samples = [each for family in self._registry.collect() for each in family.samples]
        samples = [each for each in samples if each.name.endswith("_total")]
        assert all(each.labels["role"] == "model" for each in samples)
        return {each.labels.get("method", each.name): each.value for each in samples}


CALLS: list[tuple[dict[Work, int], float, dict[str, float]]] = [
    (
        {"prediction": 1, "ipfi": 2, "isage": 0, "ipdp": 5},
        4.0,
        {PREDICTION: 0.5, "ipfi": 1.0, "ipdp": 2.5},
    ),
    ({"learning": 1}, 0.25, {LEARNING: 0.25}),
    ({"ipfi": 0, "isage": 0, "ipdp": 0}, 1.0, {}),
]
"""What a call is for, by inputs; its seconds; whose they are."""


@pytest.mark.parametrize(("shares", "seconds", "expected"), CALLS)
def test_the_seconds_of_a_call_are_shared_out_by_inputs(
    shares: dict[Work, int], seconds: float, expected: dict[str, float]
) -> None:
    clock = Clock()
    times = Times(clock)
    assert times.exported() == NOTHING, "from the start"
    assert times(shares, lambda: clock.passes(seconds)) == "done"
    clock.passes(1000.0)
    assert times.exported() == {**NOTHING, **expected}


def test_a_call_that_fails_has_taken_its_time() -> None:
    clock = Clock()
    times = Times(clock)
    with pytest.raises(ValueError, match="failed"):
        times({"learning": 1}, lambda: clock.fails(0.5))
    assert times.exported()[LEARNING] == 0.5


def test_of_a_whole_stage_each_input_is_timed() -> None:
    config = linear_config(
        model={"factory": f"{__name__}:Model"},
        explain={"ipfi": {"reservoir_size": 5, "warm_up": 5, "inner_samples": 2}},
    )
    times = Times(Model.clock)
    stage = ModelStage(config, "fluxplain.features-0")
    stage.meter = times
    messages = messages_of(linear_records(30))
    run(stage, messages[:20])
    before = times.exported()
    run(stage, messages[20:])
    passed = {work: seconds - before[work] for work, seconds in times.exported().items()}
    # ten observations; the order of iSAGE has two steps between nothing and everything
    expected = {"ipfi": 10 * 3 * 2, "isage": 10 * 2 * 2, PREDICTION: 10, LEARNING: 100}
    assert {work: passed[work] for work in expected} == pytest.approx(expected)
    assert passed["ipdp"] > 0
