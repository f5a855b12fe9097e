"""What a worker tells of its model's time."""

import faust
import pytest
from prometheus_client import generate_latest

from pipeline.kafka.metrics.model import ModelCollector
from pipeline.kafka.metrics.worker import WorkerMetrics
from pipeline.parts import Part, Role
from pipeline.stages import ModelStage
from pipeline.stages.metering import Work
from tests.support import linear_config, linear_records, message, run

EVALUATION, PREDICTION, LEARNING = (
    f"fluxplain_{work}_seconds_total" for work in ("evaluation", "prediction", "learning")
)


class Clock:
    """Goes on by what its owner says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> str:
        self.now += seconds
        return "done"

    def fails(self, seconds: float) -> None:
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


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def collector(clock: Clock) -> ModelCollector:
    return ModelCollector("model", clock)


def told(collector: ModelCollector) -> dict[str, float]:
    """Return the values, by method or name."""
    samples = [sample for family in collector.collect() for sample in family.samples]
    assert all(each.labels["role"] == "model" for each in samples)
    return {each.labels.get("method", each.name): each.value for each in samples}


def test_everything_is_told_from_the_start(collector: ModelCollector) -> None:
    works = ("ipfi", "isage", "ipdp", PREDICTION, LEARNING)
    assert told(collector) == dict.fromkeys(works, 0.0)


def test_the_seconds_of_a_call_are_shared_out_by_inputs(
    collector: ModelCollector, clock: Clock
) -> None:
    shares: dict[Work, int] = {"prediction": 1, "ipfi": 2, "isage": 0, "ipdp": 5}
    assert collector(shares, lambda: clock.passes(4.0)) == "done"
    clock.passes(1000.0)
    collector({"learning": 1}, lambda: clock.passes(0.25))
    assert told(collector) == {
        "ipfi": 1.0,
        "isage": 0.0,
        "ipdp": 2.5,
        PREDICTION: 0.5,
        LEARNING: 0.25,
    }


def test_a_call_that_fails_has_taken_its_time(collector: ModelCollector, clock: Clock) -> None:
    with pytest.raises(ValueError, match="failed"):
        collector({"learning": 1}, lambda: clock.fails(0.5))
    assert told(collector)[LEARNING] == 0.5


def test_a_call_without_inputs_takes_nobodys_time(collector: ModelCollector, clock: Clock) -> None:
    collector({"ipfi": 0, "isage": 0, "ipdp": 0}, lambda: clock.passes(1.0))
    assert not any(told(collector).values())


def test_of_a_whole_stage_each_input_is_timed() -> None:
    config = linear_config(
        model={"factory": f"{__name__}:Model"},
        explain={"ipfi": {"reservoir_size": 5, "warm_up": 5, "inner_samples": 2}},
    )
    collector = ModelCollector("model", Model.clock)
    stage = ModelStage(config, "fluxplain.features-0")
    stage.meter = collector
    messages = [message(t, record) for t, record in enumerate(linear_records(30))]
    run(stage, messages[:20])
    before = told(collector)
    run(stage, messages[20:])
    passed = {work: seconds - before[work] for work, seconds in told(collector).items()}
    # ten observations; the order of iSAGE has two steps between nothing and everything
    expected = {"ipfi": 10 * 3 * 2, "isage": 10 * 2 * 2, PREDICTION: 10, LEARNING: 100}
    assert {work: passed[work] for work in expected} == pytest.approx(expected)
    assert passed["ipdp"] > 0


def page(role: Role) -> str:
    metrics = WorkerMetrics(linear_config(), Part(role), faust.App(f"test-seconds-{role}"))
    return generate_latest(metrics.registry).decode()


def test_only_the_role_with_a_model_tells_of_it() -> None:
    assert 'fluxplain_evaluation_seconds_total{method="isage",role="model"} 0.0' in page("model")
    assert "fluxplain_evaluation_seconds" not in page("explainer")
