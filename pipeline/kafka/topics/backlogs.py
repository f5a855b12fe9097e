"""Backlogs of all consumer groups, also of those without any worker."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import NamedTuple

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError, TopicPartition
from fluxplain.kafka.topics.asking_thread import AskingThread
from fluxplain.kafka.topics.oldest_messages import OldestMessages
from fluxplain.kafka.topics.progress import GroupOffsets

log = logging.getLogger("fluxplain.backlogs")

EVERY_S = 5.0
"""Seconds between two rounds of requests to the broker: less than between two scrapes."""

STALE_S = 90.0
"""Age in seconds from which a group's backlogs are no longer reported: longer than a group without
an answer delays the others (`TAKEOVER_S`)."""

REOPEN_S = 300.0
"""Seconds until added partitions are noticed."""


class PartitionBacklog(NamedTuple):
    """The messages of a partition that a group has not committed.

    ``waits_since`` is when the oldest of them was published, in seconds since 1970; None without
    any. If it cannot be read, it is when it was first seen.
    """

    lag: int
    waits_since: float | None


Backlogs = Mapping[tuple[str, TopicPartition], PartitionBacklog]
"""Role, shard or other group, and partition of its input → backlog."""


class _Input(NamedTuple):
    """A topic, without the prefix, that a group reads."""

    group: str
    topic: str


class _Answer(NamedTuple):
    """Backlogs of one input, and when the broker gave them, by the monotonic clock."""

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


class BacklogMonitor(AskingThread):
    """Asks the broker in a thread of its own, every ``EVERY_S``.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    others
        Name → topics of groups besides the roles. They begin with new messages, so they have no
        backlog before their first commit.
    """

    def __init__(self, config: Config, others: Mapping[str, Sequence[str]]) -> None:
        super().__init__("backlogs", EVERY_S)
        self._config = config
        self._others = others
        self._oldest: dict[tuple[str, TopicPartition], _Oldest] = {}
        self._opened: dict[_Input, GroupOffsets] = {}
        self._answers: dict[_Input, _Answer] = {}
        self._logged: dict[_Input | None, set[str]] = {}

    def latest(self) -> Backlogs:
        """Return the newest backlogs of the groups about which the broker answered recently."""
        now = time.monotonic()
        recent = [each for each in self._answers.copy().values() if now - each.at < STALE_S]
        return {key: backlog for each in recent for key, backlog in each.backlogs.items()}

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                self._ask_for_a_while()
            except Exception as error:
                self._log_new(None, error)
                self._ended.wait(EVERY_S)

    def _ask_for_a_while(self) -> None:
        config, deadline = self._config, time.monotonic() + REOPEN_S
        names = {str(each): config.inputs(each.role) for each in config.replicas()}
        inputs = [
            _Input(name, topic)
            for name, topics in {**names, **self._others}.items()
            for topic in topics
        ]
        with ExitStack() as stack:
            reader = stack.enter_context(closing(OldestMessages(config)))
            for each in inputs:
                stack.callback(self._close, each)
            while not self._ended.is_set() and time.monotonic() < deadline:
                for each in inputs:
                    self._ask(each, reader)
                self._logged.pop(None, None)
                self._ended.wait(EVERY_S)

    def _ask(self, each: _Input, reader: OldestMessages) -> None:
        """Ask about one input: an error is logged, and does not affect the others."""
        if self._ended.is_set():
            return
        try:
            if each not in self._opened:
                self._opened[each] = GroupOffsets(self._config, *each)
            found = self._of_group(
                each.group, self._config.topic(each.topic), self._opened[each], reader
            )
        except Exception as error:
            self._log_new(each, error)
            self._close(each)
        else:
            self._answers[each] = _Answer(found, time.monotonic())
            self._logged.pop(each, None)

    def _close(self, each: _Input) -> None:
        if group := self._opened.pop(each, None):
            group.close()

    def _log_new(self, each: _Input | None, error: Exception) -> None:
        """Log an error once, until the broker answers again."""
        reason = str(error) if isinstance(error, BrokerError) else repr(error)
        logged = self._logged.setdefault(each, set())
        if reason not in logged and not self._ended.is_set():
            logged.add(reason)
            what = "all groups" if each is None else f"{each.group}, {each.topic}"
            log.warning("%s: the backlog is unknown: %s", what, reason)

    def _of_group(
        self, name: str, topic: str, group: GroupOffsets, reader: OldestMessages
    ) -> Backlogs:
        committed, starts, ends = group.commits(), group.starts(), group.ends()
        if name in self._others and not committed:
            return {}
        begins = {
            TopicPartition(topic, p): max(committed.get(p, 0), start) for p, start in starts.items()
        }
        unread = {tp: (at, ends[tp.partition]) for tp, at in begins.items()}
        self._read_oldest(name, {tp: log for tp, log in unread.items() if log[0] < log[1]}, reader)
        return {(name, tp): self._backlog(name, tp, *log) for tp, log in unread.items()}

    def _read_oldest(
        self, name: str, logs: Mapping[TopicPartition, tuple[int, int]], reader: OldestMessages
    ) -> None:
        """Read the oldest message of each unread log, unless it is known."""
        new = {
            tp: log
            for tp, log in logs.items()
            if not ((known := self._oldest.get((name, tp))) and known.holds(*log))
        }
        if not new:
            return
        read = reader.published_at({tp: offset for tp, (offset, _) in new.items()})
        for tp, (offset, end) in new.items():
            known = self._oldest.get((name, tp))
            since = known.waits_since if known and known.offset == offset else None
            at = read[tp] if tp in read else since or time.time()
            self._oldest[name, tp] = _Oldest(offset, end, at, tp in read)

    def _backlog(self, name: str, tp: TopicPartition, offset: int, end: int) -> PartitionBacklog:
        if offset >= end:
            return PartitionBacklog(0, None)
        since = self._oldest[name, tp].waits_since
        return PartitionBacklog(0 if since is None else end - offset, since)
