"""What the dashboard exports of all consumer groups, while the workers of one of them are gone."""

import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from fluxplain.config import Config
from fluxplain.kafka.client import TopicPartition, client_settings
from fluxplain.kafka.topics.backlogs import BacklogMonitor
from tests.deploy.documented import documented_metrics
from tests.kit.kafka_pipeline import KafkaPipeline, Start
from tests.kit.preloaded import Preloaded
from tests.kit.settings import Configure
from tests.kit.streams import observations
from tests.kit.waiting import wait_until

LAG, AGE = "fluxplain_group_lag_messages", "fluxplain_group_oldest_age_seconds"

ROLES = {"model", "explainer", "drift"}


class Exported(NamedTuple):
    """Role and stream → lag, and age of the oldest message in seconds."""

    lags: dict[tuple[str, str], float]
    ages: dict[tuple[str, str], float]

    def is_idle(self) -> bool:
        """Return whether every role has processed everything."""
        known = {role for role, _ in self.lags} == ROLES
        return known and not any((*self.lags.values(), *self.ages.values()))


@contextmanager
def exporting(preloaded: Preloaded, pipeline: KafkaPipeline, config_path: Path) -> Iterator[str]:
    """Run the dashboard as its users do; yield where it exports metrics."""
    with preloaded.running(config_path, "dashboard", **pipeline.environment) as printed:
        assert printed.readline().startswith("Dashboard: ")
        told = re.fullmatch(r"Metrics: (http://\S+)\n", printed.readline())
        assert told
        yield told[1]


def scrape(url: str) -> list[Metric]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return list(text_string_to_metric_families(answer.read().decode()))


def exported(url: str) -> Exported:
    values: dict[str, dict[tuple[str, str], float]] = {LAG: {}, AGE: {}}
    for family in scrape(url):
        for sample in family.samples if family.name in values else ():
            values[sample.name][sample.labels["role"], sample.labels["stream"]] = sample.value
    return Exported(values[LAG], values[AGE])


def test_the_backlog_of_a_role_whose_worker_is_gone_shows_and_shrinks_when_it_is_back(
    start: Start, configure: Configure, preloaded: Preloaded
) -> None:
    config_path = configure(dashboard={"port": 0, "metrics_port": 0})
    values = observations(130)
    with start() as pipeline, exporting(preloaded, pipeline, config_path) as url:
        features = "model", f"{pipeline.config.topic('features')}-0"
        pipeline.process(values[:60])
        wait_until(lambda: exported(url).is_idle())

        pipeline.workers.crash("model-1")
        pipeline.send(values[60:100])
        wait_until(lambda: exported(url).lags[features] == 40)
        first = exported(url)
        pipeline.send(values[100:])
        wait_until(lambda: exported(url).lags[features] == 70)
        later = exported(url)
        assert 0 < first.ages[features] < later.ages[features], "of the same message"
        assert not any(age for key, age in later.ages.items() if key != features)

        pipeline.finish(values)  # starts the worker again
        wait_until(lambda: exported(url).is_idle())
        assert {
            (family.name, family.type, family.documentation) for family in scrape(url)
        } == documented()


def documented() -> set[tuple[str, str, str]]:
    return {
        (name, row.type, row.meaning)
        for name, row in documented_metrics().items()
        if name.startswith("fluxplain_group_")
    }


@pytest.mark.kafka
def test_the_marks_of_transactions_are_no_backlog(config: Config) -> None:
    settings = client_settings(config) | {"transactional.id": config.topic("test")}
    producer, topic = Producer(settings), config.topic("features")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"never observed", partition=0)
    producer.flush(30)
    producer.abort_transaction(30)
    with BacklogMonitor(config, {}) as monitor:
        wait_until(lambda: {role for role, _ in monitor.latest()} == ROLES)
        found = monitor.latest()
    assert all(each == (0, None) for each in found.values())


@pytest.mark.kafka
def test_messages_of_an_open_transaction_are_a_backlog_until_it_is_aborted(config: Config) -> None:
    settings = client_settings(config) | {"transactional.id": config.topic("test")}
    producer, topic = Producer(settings), config.topic("features")
    producer.init_transactions(30)
    began_at = time.time()
    producer.begin_transaction()
    producer.produce(topic, b"never committed", partition=0)
    producer.flush(30)
    with BacklogMonitor(config, {}) as monitor:
        wait_until(lambda: {role for role, _ in monitor.latest()} == ROLES)
        found = monitor.latest()["model", TopicPartition(topic, 0)]
        assert found.lag == 1
        assert found.waits_since is not None
        assert found.waits_since >= began_at
        producer.abort_transaction(30)
        wait_until(lambda: all(each == (0, None) for each in monitor.latest().values()))
