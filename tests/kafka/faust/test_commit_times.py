"""The time of a commit is kept in its metadata; metadata of other clients is no time."""

import asyncio
import time
from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from fluxplain.kafka.faust.commit_times import CommitTimes

TP = TopicPartition("features", 0)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Group:
    """A consumer whose group has one committed offset."""

    def __init__(self, metadata: str | None) -> None:
        self.committed: Offsets = {TP: OffsetAndMetadata(7, metadata)}
        self._coordinator = SimpleNamespace(fetch_committed_offsets=self._fetch)

    async def _fetch(self, _tps: object) -> Offsets:
        return self.committed

    async def commit(self, offsets: Offsets) -> None:
        self.committed = offsets


def restarted(metadata: str | None) -> tuple[list[float], str]:
    """Read the times, commit the same offset again; return them, and its metadata then."""
    group = Group(metadata)

    async def run() -> list[float]:
        times = CommitTimes(group)
        found = await times.read([TP])
        await group.commit({TP: OffsetAndMetadata(7, "")})
        return found

    return asyncio.run(run()), group.committed[TP].metadata


def test_an_unchanged_offset_keeps_the_time_of_its_commit() -> None:
    at = "fluxplain:1700000000.125"
    assert restarted(at) == ([1_700_000_000.125], at)


@pytest.mark.parametrize(
    "foreign",
    [
        *(None, "", "x", "nan", "inf", "-5", "7", "99999999999", "1700000000.125"),
        *("other:1700000000.125", "fluxplain:", "fluxplain:x", "fluxplain:nan", "fluxplain:inf"),
        *("fluxplain:0", "fluxplain:-5", "fluxplain:99999999999"),
    ],
)
def test_other_metadata_is_no_time_and_is_not_kept(foreign: str | None) -> None:
    began_at = time.time()
    found, kept = restarted(foreign)
    assert found == []
    assert began_at - 0.001 <= float(kept.removeprefix("fluxplain:")) <= time.time() + 0.001
