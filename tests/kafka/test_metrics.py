"""What a worker's metrics tell of the records that leave it."""

from dataclasses import replace
from typing import Any

import faust
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.config import Config
from pipeline.kafka.metrics.published import MAX_NAMES, OTHER, RECENT, PublishedCollector
from pipeline.kafka.metrics.worker import WorkerMetrics
from pipeline.parts import Part
from schemas import Change, Record
from tests.kafka.test_outbox import evaluation
from tests.monitor.records import STREAM, change, explanation, letter, loss_change, prediction
from tests.support import SLOW_PROPERTY, linear_config

Sample = tuple[str, dict[str, str], float]


def names(n: int) -> list[str]:
    return [f"f{i:03}" for i in range(n)]


def of_features(features: list[str], **settings: Any) -> PublishedCollector:
    config = linear_config(features=dict.fromkeys(features, "numeric"), **settings)
    return PublishedCollector(config, "explainer")


def told(collector: PublishedCollector, records: list[Record]) -> list[Sample]:
    """Return what Prometheus reads after these records, without the role."""
    for record in records:
        collector.observe(record)
    registry = CollectorRegistry()
    registry.register(collector)
    text = generate_latest(registry).decode()
    samples = []
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("role") == "explainer"
            samples.append((sample.name, labels, sample.value))
    return samples


def values(samples: list[Sample], name: str, *labels: str) -> dict[Any, float]:
    """Return the values of a metric by some of its labels."""
    return {
        tuple(own[label] for label in labels) if len(labels) > 1 else own[labels[0]]: value
        for each, own, value in samples
        if each == name
    }


def test_the_newest_importance_of_each_feature_method_and_rate_is_told() -> None:
    records = [
        explanation("a", 10, 0.25, std_error=0.125),
        explanation("a", 20, 0.5),
        explanation("a", 20, -0.75, method="ipdp"),
        replace(explanation("a", 20, 0.1), alpha=0.01),
    ]
    samples = told(of_features(["a"]), [*records])
    importance = values(samples, "fluxplain_importance", "feature", "method", "alpha")
    assert importance == {
        ("a", "ipfi", "0.001"): 0.5,
        ("a", "ipdp", "0.001"): -0.75,
        ("a", "ipfi", "0.01"): 0.1,
    }
    errors = values(samples, "fluxplain_importance_std_error", "feature", "method", "alpha")
    assert set(errors) == set(importance)
    assert errors["a", "ipfi", "0.001"] == 0.01
    assert values(samples, "fluxplain_newest_seq", "stream") == {STREAM: 20}


def test_of_many_features_the_first_have_series_and_the_rest_are_counted() -> None:
    features = names(MAX_NAMES + 7)
    records: list[Record] = [explanation(each, 10, 0.5) for each in reversed(features)]
    records += [change(each, 10) for each in features]
    samples = told(of_features(features), records)
    assert set(values(samples, "fluxplain_importance", "feature")) == set(features[:MAX_NAMES])
    changes = values(samples, "fluxplain_changes_total", "feature")
    assert set(changes) == {*features[:MAX_NAMES], OTHER}
    assert changes[OTHER] == 7
    assert values(samples, "fluxplain_names_left_out", "of") == {"feature": 7, "stream": 0}
    published = values(samples, "fluxplain_records_published_total", "topic")
    assert published["explanations"] == published["changes"] == MAX_NAMES + 7


def test_configured_features_go_before_pairs() -> None:
    features = names(MAX_NAMES)
    explain = {"ipdp": {"storage_size": 5, "grid_size": 3, "pairs": [features[:2]]}}
    pair = f"{features[0]}|{features[1]}"
    records: list[Record] = [explanation(each, 10, 0.5) for each in (pair, *features)]
    samples = told(of_features(features, explain=explain), records)
    assert set(values(samples, "fluxplain_importance", "feature")) == set(features)
    assert values(samples, "fluxplain_names_left_out", "of")["feature"] == 1


def test_of_many_streams_the_first_have_series_and_the_rest_are_counted() -> None:
    streams = [f"features-{i}" for i in range(MAX_NAMES + 3)]
    records: list[Record] = [explanation("a", 10, 0.5, stream=each) for each in streams]
    records += [change("a", 10, stream=each) for each in streams]
    samples = told(of_features(["a"]), records)
    first = set(streams[:MAX_NAMES])
    assert set(values(samples, "fluxplain_importance", "stream")) == first
    assert set(values(samples, "fluxplain_newest_seq", "stream")) == first
    assert values(samples, "fluxplain_changes_total", "stream")[OTHER] == 3
    assert values(samples, "fluxplain_names_left_out", "of") == {"feature": 0, "stream": 3}


def test_the_loss_is_the_mean_of_the_last_labelled_predictions() -> None:
    old = [prediction(seq, loss=1e9) for seq in range(10)]
    recent = [prediction(10 + i, loss=i / 8) for i in range(RECENT)]
    unlabelled = [prediction(10 + RECENT, loss=None)]
    samples = told(of_features(["a"]), [*old, *recent, *unlabelled])
    mean = sum(i / 8 for i in range(RECENT)) / RECENT
    assert values(samples, "fluxplain_loss", "stream") == {STREAM: mean}
    assert values(samples, "fluxplain_newest_seq", "stream") == {STREAM: 10 + RECENT}


