"""A producer whose failures leave no hole: each partition holds a prefix of its messages."""

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from fluxplain.config import Config
from fluxplain.errors import UserError
from fluxplain.kafka.client import NOT_AUTHORIZED, TopicPartition, client_settings, refusal
from fluxplain.kafka.timeouts import (
    COMMAND_DEADLINE_S,
    INTRODUCTION_S,
    PATIENCE_S,
    producer_settings,
)
from fluxplain.schemas.wording import plural

log = logging.getLogger("fluxplain.producer")

MAX_MESSAGE_BYTES = 1_000_000
"""Largest message, in bytes: Kafka's own default on brokers and clients."""

MAX_HELD = 10_000
"""Largest number of messages that wait for the first acknowledgement of their partition."""

SERVE_S = 0.002
"""Seconds between two looks for delivery reports: one at each message would take as long as to send
it, and let other threads in between."""

FATAL_REPORT_S = 1.0
"""Seconds to wait for the delivery report behind a fatal error."""

_PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}


class DeliveryError(UserError):
    """The broker did not take a message, so its input must not be committed."""


class OversizeError(DeliveryError):
    """A message is too large for the broker: a retry would fail too."""


class _Held(NamedTuple):
    """A message that waits until the broker knows this producer in its partition."""

    tp: TopicPartition
    value: bytes | None
    key: bytes | None
    headers: Mapping[str, bytes] | None


