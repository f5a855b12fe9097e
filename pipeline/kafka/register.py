"""The topic ``register``: the settings a pipeline runs with, and the owners of its partitions.

Kafka orders the topic's records, so a record's number (its offset plus one) is unique and grows.
Five kinds of records:

- **settings**: a worker with other settings or versions than the registered ones refuses to start;
  `fluxplain settings replace` registers new ones;
- **owner**: a worker claims a partition; the number is its epoch. Readers ignore a writer whose
  partition was claimed again since (:mod:`pipeline.kafka.writers`);
- **begin**: from which checkpoint an owner goes on (:class:`pipeline.kafka.writers.Begin`);
- **cold-start**: a state began behind the beginning of its log, so that it is another one than
  before (:mod:`pipeline.kafka.lives`). The same offset and settings give the same state, so each
  worker that starts there gets the number of the first one;
- **model**: an announced model took over, or was withdrawn before. Of several such records about
  one announcement the first counts, so that all shards, and all later starts, decide as one.
"""

import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self, get_args

import orjson
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.config import Config, ConfigError
from pipeline.kafka.client import BrokerError, client_settings, partitions_of, refusal
from pipeline.kafka.peek import read_on
from pipeline.kafka.timeouts import REGISTER_S
from pipeline.kafka.writers import ANY, Begin, Writer
from pipeline.stages.announced import Decision

TOPIC = "register"
"""Its name, without the prefix."""

PARTITION = 0
"""The only one that is used: there must be one order."""

BEGINS = 16
"""Begins of a slot that compaction keeps."""

MOST_NAMED = 8
"""Keys that an error names."""


