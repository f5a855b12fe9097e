"""Late labels: joins observations and labels by id, whichever comes first."""

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

from fluxplain.config import LabelSettings
from fluxplain.schemas import BadRecordError, DeadLetter, Record
from fluxplain.schemas.dead_letter import NO_LABEL, NO_OBSERVATION, OTHER_LABEL
from fluxplain.schemas.observation import Id
from fluxplain.schemas.prediction import LabelCounts
from fluxplain.schemas.record import Target, Value, shown
from fluxplain.stages.intake.sample import Labelled, Sample, Unlabelled
from fluxplain.stages.limits import HEADER_MEMORY_BYTES
from fluxplain.stages.stage import Message

MAX_KEPT_BYTES = 32 * 1024 * 1024
"""Limit of waiting texts and messages in bytes; beyond it the oldest are given up. Without it,
10,000 observations of 100 features with 1,000 characters each would take 1 GB. Known labels have
the same limit."""

T = TypeVar("T")


class Moment(NamedTuple):
    """Progress of a stream: observations, and the largest timestamp in milliseconds (0: none)."""

    observed: int = 0
    time: int = 0


class _Queue(Generic[T]):
    """Waiting items by id, oldest first, with their arrival and size in bytes."""

    def __init__(self) -> None:
        # a dict takes long to find its first item after many deletions
        self._entries: OrderedDict[Id, tuple[T, Moment, int]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, id_: Id) -> bool:
        return id_ in self._entries

    def add(self, id_: Id, item: T, since: Moment, size: int) -> None:
        self.pop(id_)  # so that the items stay in order of age
        self._entries[id_] = item, since, size
        self.bytes += size

    def get(self, id_: Id) -> T | None:
        return self._entries[id_][0] if id_ in self._entries else None

    def pop(self, id_: Id) -> T | None:
        item, _, size = self._entries.pop(id_, (None, None, 0))
        self.bytes -= size
        return item

    def pop_oldest(self) -> tuple[Id, T]:
        id_, (item, _, size) = self._entries.popitem(last=False)
        self.bytes -= size
        return id_, item

    def oldest_since(self) -> Moment:
        return next(iter(self._entries.values()))[1]


