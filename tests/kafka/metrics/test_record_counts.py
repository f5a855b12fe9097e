"""What a worker's metrics tell of the records that leave it."""

from dataclasses import replace
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from fluxplain.config.replica import Replica
from fluxplain.kafka.metrics.record_counts import MAX_NAMES, OTHER, RECENT, PublishedCollector
from fluxplain.kafka.metrics.worker_metrics import WorkerMetrics
from fluxplain.schemas import Change, Record
from fluxplain.schemas.methods import METHODS
from tests.kit.recorder import evaluation
from tests.kit.records import STREAM, change, explanation, letter, loss_change, prediction
from tests.kit.stages import merged
from tests.kit.support import SLOW_PROPERTY, linear_config

Values = dict[Any, float]


def names(n: int) -> list[str]:
    return [f"f{i:03}" for i in range(n)]


def streams(n: int, first: int = 0) -> list[str]:
    return [f"features-{first + i}" for i in range(n)]


class Observer:
    """The metrics of a worker's records, as Prometheus reads them."""

    def __init__(self, *features: str, **settings: Any) -> None:
        config = linear_config(features=dict.fromkeys(features or ["a"], "numeric"), **settings)
        self.collector = PublishedCollector(config, "explainer")
        self.registry = CollectorRegistry()
        self.registry.register(self.collector)

    def see(self, *records: Record) -> Self:
        for record in records:
            self.collector.observe(record)
        return self

    def gauges(self) -> set[str]:
        """Return the names of the gauges that streams have now."""
        families = text_string_to_metric_families(generate_latest(self.registry).decode())
        samples = (each for family in families if family.type == "gauge" for each in family.samples)
        return {sample.name for sample in samples if "stream" in sample.labels}

    def values(self, name: str, *labels: str) -> Values:
        """Return the values of a metric by some of its labels."""
        found: Values = {}
        text = generate_latest(self.registry).decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                assert sample.labels["role"] == "explainer"
                if sample.name == f"fluxplain_{name}":
                    key = tuple(sample.labels[label] for label in labels)
                    found[key if len(labels) > 1 else key[0]] = sample.value
        return found


def test_the_newest_importance_of_each_feature_method_and_rate_is_exported() -> None:
    seen = Observer().see(
        explanation("a", 10, 0.25, std_error=0.125),
        explanation("a", 20, 0.5),
        explanation("a", 20, -0.75, method="ipdp"),
        replace(explanation("a", 20, 0.1), alpha=0.01),
    )
    importance = seen.values("importance", "feature", "method", "alpha")
    assert importance == {
        ("a", "ipfi", "0.001"): 0.5,
        ("a", "ipdp", "0.001"): -0.75,
        ("a", "ipfi", "0.01"): 0.1,
    }
    errors = seen.values("importance_std_error", "feature", "method", "alpha")
    assert set(errors) == set(importance)
    assert errors["a", "ipfi", "0.001"] == 0.01
    assert seen.values("newest_seq", "stream") == {STREAM: 20}


def test_of_many_features_the_first_have_series_and_the_rest_are_counted() -> None:
    features = names(MAX_NAMES + 7)
    seen = Observer(*features)
    seen.see(*(explanation(each, 10, 0.5) for each in reversed(features)))
    seen.see(*(change(each, 10) for each in features))
    assert set(seen.values("importance", "feature")) == set(features[:MAX_NAMES])
    changes = seen.values("changes_total", "feature")
    assert set(changes) == {*features[:MAX_NAMES], OTHER}
    assert changes[OTHER] == 7
    assert seen.values("names_left_out", "of") == {"feature": 7, "stream": 0}
    published = seen.values("records_published_total", "topic")
    assert published["explanations"] == published["changes"] == MAX_NAMES + 7


def test_configured_features_go_before_pairs() -> None:
    features = names(MAX_NAMES)
    explain = {"ipdp": {"storage_size": 5, "grid_size": 3, "pairs": [features[:2]]}}
    pair = f"{features[0]}|{features[1]}"
    seen = Observer(*features, explain=explain)
    seen.see(*(explanation(each, 10, 0.5) for each in (pair, *features)))
    assert set(seen.values("importance", "feature")) == set(features)
    assert seen.values("names_left_out", "of")["feature"] == 1


def test_of_many_streams_the_first_have_series_and_the_rest_are_counted() -> None:
    seen, many = Observer(), streams(MAX_NAMES + 3)
    seen.see(*(explanation("a", 10, 0.5, stream=each) for each in many))
    seen.see(*(change("a", 10, stream=each) for each in many))
    for metric in ("importance", "newest_seq"):
        assert set(seen.values(metric, "stream")) == set(many[:MAX_NAMES])
    assert seen.values("changes_total", "stream")[OTHER] == 3
    assert seen.values("names_left_out", "of") == {"feature": 0, "stream": 3}


