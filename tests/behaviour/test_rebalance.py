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
from fluxplain.config.replica import Role
from tests.kit.kafka_pipeline import KafkaPipeline, Start, assert_same, reference, references
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


def has_published(pipeline: KafkaPipeline, records: int) -> bool:
    return len(pipeline.published) >= records


def finish(pipeline: KafkaPipeline) -> None:
    wanted = references(pipeline.config, STREAMS)
    pipeline.wait_until(lambda: wanted.keys() <= pipeline.published.keys(), timeout_s=180)
    assert_same(pipeline.published, wanted)


def starts(pipeline: KafkaPipeline, role: Role) -> list[tuple[str, str]]:
    """Return (process, partition) each time that a worker of a role went on with a partition."""
    return re.findall(rf" (\d+) INFO \S+ {role} \S+-(\d): resumes at", pipeline.log)


def all_have_work(pipeline: KafkaPipeline) -> bool:
    """Return whether the last rebalance of each role dealt all four partitions, to all workers."""
    for role in ROLES:
        last = starts(pipeline, role)[-4:]
        processes, partitions = {process for process, _ in last}, {place for _, place in last}
        running = set(map(str, pipeline.workers.running(role).values()))
        if processes != running or len(partitions) < 4:
            return False
    return True


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
            pipeline.wait_until(partial(has_published, pipeline, wanted))
            if i in {0, 2, 4}:
                for role in ROLES:
                    pipeline.workers.add(role)
            elif i in {1, 3}:
                pipeline.wait_until(partial(all_run, pipeline))
                for role in ROLES:
                    assert pipeline.workers.remove(f"{role}-{1 + i // 2}") == 0
        # one that is stopped while it is loaded ends by the signal
        pipeline.wait_until(partial(all_run, pipeline))
        finish(pipeline)
    assert not pipeline.workers.deaths
    assert set(pipeline.workers.exit_statuses.values()) == {0}


def test_a_killed_worker_is_replaced_by_the_others(start: Start) -> None:
    with start(roles=[*ROLES, *ROLES]) as pipeline:
        for partition, values in STREAMS.items():
            pipeline.send(values, partition)
        pipeline.wait_until(partial(all_have_work, pipeline))
        for role in ROLES:
            pipeline.workers.kill(f"{role}-1")
        finish(pipeline)


def test_a_zombie_that_comes_back_corrupts_nothing(start: Start) -> None:
    with start(roles=[*ROLES, *ROLES]) as pipeline:
        for partition, values in STREAMS.items():
            pipeline.send(values[:300], partition)
        pipeline.wait_until(partial(all_have_work, pipeline))
        before = {role: len(starts(pipeline, role)) for role in ROLES}
        for role in ROLES:
            pipeline.workers.kill(f"{role}-1", signal.SIGSTOP)
        for partition, values in STREAMS.items():
            pipeline.send(values[300:], partition)
        # all of them have lost their partitions to somebody else when they wake
        pipeline.wait_until(lambda: all(len(starts(pipeline, r)) > before[r] for r in ROLES))
        for role in ROLES:
            pipeline.workers.kill(f"{role}-1", signal.SIGCONT)
        finish(pipeline)


def test_a_static_member_that_restarts_moves_no_partitions(start: Start) -> None:
    values = observations(200)

    def instance(name: str) -> dict[str, str]:
        return {"FLUXPLAIN_KAFKA__GROUP_INSTANCE_ID": name}

    with start(roles=["model", "model", "explainer", "drift"], environment_of=instance) as pipeline:
        pipeline.feed(values[:100])
        pipeline.wait_until_through(100)
        pipeline.wait_until(partial(all_have_work, pipeline))
        other = str(pipeline.workers.running()["model-2"])

        def started() -> int:
            return sum(process == other for process, _ in starts(pipeline, "model"))

        before = started()
        pipeline.workers.kill("model-1", signal.SIGTERM)
        pipeline.wait_until(lambda: pipeline.workers.running().get("model-1") is None)
        pipeline.feed(values[100:])
        pipeline.wait_until_through(200)
        assert started() == before
    assert_same(pipeline.published, reference(pipeline.config, values))
