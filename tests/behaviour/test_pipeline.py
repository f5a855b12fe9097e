"""What users rely on: the pipeline on a broker publishes what the reference does, always."""

from contextlib import closing
from typing import Any

import orjson
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
from cloudevents.core.formats.json import JSONFormat

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import load_config
from fluxplain.kafka.producer import RecordProducer
from fluxplain.schemas import Change
from tests.kit.kafka_pipeline import Groups, KafkaPipeline, Start, assert_same, reference
from tests.kit.settings import SENSITIVE_DRIFT, SETTINGS, Configure, topics
from tests.kit.streams import observations, with_hostile


@pytest.mark.quick
def test_publishes_what_the_reference_publishes_bit_for_bit(
    start: Start, configure: Configure
) -> None:
    configure(drift=SENSITIVE_DRIFT)
    values = with_hostile(observations(400))
    with start() as pipeline:
        pipeline.feed(values)
        pipeline.finish(values)
    counts = pipeline.counts()
    assert counts["predictions"] + counts["dead-letters"] == len(values)
    assert counts["dead-letters"] == 8
    assert counts["changes"] > 0, "a stream that drifts must show it, or this test shows little"
    assert pipeline.messages == len(pipeline.published), "nothing is published twice"


@pytest.mark.embedded
def test_publishes_the_same_with_every_detector_when_every_role_is_killed_in_between(
    start: Start, configure: Configure
) -> None:
    drift = {
        "min_effect": 0.0,
        "false_alarms": 100.0,
        "ipfi": {
            "detector": "adwin",
            "delta": 0.1,
            "signal": "value",
            "params": {"clock": 8, "min_window_length": 5},
        },
        "isage": {"detector": "page_hinkley", "params": {"threshold": 2.0}},
        "ipdp": {"detector": "glr"},
        "loss": {"detector": "hddm_a", "params": {"two_sided_test": True}},
    }
    configure(explain={**SETTINGS["explain"], "loss": "zero_one"}, drift=drift)
    values = with_hostile(observations(1000))
    kills = {200: "model-1", 500: "explainer-1", 800: "drift-1"}
    with start() as pipeline:
        pipeline.feed_killing(values, kills)
        pipeline.finish(values)
    changes = [key for key in pipeline.published if key[0] == "changes"]
    assert {key[4] for key in changes} >= {"ipfi", "isage", "ipdp", "loss"}
    assert len(pipeline.workers.deaths) == len(kills)
    for each in changes:
        assert_event(pipeline, each)


def assert_event(pipeline: KafkaPipeline, change: tuple[Any, ...]) -> None:
    """Fail unless a change is a CloudEvent, the same each time that it was published."""
    [value], [headers] = pipeline.published[change], pipeline.headers[change]
    event = from_kafka(KafkaMessage(dict(headers), None, value), JSONFormat())
    _, stream, kind, feature, *_ = change
    assert event.get_id() == Change.decode(value).event_id
    assert event.get_source() == stream
    assert event.get_type() == f"fluxplain.change.{kind}"
    assert event.get_subject() == feature
    assert event.get_data() == orjson.loads(value)


OPTIONS: dict[str, dict[str, Any]] = {
    "groups, rates, pairs, range, DDM": {
        "drift": {"detector": "ddm"},
        "alpha": [0.01, 0.1],
        "groups": {"house": ["zipcode", "hvalue", "hyears"], "income": ["commission", "salary"]},
        "ipfi": {"reservoir_size": 50, "imputer": "product"},
        "isage": {"reservoir_size": 50, "inner_samples": 2, "imputer": "observational"},
        "ipdp": {
            "storage_size": 50,
            "grid_size": 4,
            "grid": "range",
            "window": 80,
            "ice": 2,
            "pairs": [["salary", "age"], ["elevel", "age"]],
        },
    },
    "all draws, window, quantiles, EDDM": {
        "drift": {"detector": "eddm"},
        "ipfi": {"reservoir_size": 50, "sampler": "window", "inner_samples": 3},
        "isage": {"reservoir_size": 20, "inner_samples": "all"},
        "ipdp": {
            "storage_size": 50,
            "grid_size": 4,
            "grid": "quantiles",
            "storage": "age-weighted",
            "entrance_probability": 0.5,
        },
    },
    "four classes, uniform, HDDM-W": {
        "drift": {"detector": "hddm_w", "params": {"lambda_val": 0.1}},
        "ipfi": {"reservoir_size": 50, "sampler": "uniform"},
        "isage": {"reservoir_size": 50, "inner_samples": 2},
        "ipdp": {"storage_size": 50, "grid_size": 4, "ice": 2, "pairs": [["salary", "age"]]},
    },
}
"""Ways to explain, and to watch the loss, beside those of the other tests."""


@pytest.mark.embedded
@pytest.mark.parametrize("options", OPTIONS)
def test_publishes_what_the_reference_publishes_with_each_option_also_after_a_kill(
    start: Start, configure: Configure, options: str
) -> None:
    explain = {**SETTINGS["explain"], **OPTIONS[options], "loss": "zero_one"}
    configure(drift={**SETTINGS["drift"], "loss": explain.pop("drift")}, explain=explain)
    values = with_hostile(observations(400, classes=4 if "classes" in options else 2))
    with start() as pipeline:
        pipeline.feed(values[:200])
        pipeline.kill("model")
        pipeline.kill("explainer")
        pipeline.feed(values[200:])
        pipeline.finish(values)
    assert pipeline.keys["explanations"] == {name.encode() for name in pipeline.config.explained}


