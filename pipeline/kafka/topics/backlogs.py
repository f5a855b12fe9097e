"""Backlogs of all consumer groups, also of those without any worker."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, Self

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError, TopicPartition
from fluxplain.kafka.topics.asking_thread import AskingThread
from fluxplain.kafka.topics.oldest_messages import OldestMessages
from fluxplain.kafka.topics.progress import GroupOffsets

log = logging.getLogger("fluxplain.backlogs")

EVERY_S = 5.0
"""Seconds between two rounds of requests to the broker: less than between two scrapes."""

STALE_S = 90.0
"""Age in seconds from which a group's backlogs are no longer reported: longer than a broker may
take to take over its group (`TAKEOVER_S`)."""

LEAVING_S = 2.0
"""Seconds that leaving waits for all threads: they may be waiting for a broker."""

REOPEN_S = 300.0
"""Seconds until added partitions are noticed."""


class PartitionBacklog(NamedTuple):
    """The messages of a partition that a group has not committed.

    Messages of open transactions count, since they make the readers wait. ``waits_since`` is when
    the oldest of them was published, in seconds since 1970; None without any. If it cannot be read,
    it is when it was first seen.
    """

    lag: int
    waits_since: float | None


Backlogs = Mapping[tuple[str, TopicPartition], PartitionBacklog]
"""Role, shard or other group, and partition of its input → backlog."""


class Answer(NamedTuple):
    """The newest backlogs of one group and topic, and when the broker gave them.

    ``at`` is by the monotonic clock; before the first answer it is when the monitor began.
    """

    group: str
    backlogs: Backlogs
    at: float


class _Oldest(NamedTuple):
    """The oldest message from an offset on, while the log ended at ``end``."""

    offset: int
    end: int
    waits_since: float | None
    is_read: bool

    def holds(self, offset: int, end: int) -> bool:
        """Return whether reading again would find the same."""
        is_same = offset == self.offset and (self.waits_since is not None or end == self.end)
        return self.is_read and is_same


class BacklogMonitor:
    """Asks the broker about each group and topic in a thread of its own, every ``EVERY_S``.

    A group that does not answer delays no other one.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    others
        Name → topics of groups besides the roles. They begin with new messages, so they have no
        backlog before their first commit.
    """

    def __init__(self, config: Config, others: Mapping[str, Sequence[str]]) -> None:
        names = {str(each): config.inputs(each.role) for each in config.replicas()}
        self._inputs = [
            _InputMonitor(config, name, topic, is_role=name not in others)
            for name, topics in {**names, **others}.items()
            for topic in topics
        ]

    def __enter__(self) -> Self:
        for each in self._inputs:
            each.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        deadline = time.monotonic() + LEAVING_S
        for each in self._inputs:  # all at once: a broker may be away
            each.end()
        for each in self._inputs:
            each.join(max(deadline - time.monotonic(), 0.0))

    def answers(self) -> list[Answer]:
        """Return the newest answer about each group and topic, however old it is."""
        return [each.answer for each in self._inputs]

    def latest(self) -> Backlogs:
        """Return the newest backlogs of the groups about which the broker answered recently."""
        now = time.monotonic()
        recent = [each for each in self.answers() if now - each.at < STALE_S]
        return {key: backlog for each in recent for key, backlog in each.backlogs.items()}


class _InputMonitor(AskingThread):
    """Asks about one topic that a group reads; ``answer`` is the newest answer."""

    def __init__(self, config: Config, group: str, topic: str, *, is_role: bool) -> None:
        super().__init__(f"backlog of {group}, {topic}", LEAVING_S)
        self._config, self._group, self._topic = config, group, topic
        self._is_role = is_role
        self._oldest: dict[TopicPartition, _Oldest] = {}
        self._logged = set[str]()
        self.answer = Answer(group, {}, time.monotonic())

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                self._ask_for_a_while()
            except Exception as error:
                self._log_new(error)
                self._ended.wait(EVERY_S)

    def _ask_for_a_while(self) -> None:
        deadline = time.monotonic() + REOPEN_S
        named = self._config, self._group, self._topic
        with (
            closing(GroupOffsets(*named, to_open_transactions=False)) as group,
            closing(OldestMessages(self._config)) as reader,
        ):
            while not self._ended.is_set() and time.monotonic() < deadline:
                found = self._backlogs(group, reader)
                self.answer = Answer(self._group, found, time.monotonic())
                self._logged.clear()
                self._ended.wait(EVERY_S)

    def _log_new(self, error: Exception) -> None:
        """Log an error once, until the broker answers again."""
        reason = str(error) if isinstance(error, BrokerError) else repr(error)
        if reason not in self._logged and not self._ended.is_set():
            self._logged.add(reason)
            log.warning("%s, %s: the backlog is unknown: %s", self._group, self._topic, reason)

    def _backlogs(self, group: GroupOffsets, reader: OldestMessages) -> Backlogs:
        topic = self._config.topic(self._topic)
        committed, starts, ends = group.commits(), group.starts(), group.ends()
        if not self._is_role and not committed:
            return {}
        begins = {
            TopicPartition(topic, p): max(committed.get(p, 0), start) for p, start in starts.items()
        }
        unread = {tp: (at, ends[tp.partition]) for tp, at in begins.items()}
        self._read_oldest({tp: log for tp, log in unread.items() if log[0] < log[1]}, reader)
        return {(self._group, tp): self._backlog(tp, *log) for tp, log in unread.items()}

    def _read_oldest(
        self, logs: Mapping[TopicPartition, tuple[int, int]], reader: OldestMessages
    ) -> None:
        """Read the oldest message of each unread log, unless it is known."""
        new = {
            tp: log
            for tp, log in logs.items()
            if not ((known := self._oldest.get(tp)) and known.holds(*log))
        }
        if not new:
            return
        read = reader.published_at(new)
        for tp, (offset, end) in new.items():
            known = self._oldest.get(tp)
            since = known.waits_since if known and known.offset == offset else None
            at = read[tp] if tp in read else since or time.time()
            self._oldest[tp] = _Oldest(offset, end, at, tp in read)

    def _backlog(self, tp: TopicPartition, offset: int, end: int) -> PartitionBacklog:
        if offset >= end:
            return PartitionBacklog(0, None)
        since = self._oldest[tp].waits_since
        return PartitionBacklog(0 if since is None else end - offset, since)
