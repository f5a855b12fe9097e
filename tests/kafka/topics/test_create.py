"""The topics: how safe they are, and that every broker knows them once they are created."""

from types import SimpleNamespace
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.topics import create
from fluxplain.kafka.topics.create import create_topics, missing_topics, topic_specs
from tests.kit.support import make_config

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


def slow_cluster(left: dict[str, int]) -> Any:
    """Return what stands in for ``cluster``: each broker learns of a topic after some questions."""

    def cluster(config: Config) -> Any:
        addresses = config.kafka.bootstrap_servers.split(",")
        slowest = min(left[address] for address in addresses)
        for address in addresses:
            left[address] -= 1
        # the leader comes last
        partition = SimpleNamespace(leader=-1 if slowest == 1 else 2)
        known = {} if slowest > 1 else {"new": SimpleNamespace(partitions={0: partition})}
        hosts = [address.rsplit(":", 1) for address in left]
        brokers = {
            i: SimpleNamespace(host=host.strip("[]"), port=port)
            for i, (host, port) in enumerate(hosts)
        }
        return SimpleNamespace(topics=known, brokers=brokers)

    return cluster


def test_every_broker_is_waited_for_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(kafka={"bootstrap_servers": "a:1,b:2,[::1]:3"})
    left = {"a:1": 0, "b:2": 5, "[::1]:3": 9}
    monkeypatch.setattr(create, "cluster", slow_cluster(left))
    create._wait_until_known(config, ["new"])
    assert max(left.values()) < 0, "one did not know it yet"
    monkeypatch.setattr(create, "cluster", slow_cluster({"a:1": 0, "b:2": 10**9, "[::1]:3": 0}))
    monkeypatch.setattr(create, "CREATE_S", 0.0)
    with pytest.raises(BrokerError, match="created, but b:2 does not know"):
        create._wait_until_known(config, ["new"])