def test_shards_of_the_model_publish_the_same_also_when_one_is_killed(
    start: Start, configure: Configure
) -> None:
    shapley = {"ishap": {"reservoir_size": 50}, "interaction": {"reservoir_size": 50}}
    explain = {**SETTINGS["explain"], **shapley, "methods": ["ipfi", "isage", "ipdp", *shapley]}
    configure(model={**SETTINGS["model"], "shards": 3}, explain=explain)
    values = with_hostile(observations(400))
    with start() as pipeline:
        assert set(pipeline.workers.running("model")) == {f"model-{i}of3-1" for i in range(3)}
        pipeline.feed_killing(values, {150: "model-0of3-1", 300: "model-1of3-1"})
        pipeline.wait_until_idle()
    assert_same(pipeline.published, reference(load_config(configure(explain=explain)), values))
    assert len(pipeline.workers.deaths) == 2


def test_causes_and_regions_are_those_of_the_reference_also_after_kills(
    start: Start, configure: Configure
) -> None:
    # a copy of the model is compared with it 1,000 observations later
    configure(
        explain={**SETTINGS["explain"], "methods": ["ipfi"], "emit_every": 20},
        drift={**SENSITIVE_DRIFT, "follow_up": 300},
        topics=topics("causes-and-regions."),  # seeds follow from a stream's name: not all have one
    )
    values = [orjson.loads(value) for value in observations(6000)[:2700]]
    for value in values[2200:]:
        value["y"] = int(value["y"] != (value["x"]["age"] < 40))
    values = [orjson.dumps(value) for value in values]
    with start() as pipeline:
        pipeline.feed_killing(values, {2350: "model-1", 2450: "drift-1"})
        pipeline.finish(values)
    changes = [
        Change.decode(value)
        for key, of_key in pipeline.published.items()
        if key[0] == "changes"
        for value in of_key
    ]
    assert any(each.cause for each in changes)
    assert any(each.region for each in changes if each.method == "loss")


@pytest.mark.quick
def test_all_roles_killed_at_once_go_on_where_they_were(start: Start) -> None:
    values = observations(240)
    with start() as pipeline:
        pipeline.feed(values[:160])
        for role in ROLES:
            pipeline.kill(role)
        pipeline.feed(values[160:])
        pipeline.finish(values)


@pytest.mark.quick
def test_stopped_in_good_order_nothing_is_repeated_at_the_next_start(start: Start) -> None:
    values = observations(240)
    with start() as pipeline:
        pipeline.process(values[:200])
    first = pipeline.messages
    assert pipeline.workers.exit_statuses == {f"{role}-1": 0 for role in ROLES}
    with closing(Groups(pipeline.config)) as groups:
        assert groups.are_idle(), groups.left()
    with start() as again:
        again.feed(values[200:])
        again.finish(values)
    assert again.messages == len(again.published) > first


def test_keys_and_traces_of_what_is_published(start: Start) -> None:
    values = with_hostile(observations(120))
    traces = {
        i: (("traceparent", b"00-%032x-%016x-01" % (i, i)), ("tracestate", b"vendor=%d" % i))
        for i in range(1, len(values), 2)
    }
    with start() as pipeline:
        producer = RecordProducer(pipeline.config)
        for i, value in enumerate(values):
            producer.send(
                *(pipeline.config.topic("features"), value),
                key=b"tenant",
                partition=0,
                headers=dict(traces.get(i, ())),
            )
            if i == 60:
                producer.flush()
                pipeline.wait_until(lambda: pipeline.counts()["predictions"] > 30)
                pipeline.kill("model")
        producer.flush()
        pipeline.wait_until_idle()
    keys = pipeline.keys
    assert keys["predictions"] == {b"tenant"}, "predictions are keyed as their observations"
    assert keys["explanations"] == {name.encode() for name in pipeline.config.features}
    told = {
        orjson.loads(value)["seq"]: pipeline.headers[key]
        for key, [value] in pipeline.published.items()
        if key[0] in {"predictions", "dead-letters"}
    }
    assert told == {i: {traces.get(i, ())} for i in range(len(values))}


@pytest.mark.parametrize("roles", ["model", "*"])
def test_lost_checkpoints_are_rebuilt_from_the_beginning_of_the_log(
    start: Start, roles: str
) -> None:
    values = observations(200)
    with start() as pipeline:
        pipeline.process(values[:150])
    for path in pipeline.checkpoints.glob(f"*/{roles}/*/*.checkpoint"):
        path.unlink()
    with start() as again:
        again.feed(values[150:])
        again.finish(values)
        told = f"there is no checkpoint in {again.checkpoints}: the state is rebuilt"
        again.wait_until(lambda: told in again.log)


@pytest.mark.embedded
@pytest.mark.parametrize("flipped", [False, True])
def test_a_checkpoint_that_is_cut_or_has_a_flipped_bit_is_passed_over(
    start: Start, flipped: bool
) -> None:
    values = observations(160)
    with start() as pipeline:
        pipeline.process(values[:100])
        pipeline.process(values[100:130])
    newest = max(pipeline.checkpoints.glob("*/model/*/*.checkpoint"))
    data = newest.read_bytes()
    half = len(data) // 2
    rest = bytes([data[half] ^ 1]) + data[half + 1 :] if flipped else b""
    newest.write_bytes(data[:half] + rest)
    with start() as again:
        again.feed(values[130:])
        again.finish(values)
        assert "is damaged" in again.log