def test_the_loss_is_the_mean_of_the_last_labelled_predictions() -> None:
    seen = Observer().see(prediction(0, loss=None))
    assert not seen.values("loss", "stream"), "without labels there is none"
    seen.see(*(prediction(seq, loss=1e9) for seq in range(10)))
    seen.see(*(prediction(10 + i, loss=i / 8) for i in range(RECENT)))
    seen.see(prediction(10 + RECENT, loss=None))
    mean = sum(i / 8 for i in range(RECENT)) / RECENT
    assert seen.values("loss", "stream") == {STREAM: mean}
    assert seen.values("newest_seq", "stream") == {STREAM: 10 + RECENT}


def test_changes_are_counted_by_kind_method_and_feature() -> None:
    gap = Change.notice(kind="gap", stream="evaluations-2", seq=7, detail="lost")
    seen = Observer().see(change("a", 10), change("a", 20), change("a", 20, method="ipdp"))
    seen.see(gap, loss_change(30))
    assert seen.values("changes_total", "stream", "kind", "method", "feature") == {
        (STREAM, "drift", "ipfi", "a"): 2,
        (STREAM, "drift", "ipdp", "a"): 1,
        (STREAM, "drift", "loss", ""): 1,
        ("evaluations-2", "gap", "", ""): 1,
    }


def test_every_topic_is_counted_from_the_start() -> None:
    seen = Observer()
    topics = ("predictions", "reasons", "evaluations", "explanations", "changes", "dead-letters")
    nothing = seen.values("records_published_total", "topic")
    assert nothing == dict.fromkeys(topics, 0), "else an alert would not see the first dead letter"
    counted = seen.see(letter(3), letter(4), prediction(5)).values(
        "records_published_total", "topic"
    )
    assert (counted["dead-letters"], counted["predictions"]) == (2, 1)


@pytest.mark.parametrize(("inner_samples", "inputs"), [(2, 2), ("all", 5)])
def test_a_run_of_evaluations_counts_for_each_observation(
    inner_samples: object, inputs: int
) -> None:
    isage = {"reservoir_size": 5, "inner_samples": inner_samples}
    last = evaluation(3)
    outputs: dict[Any, Any] = {**last.outputs, "ipfi": [None], "isage": [None]}
    seen = Observer("age", explain={"isage": isage}).see(
        merged([evaluation(0), evaluation(1), evaluation(2)]),
        replace(last, outputs=outputs),  # without a label
    )
    assert seen.values("records_published_total", "topic")["evaluations"] == 4
    asked = {**dict.fromkeys(METHODS, 0), "ipfi": 3, "isage": 3 * inputs, "ipdp": 4 * 3}
    assert seen.values("evaluation_inputs_total", "method") == asked


def test_gauges_go_with_the_partitions_and_counters_stay() -> None:
    seen = Observer().see(explanation("a", 10, 0.5), prediction(10), change("a", 10))
    assert len(seen.gauges()) >= 3
    seen.collector.forget()
    assert not seen.gauges()
    assert seen.values("changes_total", "feature") == {"a": 1}
    seen.see(explanation("a", 5, 0.25))
    assert seen.values("newest_seq", "stream") == {STREAM: 5}


def test_streams_that_went_to_another_worker_take_no_place_from_those_that_came() -> None:
    seen, lost, came = Observer(), streams(MAX_NAMES), streams(MAX_NAMES, first=100)
    seen.see(*(explanation("a", 10, 0.5, stream=each) for each in lost))
    seen.collector.forget()
    seen.see(*(explanation("a", 10, 0.5, stream=each) for each in came))
    assert set(seen.values("importance", "stream")) == set(came)
    assert seen.values("names_left_out", "of")["stream"] == 0


def test_changes_of_any_number_of_streams_have_few_series() -> None:
    seen, many = Observer(), streams(MAX_NAMES + 3)
    for each in many:
        seen.see(change("a", 10, stream=each))
        seen.collector.forget()
    changes = seen.values("changes_total", "stream")
    assert set(changes) == {*many[:MAX_NAMES], OTHER}
    assert changes[OTHER] == 3
    assert seen.values("names_left_out", "of")["stream"] == 3


@SLOW_PROPERTY
@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5, unique=True))
def test_any_name_of_a_feature_comes_out_as_it_went_in(features: list[str]) -> None:
    seen = Observer(*features).see(*(explanation(each, 10, 0.5) for each in features))
    assert set(seen.values("importance", "feature")) == set(features)


def test_a_worker_has_metrics_of_its_own_and_those_of_its_process() -> None:
    replicas = Replica("drift"), Replica("model", 1, 2)
    first, second = (WorkerMetrics(linear_config(), replica) for replica in replicas)
    first.step.observe(0.25)
    text = generate_latest(first.registry).decode()
    assert 'fluxplain_step_seconds_count{role="drift"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert "_created" not in text
    assert "fluxplain_evaluation_seconds" not in text, "only a model role asks a model"
    other = generate_latest(second.registry).decode()
    assert 'fluxplain_step_seconds_count{role="model-1of2"} 0.0' in other
    assert 'fluxplain_evaluation_seconds_total{method="isage",role="model-1of2"} 0.0' in other
