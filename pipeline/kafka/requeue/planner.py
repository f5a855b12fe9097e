"""Decides which messages of dead letters are sent again, and why others are not."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from fluxplain.config import Config, ConfigError
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.headers import usable_headers
from fluxplain.kafka.ownership.registered import Fingerprint, Registered
from fluxplain.kafka.producer import MAX_MESSAGE_BYTES
from fluxplain.kafka.requeue.acceptance import Acceptance
from fluxplain.kafka.requeue.originals import Original, Originals, find_originals
from fluxplain.kafka.requeue.raw_log import oldest_message_ms
from fluxplain.kafka.requeue.refusals import Refusals
from fluxplain.kafka.requeue.sent_again import Place, SentAgain, place_of, requeued_from
from fluxplain.schemas import BadRecordError, DeadLetter, Observation
from fluxplain.schemas.dead_letter import MODEL_FAILED, NO_OBSERVATION
from fluxplain.schemas.observation import Id
from fluxplain.stages import Message
from fluxplain.stages.intake.sample import Labelled, Sample

BATCH = 100
"""Dead letters whose originals are read together: with them, at most 150 MB."""

MOST_MESSAGES = 10_000
"""Most messages of one run."""

MOST_BYTES = 64 * 1024 * 1024
"""Most bytes of one run: its messages wait in memory for the user's confirmation."""

OVERHEAD_BYTES = 2_000
"""Bytes of a message besides its key, value and original headers, at most: also a topic's name."""

NOT_WAITED_FOR = (
    "no observation would wait for this label: none with its id was sent again, or is selected"
)

LEARNED = "the model failed when it learned this label: its observation waits for none any more"

GONE = "messages that came after it were deleted: one that was sent for it before may be among them"

Dated = tuple[DeadLetter, int]
"""A dead letter, and when it was published, in milliseconds since 1970."""


class Again(NamedTuple):
    """A message to send again, to its topic and partition."""

    place: Place
    original: Original

    @property
    def headers(self) -> dict[str, bytes]:
        """The original headers, and where the original is."""
        return {**self.original.headers, **requeued_from(self.place)}


class Verdict(NamedTuple):
    """A dead letter, and its message to send; or None, and why not.

    ``is_left`` if it must wait for the next run.
    """

    letter: DeadLetter
    again: Again | None = None
    refusal: str = ""
    is_left: bool = False


