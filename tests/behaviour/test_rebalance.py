"""Several workers a role: partitions move while work is in flight, and nothing shows of it.

On a real Kafka only: the embedded broker's groups fail at random when a second member joins.
"""

import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fluxplain.cli.supervisor import ROLES
from tests.kit.kafka_pipeline import KafkaPipeline, Start
from tests.kit.settings import topic_store
from tests.kit.streams import observations, with_hostile

pytestmark = pytest.mark.kafka


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    """As for workers on different machines: checkpoints in a topic."""
    return {"checkpoint": topic_store(tmp_path)}


STREAMS = {0: with_hostile(observations(600, seed=3)), 2: observations(600, seed=4)}


def parts(values: list[bytes], n: int) -> Iterator[list[bytes]]:
    size = -(-len(values) // n)
    return (values[i : i + size] for i in range(0, len(values), size))


def all_run(pipeline: KafkaPipeline) -> bool:
    """Return whether every worker has started; who is stopped before cannot do it in order."""
    started = set(re.findall(r" (\d+) INFO .*: health at", pipeline.log))
    return started >= set(map(str, pipeline.workers.running().values()))


def test_workers_come_and_go(start: Start) -> None:
    pieces = zip(*(parts(values, 6) for values in STREAMS.values()), strict=True)
    with start(roles=[*ROLES, *ROLES]) as pipeline:
        for i, piece in enumerate(pieces):
            for partition, values in zip(STREAMS, piece, strict=True):
                pipeline.send(values, partition)
            # work is in flight at each of these
            wanted = len(pipeline.published) + 20
            pipeline.wait_until(lambda wanted=wanted: len(pipeline.published) >= wanted)  # type: ignore[misc]
            if i in {0, 2, 4}:
                for role in ROLES:
                    pipeline.workers.add(role)
            elif i in {1, 3}:
                pipeline.wait_until(partial(all_run, pipeline))
                for role in ROLES:
                    assert pipeline.workers.remove(f"{role}-{1 + i // 2}") == 0
        # one that is stopped while it is loaded ends by the signal
        pipeline.wait_until(partial(all_run, pipeline))
        pipeline.finish(STREAMS)
    assert not pipeline.workers.deaths
    assert set(pipeline.workers.exit_statuses.values()) == {0}


def test_partitions_that_stay_are_not_loaded_again(start: Start) -> None:
    with start(roles=["model", "explainer", "drift"]) as pipeline:
        for partition, values in STREAMS.items():
            pipeline.send(values[:300], partition)
        pipeline.wait_until(lambda: pipeline.workers.share(*ROLES))
        before = {role: len(pipeline.workers.starts(role)) for role in ROLES}
        for role in ROLES:
            pipeline.workers.add(role)
        for partition, values in STREAMS.items():
            pipeline.send(values[300:], partition)
        pipeline.wait_until(lambda: pipeline.workers.share(*ROLES))
        pipeline.finish(STREAMS)
        for role in ROLES:
            assert len(pipeline.workers.starts(role)) == before[role] + 2, role


def test_a_killed_worker_is_replaced_by_the_others(start: Start) -> None:
    with start(roles=[*ROLES, *ROLES]) as pipeline:
        for partition, values in STREAMS.items():
            pipeline.send(values, partition)
        pipeline.wait_until(lambda: pipeline.workers.share(*ROLES))
        for role in ROLES:
            pipeline.workers.kill(f"{role}-1")
        pipeline.finish(STREAMS)


def test_a_zombie_that_comes_back_corrupts_nothing(start: Start) -> None:
    with start(roles=[*ROLES, *ROLES]) as pipeline:
        for partition, values in STREAMS.items():
            pipeline.send(values[:300], partition)
        pipeline.wait_until(lambda: pipeline.workers.share(*ROLES))
        before = {role: len(pipeline.workers.starts(role)) for role in ROLES}
        for role in ROLES:
            pipeline.workers.kill(f"{role}-1", signal.SIGSTOP)
        for partition, values in STREAMS.items():
            pipeline.send(values[300:], partition)
        # all of them have lost their partitions to somebody else when they wake
        pipeline.wait_until(lambda: all(len(pipeline.workers.starts(r)) > before[r] for r in ROLES))
        for role in ROLES:
            pipeline.workers.kill(f"{role}-1", signal.SIGCONT)
        pipeline.finish(STREAMS)


def test_a_static_member_that_restarts_moves_no_partitions(start: Start) -> None:
    values = observations(200)

    def instance(name: str) -> dict[str, str]:
        return {"FLUXPLAIN_KAFKA__GROUP_INSTANCE_ID": name}

    with start(roles=["model", "model", "explainer", "drift"], environment_of=instance) as pipeline:
        pipeline.process(values[:100])
        pipeline.wait_until(lambda: pipeline.workers.share(*ROLES))
        other = pipeline.workers.running()["model-2"]

        def started() -> int:
            return sum(start.pid == other for start in pipeline.workers.starts("model"))

        before = started()
        pipeline.workers.kill("model-1", signal.SIGTERM)
        pipeline.wait_until(lambda: pipeline.workers.running().get("model-1") is None)
        pipeline.feed(values[100:])
        pipeline.finish(values)
        assert started() == before
