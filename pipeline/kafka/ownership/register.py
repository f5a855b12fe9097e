"""Reads and writes the topic ``register``; see :mod:`fluxplain.kafka.ownership.registered`."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from threading import Lock
from typing import Any

import orjson
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError, client_settings, partitions_of, refusal
from fluxplain.kafka.faust.peek import read_on
from fluxplain.kafka.ownership.registered import (
    ADOPT,
    TOPIC,
    Decision,
    Fingerprint,
    Registered,
    RegisteredError,
)
from fluxplain.kafka.ownership.writers import Begin
from fluxplain.kafka.timeouts import REGISTER_S

PARTITION = 0
"""The only partition used: there must be one order."""

BEGINS = 16
"""Number of a slot's begin records that compaction keeps."""

MOST_NAMED = 8
"""Largest number of keys that an error names."""


class Register:
    """The register of a pipeline, for a broker that answers; thread-safe.

    All methods raise ``BrokerError`` if the broker does not answer, or refuses.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topic = config.topic(TOPIC)
        self._lock = Lock()
        self._next = 0
        self._registered = Registered()
        self._producer: Producer | None = None

    def read(self, number: int | None = None) -> Registered:
        """Return the current content; without a request if record ``number`` was already read."""
        with self._lock:
            if number is None or number > self._next:
                self._read()
            return self._registered

    def is_life(self, number: int) -> bool:
        """Return whether a number in an incarnation is registered.

        Asks only about a number that was not read yet, as after a cold start; blocks meanwhile.
        """
        if number > self._next:
            # the caller's thread may have an event loop that runs, so it cannot read itself
            with ThreadPoolExecutor(1) as thread:
                thread.submit(self.read, number).result()
        return self._registered.is_life(number)

    def continues(self, number: int, before: int, place: str) -> bool:
        """See :meth:`Registered.continues`; ask :meth:`is_life` first."""
        return self._registered.continues(number, before, place)

    def enter(self, here: Fingerprint) -> int:
        """Register these settings if there are none; return the number of the registered ones.

        Raises ``RegisteredError`` if other settings or versions are registered.
        """
        with self._lock:
            self._read()
            if not self._registered.number:
                self._add(kind="settings", replaces=0, **asdict(here))
            self._check(here)
            return self._registered.number

    def replace(self, here: Fingerprint) -> int:
        """Register these settings instead of the current ones; return their number.

        Raises ``RegisteredError`` if other settings were registered meanwhile.
        """
        with self._lock:
            self._add(kind="settings", replaces=self._registered.number, **asdict(here))
            self._check(here)
            return self._registered.number

    def adopt(self, versions: Mapping[str, str], adopted: Mapping[str, int] | None) -> int:
        """Register other versions under the same settings; return their number.

        ``adopted`` has slot → next offset of the states that resume, if they do so in another life,
        and ``LOST`` for those that are gone; None if the bits are the same. Raises
        ``RegisteredError`` if another command was first.
        """
        with self._lock:
            number, replaces = self._registered.number, self._registered.versions_number
            record = {"settings": number, "replaces": replaces, "versions": {**versions}}
            self._add(kind="versions", adopted=adopted, **record)
            now, after = self._registered, self._registered.versions_number
            if now.number != number or after == replaces or now.versions[after] != versions:
                raise RegisteredError("other settings or versions were registered meanwhile")
            return after

    def claim(self, slots: Iterable[str]) -> dict[str, int]:
        """Claim slots; return slot → epoch."""
        names = list(slots)
        records = [(f"owner {name}", {"kind": "owner", "slot": name}) for name in names]
        with self._lock:
            return dict(zip(names, self._append(records), strict=True))

    def begin(self, slot: str, begin: Begin) -> None:
        """Register the checkpoint that a slot's owner resumes from, before it writes anything."""
        # compaction must not replace this record by a late one of a former owner
        key = f"begin {slot} {begin.epoch % BEGINS}"
        with self._lock:
            self._append([(key, {"kind": "begin", "slot": slot, **asdict(begin)})])

    def cold_start(self, place: str, offset: int, settings: int, versions: int) -> int | None:
        """Register the cold start of a state at an offset and return its number.

        None if the settings or versions with these numbers were replaced.
        """
        with self._lock:
            self._read()
            if not self._registered.has_cold_start(place, offset):
                record = {"place": place, "offset": offset, "settings": settings}
                self._add(kind="cold-start", versions=versions, **record)
            is_current = self._registered.number == settings
            is_current &= self._registered.versions_number == versions
            return self._registered.cold_starts[place, offset] if is_current else None

    def decide(self, stream: str, seq: int, decision: Decision, settings: int) -> Decision | None:
        """Register a decision about an announced model, unless there is one; return the valid one.

        None if the settings with the number ``settings`` were replaced.
        """
        with self._lock:
            self._add(kind="model", stream=stream, seq=seq, decision=decision, settings=settings)
            is_current = self._registered.number == settings
            return self._registered.decisions[stream, seq] if is_current else None

    def close(self) -> None:
        """Leave the broker."""
        with self._lock:
            self._producer = None

    def _check(self, here: Fingerprint) -> None:
        registered, prefix = self._registered.fingerprint, self._config.topics.prefix
        found = registered.differences(here) if registered else []
        if registered is None or not found:
            return
        more = len(found) - MOST_NAMED
        named = ", ".join(found[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        if not registered.other_settings(here):
            raise RegisteredError(
                f"the pipeline {prefix} is registered with other versions: they differ in {named}. "
                "Other versions may give other results. Start this worker with the registered "
                f"ones, or stop all workers and run `{ADOPT}`, which keeps what was learned"
            )
        raise RegisteredError(
            f"the pipeline {prefix} is registered with other settings: they "
            f"differ in {named}. Workers with different settings would mix their results. Start "
            "this one with the registered settings, or under another topics.prefix. To change the "
            "settings of this pipeline, stop its workers and run `fluxplain settings replace`"
        )

    def _read(self) -> None:
        def take(message: Any) -> bool:
            self._registered.take(message.offset + 1, message.value)
            return True

        what, place = f"cannot read {self._topic}", (self._topic, PARTITION, self._next)
        try:
            if not self._next:
                partitions_of(self._config, self._topic)  # fails at once for a missing topic
            end = read_on(self._config, *place, REGISTER_S, take)
        except KafkaException as error:
            raise refusal(self._config, what, error.args[0]) from None
        if end is None:
            raise BrokerError(f"{what}: its records were deleted")
        self._next = end

    def _add(self, **record: Any) -> None:
        """Write a record under a unique key, so that compaction keeps it, and read up to it."""
        self._append([(uuid.uuid4().hex, record)])
        self._read()

    def _append(self, records: Sequence[tuple[str, Mapping[str, Any]]]) -> list[int]:
        """Write (key, record) pairs; return their numbers."""
        if self._producer is None:
            settings = {"enable.idempotence": True, "acks": "all", "linger.ms": 0}
            timeout = {"message.timeout.ms": int(REGISTER_S * 1000)}
            self._producer = Producer({**client_settings(self._config), **settings, **timeout})
        numbers: dict[bytes | None, int] = {}
        problem = KafkaError(KafkaError._TIMED_OUT)

        def delivered(error: KafkaError | None, message: Message) -> None:
            nonlocal problem
            if error is None:
                numbers[message.key()] = int(message.offset() or 0) + 1
            else:
                problem = error

        for key, record in records:
            value = orjson.dumps(record)
            self._producer.produce(self._topic, value, key, PARTITION, on_delivery=delivered)
        try:
            self._producer.flush(REGISTER_S + 1.0)
        except KafkaException as error:
            problem = error.args[0]
        if len(numbers) < len(records):
            raise refusal(self._config, f"cannot write {self._topic}", problem)
        return [numbers[key.encode()] for key, _ in records]