class RecordProducer:
    """Sends records in order; whenever it fails, each partition holds a prefix without a hole.

    1. It is idempotent and waits for all in-sync replicas: the broker takes only the batch that
       follows the last one.
    2. A broker that does not know the producer takes any batch as the first. So the first message
       of each partition is sent alone, and the others follow its acknowledgement.
    3. Messages have no timeout of their own. If none is acknowledged for ``deadline_s``, by default
       ``kafka.delivery_timeout_s``, all fail.
    4. After the first failure nothing more is sent (``enable.gapless.guarantee``), and all calls
       raise.
    """

    def __init__(self, config: Config, *, deadline_s: float | None = None) -> None:
        self._config = config
        self._deadline_s = config.kafka.delivery_timeout_s if deadline_s is None else deadline_s
        self._producer = Producer(
            {
                "linger.ms": 0.5,
                "compression.type": "lz4",
                **client_settings(config),
                **producer_settings(),
                "enable.idempotence": True,
                "enable.gapless.guarantee": True,
                "acks": "all",
                "message.max.bytes": MAX_MESSAGE_BYTES,
            }
        )
        self._failure: DeliveryError | None = None
        self._fatal: KafkaError | None = None
        self._partition_counts: dict[str, int] = {}
        self._any_partition = itertools.count()
        self._lock = threading.RLock()
        self._acknowledged_at: dict[TopicPartition, float] = {}
        # partition → messages that wait for the first one's acknowledgement
        self._introduced: dict[TopicPartition, deque[_Held]] = {}
        self._released: deque[_Held] = deque()
        self._moved_at = time.monotonic()
        self._served_at = 0.0
        self.obstacle: str | None = None

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        *,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Queue one message, for ``partition`` or for that of its key.

        Waits while the queue is full; raises ``DeliveryError`` if an earlier message failed, or
        this one cannot be sent at all.
        """
        self.serve()  # raises earlier failures before anything else is sent
        tp = TopicPartition(topic, self._partition(topic, key, partition))
        message = _Held(tp, value, key, headers)
        if not len(self._producer) and not self.waiting:  # the first is faster
            self._moved_at = time.monotonic()
        while not self._put(message):
            self._serve(self._producer.poll, 0.1)
            self._check_deadline()

    def serve(self) -> None:
        """Process delivery reports, and send the messages that they release.

        Call it regularly, even without messages to send; raises ``DeliveryError`` if one failed.
        """
        now = time.monotonic()
        if now - self._served_at < SERVE_S:
            self._raise_failure()
            return
        self._served_at = now
        self._serve(self._producer.poll, 0.0)

    def flush(self) -> None:
        """Wait until the broker has acknowledged every message.

        Raises ``DeliveryError`` if one failed, or none was acknowledged before the deadline.
        """
        since = time.monotonic()
        try:
            while self.waiting:
                self._serve(self._producer.flush, 1.0)
                self._check_deadline()
                if self.waiting and time.monotonic() - since > PATIENCE_S:
                    self._describe_obstacle()
        finally:
            was_late, self.obstacle = self.obstacle is not None, None
        self._raise_failure()
        if was_late:
            log.warning("all messages are acknowledged, after %.0f s", time.monotonic() - since)

    async def flushed(self) -> None:
        """Flush without blocking the event loop."""
        if self.waiting:
            await asyncio.get_running_loop().run_in_executor(None, self.flush)
        self._raise_failure()

    @property
    def waiting(self) -> int:
        """Number of unacknowledged messages; safe to read from any thread."""
        held = sum(map(len, list(self._introduced.values())))
        return len(self._producer) + held + len(self._released)

    def partitions(
        self, topic: str, *, beyond: int = 0, timeout_s: float = COMMAND_DEADLINE_S
    ) -> int:
        """Return the number of partitions of a topic; raise ``DeliveryError`` without an answer.

        Cached, unless the topic had no partition ``beyond``.
        """
        if self._partition_counts.get(topic, 0) <= beyond:
            try:
                metadata = self._producer.list_topics(topic, timeout=timeout_s)
            except KafkaException as error:
                raise DeliveryError(f"cannot reach {topic}: {error.args[0].str()}") from None
            count = len(metadata.topics[topic].partitions)
            self._partition_counts[topic] = max(count, self._partition_counts.get(topic, 1))
        return self._partition_counts[topic]

    def _partition(self, topic: str, key: bytes | None, partition: int | None) -> int:
        if partition is None:
            number = next(self._any_partition) if key is None else key_hash(key)
            return number % self.partitions(topic)
        count = self.partitions(topic, beyond=partition)
        if partition >= count:
            raise DeliveryError(
                f"{topic} has {plural(count, 'partition')}, but no partition {partition}: add "
                "partitions"
            )
        return partition

    def _put(self, message: _Held) -> bool:
        """Send a message, or hold it until its partition's first acknowledgement; False if full."""
        with self._lock:
            if self._released:
                return False
            behind = self._introduced.get(message.tp)
            if behind is not None:
                if len(behind) >= MAX_HELD:
                    return False
                behind.append(message)
                return True
            if not self._produce(message):
                return False
            at = self._acknowledged_at.get(message.tp)
            if at is None or time.monotonic() - at > INTRODUCTION_S:
                self._introduced[message.tp] = deque()
            return True

    def _produce(self, message: _Held) -> bool:
        """Give a message to librdkafka; False if its queue is full."""
        topic, partition = message.tp
        more: dict[str, Any] = {"headers": dict(message.headers)} if message.headers else {}
        try:
            self._producer.produce(
                topic,
                value=message.value,
                key=message.key,
                partition=partition,
                on_delivery=self._note_delivery,
                **more,
            )
        except BufferError:
            return False
        except KafkaException as error:
            if error.args[0].code() == KafkaError._FATAL:
                self._call(self._producer.poll, 0.0)  # its reason comes with an event
            self._raise_failure()  # an earlier fatal error, if any
            raise self._explained(error.args[0], topic, len(message.value or b"")) from None
        return True

    def _serve(self, call: Callable[[float], int], timeout_s: float) -> None:
        """Process delivery reports, send released messages, raise the first failure."""
        self._call(call, timeout_s)
        self._raise_failure()
        with self._lock:
            while self._released and self._produce(self._released[0]):
                self._released.popleft()

    def _call(self, call: Callable[[float], int], timeout_s: float) -> None:
        """Call librdkafka, and record an error that is fatal to the producer."""
        try:
            call(timeout_s)
        except (KafkaException, SystemError) as error:
            # a callback wraps the first in the second
            fatal = error if isinstance(error, KafkaException) else error.__cause__
            if not isinstance(fatal, KafkaException):
                raise
            self._fatal = self._fatal or fatal.args[0]

    def _note_delivery(self, error: KafkaError | None, message: Message) -> None:
        tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
        if error is not None:
            self._fail(self._explained(error, tp.topic, len(message.value() or b"")), error)
            return
        with self._lock:
            self._moved_at = self._acknowledged_at[tp] = time.monotonic()
            self._released += self._introduced.pop(tp, ())

    def _fail(self, failure: DeliveryError, error: KafkaError | None = None) -> None:
        """Stop sending, and keep the first failure as the reason."""
        if error is not None and error.code() in _PURGED:
            return
        with self._lock:
            if self._failure is not None:
                return
            self._failure = failure
            self._introduced.clear()
            self._released.clear()
        self._producer.purge(blocking=False)

    def _raise_failure(self) -> None:
        if self._fatal is not None and self._failure is None:
            deadline = time.monotonic() + FATAL_REPORT_S
            while self._failure is None and time.monotonic() < deadline and len(self._producer):
                self._call(self._producer.poll, 0.05)
            self._fail(self._explained_fatal(self._fatal))
        if self._failure is not None:
            raise self._failure

    def _explained(self, error: KafkaError, topic: str, size: int) -> DeliveryError:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return _oversize(f"a message of {size:,} bytes is too large for {topic}")
        what = f"the broker did not take a message for {topic}"
        return DeliveryError(str(refusal(self._config, what, error)))

    def _explained_fatal(self, error: KafkaError) -> DeliveryError:
        """Return the failure for a fatal error whose delivery report librdkafka has dropped.

        The text of the fatal error then holds the reason.
        """
        if error.code() != KafkaError._GAPLESS_GUARANTEE:
            return DeliveryError(str(refusal(self._config, "cannot send messages", error)))
        if KafkaError(KafkaError.MSG_SIZE_TOO_LARGE).str() in error.str():
            return _oversize(f"a message is too large for its topic ({error.str()})")
        codes = (code for code in NOT_AUTHORIZED if KafkaError(code).str() in error.str())
        reason = KafkaError(next(codes, error.code()), error.str())
        return DeliveryError(
            str(refusal(self._config, "the broker did not take a message", reason))
        )

    def _check_deadline(self) -> None:
        late_s = time.monotonic() - self._moved_at
        if self.waiting and late_s > self._deadline_s:
            self._fail(
                DeliveryError(
                    f"messages wait ({self.waiting}), and the broker has acknowledged none for "
                    f"{late_s:.0f} s: {self._why()}"
                )
            )
            self._raise_failure()

    def _describe_obstacle(self) -> None:
        why = self._why()
        if self.obstacle is None:
            log.warning("%d messages are not acknowledged yet: %s", self.waiting, why)
        self.obstacle = f"messages are not acknowledged ({self.waiting}): {why}"

    def _why(self) -> str:
        try:
            self._producer.list_topics(timeout=2.0)
        except KafkaException:
            return "the broker does not answer; waiting for it"
        return (
            "the broker answers, but does not take them: it lacks in-sync replicas or disk space "
            "(its log has the reason); still trying"
        )


def _oversize(what: str) -> OversizeError:
    return OversizeError(
        f"{what}: raise the topic's max.message.bytes to {MAX_MESSAGE_BYTES:,}, or if the message "
        "is larger than that, take fewer grid points or inner samples"
    )


@lru_cache(maxsize=10_000)
def key_hash(key: bytes) -> int:
    """Return the hash by which Kafka's Java clients choose a key's partition: murmur2, positive.

    Examples
    --------
    >>> key_hash(b"21"), key_hash(b"foobar"), key_hash(b"")
    (1173551340, 1357151166, 275646681)
    """
    # imported here: commands send no keys, and it takes time
    from fluxplain.kafka.faust.peek import murmur2  # noqa: PLC0415

    return int(murmur2(key) & 0x7FFFFFFF)
