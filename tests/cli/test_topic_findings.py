"""What ``fluxplain doctor`` finds about topics, without a broker."""

from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka.admin import ClusterMetadata

from fluxplain.cli.doctor import broker_findings
from fluxplain.cli.doctor.topic_findings import topic_findings
from fluxplain.cli.setup import check_streams
from fluxplain.config import Config
from fluxplain.config.base import ConfigError
from fluxplain.kafka.topics.describe import Described
from tests.kit.support import linear_config


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    # asks a broker
    monkeypatch.setattr("fluxplain.cli.doctor.topic_findings.feature_partitions", lambda _: 1)
    return linear_config(kafka={"bootstrap_servers": "127.0.0.1:9"})


def metadata(**topics: int) -> ClusterMetadata:
    """Return a cluster with these topics of so many partitions."""
    found = {
        f"fluxplain.{name}": SimpleNamespace(partitions=dict.fromkeys(range(count)))
        for name, count in topics.items()
    }
    return cast(ClusterMetadata, SimpleNamespace(topics=found, cluster_id="c", brokers={1: None}))


def test_before_there_are_topics_that_is_the_only_finding(config: Config) -> None:
    [finding] = topic_findings(config, metadata())
    assert finding.state == "problem"
    assert "topics create" in finding.what


def test_nothing_is_asked_about_no_topics_and_groups(config: Config) -> None:
    described: Any = Described(config)
    assert described.settings([]) == described.rights([]) == described.groups([]) == {}


def test_one_partition_is_not_plural(config: Config) -> None:
    found = [each.what for each in islice(topic_findings(config, metadata(features=1)), 2)]
    assert "streams: fluxplain.features has 1 partition" in found
    one = config.model_copy(update={"streams": {3: None}})
    with pytest.raises(ConfigError, match="has 1 partition, number 0"):
        check_streams(one, 1)


def test_no_checkpoint_is_usual_before_the_first_start() -> None:
    told = broker_findings.resumable
    assert told(0, 9) == "checkpoints: none yet, as is usual before the first start"
    assert told(1, 9) == "checkpoints: 1 of 9 input partitions has one"