class Planner:
    """Goes through dead letters, and plans to send at most ``most`` messages.

    A message is sent once, even if several dead letters are about it. Raises ``BrokerError`` if the
    broker, or the schema registry, does not answer.
    """

    def __init__(self, config: Config, registered: Registered, most: int = MOST_MESSAGES) -> None:
        self._config = config
        self._refusals = Refusals(config, registered)
        self._acceptance = Acceptance(config)
        self.sent = SentAgain(config, self._acceptance)
        self._most = most
        self._planned: set[Place] = set()
        self._bytes = 0
        self._ids: set[tuple[int, Id]] = set()
        self._oldest: dict[TopicPartition, float] = {}

    def verdicts(self, read: Callable[[], Iterable[Dated]]) -> Iterator[Verdict]:
        """Yield the verdict on each dead letter; on labels that lack an observation at last.

        ``read`` yields each with the time when it was published, in milliseconds since 1970. It
        begins with the first one at each call, so that none stays in memory.
        """
        kinds = {False}
        for letter, published_ms in read():
            kinds.add(_lacks_observation(letter))
            if self._refusals.of(letter, published_ms) is None:
                self._watch(letter)
        self.sent.read()
        self._ids |= self.sent.ids
        for kind in sorted(kinds):
            chosen = (each for each in read() if _lacks_observation(each[0]) is kind)
            while batch := list(islice(chosen, BATCH)):
                yield from self._batch(batch)

    def _watch(self, letter: DeadLetter) -> None:
        self.sent.watch(place_of(letter))
        if _lacks_observation(letter):
            self.sent.watch_ids(self._config.topic(Observation.TOPIC), letter.partition)

    def _batch(self, letters: list[Dated]) -> Iterator[Verdict]:
        judged = [
            (letter, self._refusals.of(letter, published_ms) or self._sent_before(letter))
            for letter, published_ms in letters
        ]
        originals = find_originals(
            self._config, [letter for letter, refusal in judged if refusal is None]
        )
        published = {place_of(letter): published_ms for letter, published_ms in letters}
        for letter, refusal in judged:
            if refusal is not None:
                yield Verdict(letter, refusal=refusal)
                continue
            try:
                self._check_log(letter, published[place_of(letter)], originals)
                yield self._checked(letter, originals.of(letter))
            except BadRecordError as error:
                yield Verdict(letter, refusal=str(error))

    def _check_log(self, letter: DeadLetter, published_ms: int, originals: Originals) -> None:
        """Raise ``BadRecordError`` if a message that was sent for it before may be deleted."""
        place = TopicPartition(letter.topic, letter.partition)
        if originals.starts[place] > letter.offset + 1:
            oldest_ms = self._oldest.get(place)
            if oldest_ms is None:
                oldest_ms = self._oldest[place] = oldest_message_ms(self._config, place)
            if oldest_ms > published_ms:
                raise BadRecordError(GONE)

    def _sent_before(self, letter: DeadLetter) -> str | None:
        offset = self.sent.offsets.get(place_of(letter))
        return None if offset is None else f"it was sent again before, to offset {offset}"

    def _checked(self, letter: DeadLetter, original: Original) -> Verdict:
        """Return the verdict by the message itself; raise ``BadRecordError`` if it is refused."""
        if original.size + OVERHEAD_BYTES > MAX_MESSAGE_BYTES:
            most = MAX_MESSAGE_BYTES - OVERHEAD_BYTES
            raise BadRecordError(f"it has {original.size:,} bytes, but {most:,} can be sent")
        headers = usable_headers(original.headers.items(), is_own=False)
        key, value = original.key, original.value
        record = self._acceptance.accepted(Message(*place_of(letter), key, value, None, headers))
        if isinstance(record, Labelled):
            self._check_observation(letter, record.label.id)
        verdict = self._planned_or_left(letter, Again(place_of(letter), original))
        if isinstance(record, Sample) and record.id is not None and verdict.again is not None:
            self._ids.add((letter.partition, record.id))
        return verdict

    def _check_observation(self, letter: DeadLetter, id_: Id) -> None:
        """Raise ``BadRecordError`` for a label that no observation would wait for."""
        if letter.reason.startswith(MODEL_FAILED):
            raise BadRecordError(LEARNED)
        if _lacks_observation(letter) and (letter.partition, id_) not in self._ids:
            raise BadRecordError(NOT_WAITED_FOR)

    def _planned_or_left(self, letter: DeadLetter, again: Again) -> Verdict:
        if again.place in self._planned:
            return Verdict(letter, refusal="another dead letter about the same message is sent")
        size = again.original.size
        if len(self._planned) >= self._most or self._bytes + size > MOST_BYTES:
            return Verdict(letter, is_left=True)
        self._planned.add(again.place)
        self._bytes += size
        return Verdict(letter, again)


def _lacks_observation(letter: DeadLetter) -> bool:
    return letter.reason.startswith(NO_OBSERVATION)


def check_registered(config: Config, registered: Registered) -> None:
    """Raise ``ConfigError`` unless these settings are those by which the workers validate."""
    fingerprint = registered.fingerprint
    if fingerprint is None:
        return
    here = Fingerprint(config.fingerprint(), fingerprint.versions)
    if differences := fingerprint.differences(here):
        raise ConfigError(
            f"the pipeline {config.topics.prefix} is registered with other settings: they differ "
            f"in {', '.join(differences[:8])}. Name the settings of its workers, or replace them "
            "first (`fluxplain settings replace`)"
        )
