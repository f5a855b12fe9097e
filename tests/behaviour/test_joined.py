"""Joined topics under faults: every observation has a prediction or a dead letter, once.

What was acknowledged to its producer is compared with what was published, as a consumer would.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka.admin import AdminClient

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import WorkerRefusedError
from fluxplain.config.replica import Role
from fluxplain.kafka.exits import EXIT_REFUSED
from tests.kit.kafka_pipeline import JOINED, KafkaPipeline, Start
from tests.kit.kafka_topics import add_partitions, set_topic
from tests.kit.settings import Configure, topics
from tests.kit.streams import observations

pytestmark = pytest.mark.kafka

LARGE = os.urandom(15_000).hex()
"""More than a batch may have in the test below, however it is compressed."""


@pytest.fixture
def tables() -> dict[str, Any]:
    """A topic of labels, which stays empty."""
    return {"label": {"type": "integer", "topic": True}}


def numbered(values: list[bytes]) -> list[bytes]:
    """Return observations with their numbers as ids."""
    return [orjson.dumps({**orjson.loads(value), "id": i}) for i, value in enumerate(values)]


def assert_all_answered(pipeline: KafkaPipeline, counts: dict[int, int]) -> None:
    """Fail unless each observation has one prediction, in its own stream and in its order.

    `counts` maps a partition of ``features`` to its number of observations, all of them good.
    """
    predicted: dict[str, list[int]] = {}
    for each in pipeline.records("predictions"):
        predicted.setdefault(each["stream"], []).append(each["id"])
    source = pipeline.config.topic("observations")
    assert predicted == {f"{source}-{each}": [*range(count)] for each, count in counts.items()}


def test_behind_a_batch_that_is_refused_nothing_is_passed_on_until_that_is_mended(
    start: Start,
) -> None:
    values = numbered(observations(900))
    values[100] = orjson.dumps({**orjson.loads(values[100]), "note": LARGE})
    with start(roles=JOINED) as pipeline:
        pipeline.send(values[:80])
        pipeline.wait_until(lambda: pipeline.counts()["predictions"] == 80)
        set_topic(pipeline.config, "observations", "max.message.bytes", "20000")
        pipeline.send(values[80:])
        with pytest.raises(WorkerRefusedError, match=f"join.*{EXIT_REFUSED}"):
            pipeline.wait_until(lambda: False)
        set_topic(pipeline.config, "observations", "max.message.bytes", "1048588")
    with start(roles=JOINED) as again:
        again.finish_joined()
    assert_all_answered(again, {0: 900})


@pytest.mark.parametrize(
    "order", [("observations", "features", "labels"), ("features", "labels", "observations")]
)
def test_partitions_that_are_added_in_any_order_are_streams_of_their_own(
    start: Start, configure: Configure, prefix: str, order: tuple[str, ...]
) -> None:
    configure(topics={**topics(prefix), "features_partitions": 1})
    values = {0: numbered(observations(150, seed=5)), 1: numbered(observations(150, seed=6))}
    with start(roles=JOINED) as pipeline:
        pipeline.send(values[0][:50])
        pipeline.wait_until(lambda: pipeline.counts()["predictions"] == 50)
        missing = f"{pipeline.config.topic('observations')} has no partition 1"
        for topic in order:
            add_partitions(pipeline.config, topic, 2)
            if topic == "features":
                pipeline.send(values[1], 1)
            if topic != order[-1]:
                seen = f"{pipeline.config.topic(topic)} now has 2 partitions"
                pipeline.wait_until(lambda seen=seen: seen in pipeline.log)  # type: ignore[misc]
                # a start that finds more partitions in one topic than in others waits, too
                pipeline.workers.kill("join-1")
            if topic == "labels" and order[-1] == "observations":
                pipeline.wait_until(lambda: missing in pipeline.log)
                # the other stream goes on meanwhile
                pipeline.send(values[0][50:100])
                pipeline.wait_until(lambda: pipeline.counts()["predictions"] == 100)
        done = pipeline.counts()["predictions"]
        pipeline.send(values[0][50 if done < 100 else 100 :])
        pipeline.finish_joined()
        assert {status for _, status in pipeline.workers.deaths} == {-signal.SIGKILL}
    assert_all_answered(pipeline, {0: 150, 1: 150})


def other_than_controller(cluster: Cluster) -> int:
    """Return a broker without which topics can still be changed."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    controller = client.describe_cluster().result(30).controller.id
    return next(node for node in cluster.plan.nodes if node != controller)


@pytest.mark.parametrize(("role", "output"), [("join", "observations"), ("model", "evaluations")])
def test_a_worker_that_was_frozen_while_writes_were_refused_loses_nothing(
    tmp_path: Path, configure: Configure, prefix: str, role: Role, output: str
) -> None:
    path = configure(topics={**topics(prefix), "replication": 3})
    values = numbered(observations(600))
    with (
        Cluster(tmp_path / "kafka", brokers=3) as cluster,
        KafkaPipeline(path, cluster.bootstrap_servers, tmp_path, roles=JOINED) as pipeline,
    ):
        pipeline.send(values[:100])
        pipeline.wait_until(lambda: pipeline.counts()["predictions"] == 100)
        set_topic(pipeline.config, output, "min.insync.replicas", "3")
        cluster.kill_broker(other_than_controller(cluster))
        pipeline.send(values[100:300])
        time.sleep(4)  # so that its outputs wait
        pipeline.workers.kill(f"{role}-1", signal.SIGSTOP)
        before = len(pipeline.workers.starts(role))
        pipeline.workers.add(role)  # takes over when the session has ended
        pipeline.send(values[300:400])
        pipeline.wait_until(lambda: len(pipeline.workers.starts(role)) > before)
        set_topic(pipeline.config, output, "min.insync.replicas", "2")
        pipeline.send(values[400:])
        pipeline.wait_until(lambda: pipeline.counts()["predictions"] > 300, timeout_s=90)
        pipeline.workers.kill(f"{role}-1", signal.SIGCONT)
        pipeline.finish_joined()
    assert_all_answered(pipeline, {0: 600})