class RegisteredError(ConfigError):
    """The pipeline is registered with other settings. The message names the keys."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All that decides what a pipeline publishes.

    Attributes
    ----------
    settings
        Key → digest of its value.
    versions
        Package → version.
    logs
        Topic that users write → its id, where the broker has such ids; a topic that was deleted and
        created again has another one.
    """

    settings: Mapping[str, str]
    versions: Mapping[str, str]
    logs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Return the fingerprint in a record; others than ours raise TypeError or KeyError."""
        return cls(*(_texts(fields[name]) for name in ("settings", "versions", "logs")))

    def differences(self, here: "Fingerprint") -> list[str]:
        """Return in words what differs here from what is registered.

        Examples
        --------
        >>> registered = Fingerprint({"seed": "a1"}, {"river": "0.26.1"}, {"features": "x"})
        >>> registered.differences(Fingerprint({"seed": "b2"}, {"river": "0.27.0"}))
        ['seed', 'the version of river (registered: 0.26.1, here: 0.27.0)']
        """
        keys = {*self.settings, *here.settings}
        found = sorted(key for key in keys if self.settings.get(key) != here.settings.get(key))
        for name in sorted({*self.versions, *here.versions}):
            before, now = self.versions.get(name, "none"), here.versions.get(name, "none")
            if before != now:
                found.append(f"the version of {name} (registered: {before}, here: {now})")
        for topic in sorted({*self.logs} & {*here.logs}):
            if self.logs[topic] != here.logs[topic]:
                found.append(f"the topic {topic} was deleted and made anew")
        return found


@dataclass(slots=True)
class Registered:
    """What the records of the topic say, up to the last one that was read.

    Attributes
    ----------
    number
        Of the registered settings; 0 while there are none.
    fingerprint
        The registered settings.
    epochs
        Slot of a writer, as text → epoch of its newest owner.
    begins
        Slot → from which checkpoint its newest owner began.
    cold_starts
        (role and partition, as text; offset) → number, of cold starts with the present settings.
    decisions
        (stream, seq) of an announcement → what was decided about it, with the present settings.
    lives
        The numbers of all settings and cold starts: of them incarnations consist.
    """

    number: int = 0
    fingerprint: Fingerprint | None = None
    epochs: dict[str, int] = field(default_factory=dict)
    begins: dict[str, Begin] = field(default_factory=dict)
    cold_starts: dict[tuple[str, int], int] = field(default_factory=dict)
    decisions: dict[tuple[str, int], Decision] = field(default_factory=dict)
    lives: set[int] = field(default_factory=set)

    def knows(self, writer: Writer) -> bool:
        """Return whether a writer has claimed its slot."""
        return self.epochs.get(writer.slot, 0) >= writer.epoch

    def take(self, number: int, value: bytes | None) -> None:
        """Take a record; what is none of ours is passed over.

        Settings count only if they replace those that are registered at that place: of two workers
        that register at once the first one does.
        """
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            fields = orjson.loads(value or b"")
            if fields["kind"] == "settings" and fields["replaces"] == self.number:
                self.fingerprint = Fingerprint.of(fields)
                self.number = number
                self.lives.add(number)
                self.cold_starts.clear()
                self.decisions.clear()
            elif fields["kind"] == "owner":
                self.epochs[str(fields["slot"])] = number
            elif fields["kind"] == "begin":
                begin = Begin(_whole(fields["epoch"]), _whole(fields["next_offset"]))
                # an owner before may have been late to say so, and nobody begins before he claims
                if begin.epoch >= self.begins.get(str(fields["slot"]), ANY).epoch and (
                    begin.epoch <= self.epochs.get(str(fields["slot"]), 0)
                ):
                    self.begins[str(fields["slot"])] = begin
            elif fields.get("settings") != self.number:
                pass  # cold starts and decisions count with the settings that they name
            elif fields["kind"] == "model" and fields["decision"] in get_args(Decision):
                place = str(fields["stream"]), _whole(fields["seq"])
                self.decisions.setdefault(place, fields["decision"])
            elif fields["kind"] == "cold-start":
                place = str(fields["place"]), _whole(fields["offset"])
                self.lives.add(self.cold_starts.setdefault(place, number))


class Register:
    """Reads the topic and writes to it; may be used from several threads.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topic = config.topic(TOPIC)
        self._lock = Lock()
        self._next = 0
        self._registered = Registered()
        self._producer: Producer | None = None

    def read(self, number: int | None = None) -> Registered:
        """Return what the topic says now.

        Parameters
        ----------
        number
            Of a record: if it was read already, the broker is not asked again.

        Raises
        ------
        BrokerError
            If the broker does not answer, or there is no such topic.
        """
        with self._lock:
            if number is None or number > self._next:
                self._read()
            return self._registered

    def is_life(self, number: int) -> bool:
        """Return whether settings or a cold start have a number, as far as the topic was read.

        That is far enough for each message whose writer was looked up: it was registered before.
        """
        return number in self._registered.lives

    def enter(self, here: Fingerprint) -> int:
        """Register these settings if none are; return the number of the registered ones.

        Raises
        ------
        RegisteredError
            If others are registered.
        BrokerError
            If the broker does not answer.
        """
        with self._lock:
            self._read()
            if not self._registered.number:
                self._add(_settings(here, replaces=0))
            self._check(here)
            return self._registered.number

    def check(self, here: Fingerprint) -> None:
        """Raise :class:`RegisteredError` if others are registered by now."""
        with self._lock:
            self._read()
            self._check(here)

    def replace(self, here: Fingerprint) -> int:
        """Register these settings instead of the present ones; return their number.

        Raises
        ------
        RegisteredError
            If somebody else has registered others meanwhile.
        BrokerError
            If the broker does not answer.
        """
        with self._lock:
            before = self._registered.number
            self._add(_settings(here, replaces=before))
            self._check(here)
            return self._registered.number

    def claim(self, slots: Iterable[str]) -> dict[str, int]:
        """Become the owner of slots; return slot → epoch.

        Raises
        ------
        BrokerError
            If the broker does not take it.
        """
        names = list(slots)
        records = [
            (f"owner {name}", orjson.dumps({"kind": "owner", "slot": name})) for name in names
        ]
        with self._lock:
            return dict(zip(names, self._append(records), strict=True))

    def begin(self, slot: str, begin: Begin) -> None:
        """Say from which checkpoint the owner of a slot goes on, before it writes anything.

        Raises
        ------
        BrokerError
            If the broker does not take it.
        """
        record = {
            "kind": "begin",
            "slot": slot,
            "epoch": begin.epoch,
            "next_offset": begin.next_offset,
        }
        # compaction must not keep that of an owner before, which was late, in place of this one
        key = f"begin {slot} {begin.epoch % BEGINS}"
        with self._lock:
            self._append([(key, orjson.dumps(record))])

    def cold_start(self, place: str, offset: int, settings: int) -> int | None:
        """Return the number of the cold start of a state that begins at an offset.

        None if the settings with this number were replaced by others.

        Raises
        ------
        BrokerError
            If the broker does not answer, or does not take it.
        """
        with self._lock:
            self._read()
            if (place, offset) not in self._registered.cold_starts:
                record = {"kind": "cold-start", "place": place, "offset": offset}
                self._add(orjson.dumps({**record, "settings": settings}))
            is_current = self._registered.number == settings
            return self._registered.cold_starts[place, offset] if is_current else None

    def decision(self, stream: str, seq: int) -> Decision | None:
        """Return what was decided about the model that a message announced; None if nothing was.

        Raises
        ------
        BrokerError
            If the broker does not answer.
        """
        return self.read().decisions.get((stream, seq))

    def decide(self, stream: str, seq: int, decision: Decision, settings: int) -> Decision | None:
        """Decide about the model that a message announced, unless somebody has.

        Parameters
        ----------
        stream, seq
            Which message.
        decision
            What to decide.
        settings
            Number of the settings.

        Returns
        -------
        What counts; None if the settings were replaced by others.

        Raises
        ------
        BrokerError
            If the broker does not answer, or does not take it.
        """
        with self._lock:
            record = {"kind": "model", "stream": stream, "seq": seq, "decision": decision}
            self._add(orjson.dumps({**record, "settings": settings}))
            is_current = self._registered.number == settings
            return self._registered.decisions[stream, seq] if is_current else None

    def close(self) -> None:
        """Leave the broker."""
        with self._lock:
            self._producer = None

    def _check(self, here: Fingerprint) -> None:
        registered = self._registered.fingerprint
        found = registered.differences(here) if registered else []
        if not found:
            return
        more = len(found) - MOST_NAMED
        named = ", ".join(found[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        raise RegisteredError(
            f"the pipeline {self._config.topics.prefix} is registered with other settings: they "
            f"differ in {named}. Workers with different settings would mix their results. Start "
            "this one with the registered settings, or under another topics.prefix. To change the "
            "settings of this pipeline, stop its workers and run `fluxplain settings replace`"
        )

    def _read(self) -> None:
        def take(message: Any) -> bool:
            self._registered.take(message.offset + 1, message.value)
            return True

        what = f"cannot read {self._topic}"
        try:
            if not self._next:
                partitions_of(self._config, self._topic)  # says at once if there is no such topic
            place = self._topic, PARTITION, self._next
            end = read_on(self._config, *place, REGISTER_S, take)
        except KafkaException as error:
            raise refusal(self._config, what, error.args[0]) from None
        if end is None:
            raise BrokerError(f"{what}: what it held was deleted")
        self._next = end

    def _add(self, record: bytes) -> None:
        """Write a record under a key of its own, so that compaction keeps it, and read up to it."""
        self._append([(uuid.uuid4().hex, record)])
        self._read()

    def _append(self, records: list[tuple[str, bytes]]) -> list[int]:
        """Write records; return their numbers."""
        if self._producer is None:
            self._producer = Producer(
                {
                    **client_settings(self._config),
                    "enable.idempotence": True,
                    "acks": "all",
                    "linger.ms": 0,
                    "message.timeout.ms": int(REGISTER_S * 1000),
                }
            )
        answers: dict[str, Message | KafkaError] = {}

        def delivered(error: KafkaError | None, message: Message) -> None:
            answers[(message.key() or b"").decode()] = error or message

        for key, value in records:
            self._producer.produce(
                self._topic, value, key, partition=PARTITION, on_delivery=delivered
            )
        try:
            self._producer.flush(REGISTER_S + 1.0)
        except KafkaException as error:
            raise refusal(self._config, f"cannot write {self._topic}", error.args[0]) from None
        numbers = []
        for key, _ in records:
            answer = answers.get(key)
            if not isinstance(answer, Message):
                reason = answer or KafkaError(KafkaError._TIMED_OUT)
                raise refusal(self._config, f"cannot write {self._topic}", reason)
            numbers.append(int(answer.offset() or 0) + 1)
        return numbers


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("an epoch or an offset is a whole number")
    return value


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise TypeError("a fingerprint holds names and texts")
    return value


def _settings(here: Fingerprint, replaces: int) -> bytes:
    return orjson.dumps(
        {
            "kind": "settings",
            "replaces": replaces,
            "settings": dict(here.settings),
            "versions": dict(here.versions),
            "logs": dict(here.logs),
        }
    )
