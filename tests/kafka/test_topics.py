"""The topics: how safe they are, and that every broker knows them once they are created."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config import Config
from pipeline.kafka import topics
from pipeline.kafka.client import BrokerError
from pipeline.kafka.embedded import EmbeddedBroker
from pipeline.kafka.topics import create_topics, missing_topics, topic_specs
from tests.support import make_config

CHECKPOINTS = {"store": "topic", "key": "k" * 32}


@pytest.mark.parametrize(("replication", "in_sync"), [(1, None), (2, None), (3, "2"), (5, "2")])
def test_of_three_copies_two_must_be_written(replication: int, in_sync: str | None) -> None:
    config = make_config(topics={"replication": replication}, checkpoint=CHECKPOINTS)
    specs = topic_specs(config)
    assert config.topic("checkpoints") in {spec.name for spec in specs}
    for spec in specs:
        assert spec.replication == replication
        assert spec.settings.get("min.insync.replicas") == in_sync, spec.name


def test_on_the_embedded_broker_they_are_there_when_they_were_created() -> None:
    with EmbeddedBroker() as broker:
        config = make_config(checkpoint=CHECKPOINTS).on_broker(broker.bootstrap_servers)
        assert len(missing_topics(config)) == len(topic_specs(config))
        create_topics(config)
        assert missing_topics(config) == []


class SlowCluster:
    """Three brokers; stands in for ``cluster``, which asks any one of those it is given.

    Parameters
    ----------
    learns
        Address → after how many questions it knows the topic and its leaders.
    """

    def __init__(self, learns: dict[str, int]) -> None:
        self.questions_left = learns

    def __call__(self, config: Config) -> Any:
        addresses = config.kafka.bootstrap_servers.split(",")
        left = min(self.questions_left[address] for address in addresses)
        for address in addresses:
            self.questions_left[address] -= 1
        if left > 1:
            known = {}
        else:  # the leader comes last
            partition = SimpleNamespace(leader=-1 if left == 1 else 2)
            known = {"new": SimpleNamespace(partitions={0: partition})}
        brokers = [address.rsplit(":", 1) for address in self.questions_left]
        return SimpleNamespace(
            topics=known,
            brokers={
                i: SimpleNamespace(host=h.strip("[]"), port=p) for i, (h, p) in enumerate(brokers)
            },
        )


@pytest.fixture
def config() -> Config:
    return make_config(kafka={"bootstrap_servers": "a:1,b:2,[::1]:3"})


def test_every_broker_is_waited_for(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SlowCluster({"a:1": 0, "b:2": 5, "[::1]:3": 9})
    monkeypatch.setattr(topics, "cluster", cluster)
    topics._wait_until_known(config, ["new"])
    assert max(cluster.questions_left.values()) < 0, "one did not know it yet"


def test_a_broker_that_never_knows_them_is_named(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "cluster", SlowCluster({"a:1": 0, "b:2": 10**9, "[::1]:3": 0}))
    monkeypatch.setattr(topics, "CREATE_S", 0.0)
    with pytest.raises(BrokerError, match="created, but b:2 does not know"):
        topics._wait_until_known(config, ["new"])