class LateLabels:
    """Joins late labels with their observations, by id.

    Waiting is bounded by the number of later observations, by time if configured, and by size. Time
    is the largest timestamp so far, so a replay gives up the same messages at the same offsets.
    After a wrong timestamp in the future, only the number counts until that time.
    """

    def __init__(self, settings: LabelSettings) -> None:
        self._wait = settings.wait
        self._wait_ms = None if settings.wait_s is None else int(settings.wait_s * 1000)
        self._keeps_messages = settings.unlabelled == "dead-letter"
        self._now = Moment()
        self._unlabelled = _Queue[Unlabelled]()
        self._early = _Queue[Labelled]()
        self._known = _Queue[Target | None]()  # None: the label is unwanted
        self._joined = self._missing = self._repeated = self._unknown = 0
        self._is_used = False

    @property
    def counts(self) -> LabelCounts | None:
        """Counts of labels by outcome; None until an observation has waited."""
        if not self._is_used:
            return None
        return LabelCounts(
            waiting=len(self._unlabelled),
            joined=self._joined,
            missing=self._missing,
            repeated=self._repeated,
            unknown=self._unknown,
        )

    def check_wait(self) -> None:
        """Raise ``BadRecordError`` if ``label.wait`` is 0: then no label may come later."""
        if not self._wait:
            raise BadRecordError("label.wait is 0: no observation waits for a later label")

    def advance(self, message: Message, *, is_observation: bool) -> list[DeadLetter]:
        """Advance to a message's time; return dead letters of items that waited too long."""
        time = max(self._now.time, message.time or 0)
        self._now = Moment(self._now.observed + is_observation, time)
        records: list[DeadLetter] = []
        while self._is_over(self._unlabelled):
            records += self._give_up()
        while self._is_over(self._early):
            records.append(self._give_up_early())
        while self._is_over(self._known):
            self._known.pop_oldest()
        return records

    def observe(self, id_: Id | None, y: Target | None, records: list[Record]) -> Target | None:
        """Return the label of an observation: its own, or one that arrived before it.

        An early label that contradicts its own is added to the records as a dead letter. An early
        label is used up, even if the observation fails later.
        """
        if id_ is None:
            return y
        early = self._early.pop(id_)
        if y is not None and self._is_used:  # otherwise no label can be a repetition
            self._know(id_, y)
        if early is None:
            return y
        label = early.label.y
        if y is None:
            self._joined += 1
            self._know(id_, label)
            return label
        if y == label:
            self._repeated += 1
        else:
            records.append(early.message.dead_letter(_contradiction(id_, y, label)))
        return y

    def wait(self, sample: Sample, prediction: Target | None, records: list[Record]) -> None:
        """Queue an observation until its label arrives.

        Ignored without an id, or if that id is already queued. Evicted items are added to the
        records as dead letters.
        """
        id_ = sample.id
        if id_ is None or not self._wait:
            return
        self._is_used = True
        message = sample.message if self._keeps_messages else None
        if id_ in self._unlabelled:
            self._missing += 1
            records += [] if message is None else [_without_label(id_, message)]
            return
        self._known.pop(id_)  # of an earlier observation with this id
        waits = Unlabelled(sample.seq, sample.x, sample.ts, prediction, message)
        size = _size(message, id_, sample.ts, prediction, *sample.x.values())
        self._unlabelled.add(id_, waits, self._now, size)
        while self._unlabelled.bytes > MAX_KEPT_BYTES:
            records += self._give_up()

    def join(self, labelled: Labelled, records: list[Record]) -> Unlabelled | None:
        """Return the observation that waits for a label; None if there is none.

        A label without an observation waits for it; evicted ones are added to the records. Raises
        ``BadRecordError`` for a contradicting label.
        """
        self._is_used = True
        id_, y = labelled.label.id, labelled.label.y
        observation = self._unlabelled.pop(id_)
        if observation is not None:
            self._joined += 1
            self._know(id_, y)
            return observation
        early = self._early.get(id_)
        if early is None and id_ not in self._known:
            self._early.add(id_, labelled, self._now, _size(labelled.message, id_))
            # labels alone do not age each other
            while len(self._early) > self._wait or self._early.bytes > MAX_KEPT_BYTES:
                records.append(self._give_up_early())
            return None
        before = self._known.get(id_) if early is None else early.label.y
        if before == y:
            self._repeated += 1
        elif before is not None:
            raise BadRecordError(_contradiction(id_, before, y))
        return None

    def pass_over(self, id_: Id | None) -> None:
        """Mark an observation's label as unwanted, and drop an early one."""
        if id_ is not None and self._wait:
            self._early.pop(id_)
            self._know(id_, None)

    def _know(self, id_: Id, y: Target | None) -> None:
        self._known.add(id_, y, self._now, _size(None, id_, y))
        while self._known.bytes > MAX_KEPT_BYTES:
            self._known.pop_oldest()

    def _is_over(self, queue: _Queue[T]) -> bool:
        if not len(queue):
            return False
        since = queue.oldest_since()
        if self._now.observed - since.observed > self._wait:
            return True
        return self._wait_ms is not None and self._now.time - since.time > self._wait_ms

    def _give_up(self) -> list[DeadLetter]:
        id_, observation = self._unlabelled.pop_oldest()
        self._missing += 1
        message = observation.message
        return [] if message is None else [_without_label(id_, message)]

    def _give_up_early(self) -> DeadLetter:
        id_, early = self._early.pop_oldest()
        self._unknown += 1
        return early.message.dead_letter(
            f"{NO_OBSERVATION}{shown(id_)} waits for this label: none came, or it waited "
            "too long (label.wait), or had its label already"
        )


def _without_label(id_: Id, message: Message) -> DeadLetter:
    return message.dead_letter(f"{NO_LABEL}{shown(id_)} came in time (label.wait)")


def _contradiction(id_: Id, before: Target, now: Target) -> str:
    return (
        f"{OTHER_LABEL}{shown(id_)} was labelled {shown(before)} before, and now "
        f"{shown(now)}: the first counts"
    )


def _size(message: Message | None, *values: Value | None) -> int:
    """Return the bytes of a message, and of the texts among some values."""
    texts = sum(len(each.encode()) for each in values if isinstance(each, str))
    if message is None:
        return texts
    headers = sum(
        len(name) + len(value) + HEADER_MEMORY_BYTES for name, value in message.headers.items()
    )
    return texts + len(message.key or b"") + len(message.value or b"") + headers