def test_without_labels_there_is_no_loss() -> None:
    samples = told(of_features(["a"]), [prediction(0, loss=None)])
    assert not values(samples, "fluxplain_loss", "stream")


def test_changes_are_told_by_kind_method_and_feature() -> None:
    gap = Change.notice(kind="gap", stream="evaluations-2", seq=7, detail="lost")
    records = [change("a", 10), change("a", 20), change("a", 20, method="ipdp"), gap]
    samples = told(of_features(["a"]), [*records, loss_change(30)])
    assert values(samples, "fluxplain_changes_total", "stream", "kind", "method", "feature") == {
        (STREAM, "drift", "ipfi", "a"): 2,
        (STREAM, "drift", "ipdp", "a"): 1,
        (STREAM, "drift", "loss", ""): 1,
        ("evaluations-2", "gap", "", ""): 1,
    }


def test_every_topic_is_counted_from_the_start() -> None:
    collector = of_features(["a"])
    nothing = values(told(collector, []), "fluxplain_records_published_total", "topic")
    topics = ("predictions", "evaluations", "explanations", "changes", "dead-letters")
    assert nothing == dict.fromkeys(topics, 0), "else an alert would not see the first dead letter"
    samples = told(collector, [letter(3), letter(4), prediction(5)])
    counted = values(samples, "fluxplain_records_published_total", "topic")
    assert (counted["dead-letters"], counted["predictions"]) == (2, 1)


@pytest.mark.parametrize(("inner_samples", "inputs"), [(2, 2), ("all", 5)])
def test_a_run_of_evaluations_counts_for_each_observation(
    inner_samples: object, inputs: int
) -> None:
    isage = {"reservoir_size": 5, "inner_samples": inner_samples}
    collector = of_features(["age"], explain={"isage": isage})
    run = evaluation(0).extended([evaluation(1), evaluation(2)])
    without_label = replace(evaluation(3), ipfi=[None], isage=[None])
    samples = told(collector, [run, without_label])
    assert values(samples, "fluxplain_records_published_total", "topic")["evaluations"] == 4
    asked = {"ipfi": 3, "isage": 3 * inputs, "ipdp": 4 * 3}
    assert values(samples, "fluxplain_evaluation_inputs_total", "method") == asked


def test_what_is_current_goes_with_the_partitions_and_counts_stay() -> None:
    collector = of_features(["a"])
    before = told(collector, [explanation("a", 10, 0.5), prediction(10), change("a", 10)])
    current = ("fluxplain_importance", "fluxplain_loss", "fluxplain_newest_seq")
    assert all(values(before, name, "stream") for name in current)
    collector.forget()
    after = told(collector, [])
    assert not any(values(after, name, "stream") for name in current)
    assert values(after, "fluxplain_changes_total", "feature") == {"a": 1}
    again = told(collector, [explanation("a", 5, 0.25)])
    assert values(again, "fluxplain_newest_seq", "stream") == {STREAM: 5}


def test_streams_that_went_to_another_worker_take_no_place_from_those_that_came() -> None:
    collector = of_features(["a"])
    lost, came = ([f"features-{first + i}" for i in range(MAX_NAMES)] for first in (0, 100))
    told(collector, [explanation("a", 10, 0.5, stream=each) for each in lost])
    collector.forget()
    samples = told(collector, [explanation("a", 10, 0.5, stream=each) for each in came])
    assert set(values(samples, "fluxplain_importance", "stream")) == set(came)
    assert values(samples, "fluxplain_names_left_out", "of")["stream"] == 0


def test_changes_of_any_number_of_streams_have_few_series() -> None:
    collector, streams = of_features(["a"]), [f"features-{i}" for i in range(MAX_NAMES + 3)]
    for each in streams:
        told(collector, [change("a", 10, stream=each)])
        collector.forget()
    changes = values(told(collector, []), "fluxplain_changes_total", "stream")
    assert set(changes) == {*streams[:MAX_NAMES], OTHER}
    assert changes[OTHER] == 3
    assert values(told(collector, []), "fluxplain_names_left_out", "of")["stream"] == 3


@SLOW_PROPERTY
@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5, unique=True))
def test_any_name_of_a_feature_comes_out_as_it_went_in(features: list[str]) -> None:
    samples = told(of_features(features), [explanation(each, 10, 0.5) for each in features])
    assert set(values(samples, "fluxplain_importance", "feature")) == set(features)


def test_a_worker_has_metrics_of_its_own_and_those_of_its_process() -> None:
    config = Config(**linear_config().model_dump())
    first, second = (
        WorkerMetrics(config, part, faust.App(f"test-{part}"))
        for part in (Part("drift"), Part("model", 1, 2))
    )
    first.step.observe(0.25)
    text = generate_latest(first.registry).decode()
    assert 'fluxplain_step_seconds_count{role="drift"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert "_created" not in text
    other = generate_latest(second.registry).decode()
    assert 'fluxplain_step_seconds_count{role="model-1of2"} 0.0' in other
