"""Which dead letters must not be sent again, whatever their message holds."""

import time
from collections.abc import Mapping

from fluxplain.config import Config
from fluxplain.kafka.client import partitions_of
from fluxplain.kafka.ownership.registered import Registered
from fluxplain.kafka.ownership.writers import OWN_TOPICS
from fluxplain.schemas import Control, DeadLetter, LateLabel, Observation, stream_name
from fluxplain.schemas.dead_letter import (
    CANNOT_EXPLAIN,
    NO_LABEL,
    NO_REASONS,
    OTHER_LABEL,
)
from fluxplain.stages.limits import MAX_SEQ

BETWEEN_ROLES = (
    "it is about a message between the roles, which only workers write: they repeat it themselves"
)

BY_ANNOUNCEMENT = (
    "it is a control record: `fluxplain model announce` or `fluxplain model withdraw` sends another"
)

PROCESSED = "its observation has a prediction: sent again, it would count twice"

TOO_OLD = (
    "it is older than topics.retention_hours: a message that was sent for it before may be deleted"
)

CONTRADICTS = "its observation has another label, and the first one counts"


class Refusals:
    """Refuses dead letters by their topic, their reason, and the state that wrote them."""

    def __init__(self, config: Config, registered: Registered) -> None:
        self._registered = registered
        # a copy is younger than the dead letter, so it is still there if that is young enough
        self._oldest_ms = (time.time() - config.topics.retention_hours * 3600) * 1000
        self._source, self._is_joined = config.topic(config.source), config.is_joined
        self._by_topic = {
            config.topic(Control.TOPIC): BY_ANNOUNCEMENT,
            **{config.topic(name): BETWEEN_ROLES for name in OWN_TOPICS},
        }
        names = [Observation.TOPIC, *([LateLabel.TOPIC] if config.label.topic else [])]
        self._partitions: Mapping[str, frozenset[int]] = {
            topic: frozenset(partitions_of(config, topic)) for topic in map(config.topic, names)
        }

    def of(self, letter: DeadLetter, published_ms: int) -> str | None:
        """Return why a dead letter's message must not be sent again; None if it may be.

        ``published_ms`` is when the dead letter was published, in milliseconds since 1970.
        """
        refusal = self._by_place(letter) or _by_reason(letter.reason)
        if refusal is None and published_ms < self._oldest_ms:
            return TOO_OLD
        return refusal or self._of_former_state(letter)

    def _by_place(self, letter: DeadLetter) -> str | None:
        if letter.topic not in self._partitions:
            return self._by_topic.get(letter.topic, f"no worker reads {letter.topic}")
        if letter.partition not in self._partitions[letter.topic]:
            return f"{letter.topic} has no partition {letter.partition}"
        if not 0 <= letter.offset <= MAX_SEQ:
            return f"{letter.topic} has no offset {letter.offset}"
        return None

    def _of_former_state(self, letter: DeadLetter) -> str | None:
        """Refuse a message that a later state has read, or will read, by itself."""
        own = int(letter.incarnation.partition("/")[0])
        written = stream_name(letter.topic, letter.partition)
        source = stream_name(self._source, letter.partition)
        places = [(f"join {written}", letter.offset)] if self._is_joined else []
        if letter.stream == source:
            places.append((f"model {source}", letter.seq))
        for place, offset in places:
            begin = self._begin(place, own)
            if begin is not None and begin <= offset:
                return (
                    f"the state has begun again at offset {begin}, so the message is read again "
                    "without being sent: it is used now, or has a newer dead letter"
                )
        return None

    def _begin(self, place: str, own: int) -> int | None:
        """Return the first offset of the states of a place after life ``own``; None without one."""
        cold_starts = self._registered.cold_starts.items()
        begins = [offset for (of, offset), number in cold_starts if of == place and number > own]
        if begins:
            return min(begins)
        return 0 if self._registered.number > own else None


def _by_reason(reason: str) -> str | None:
    if reason.startswith((CANNOT_EXPLAIN, NO_REASONS, NO_LABEL)):
        return PROCESSED
    return CONTRADICTS if reason.startswith(OTHER_LABEL) else None
