"""The content of the topic ``register``: the settings of a pipeline, and who owns its partitions.

Kafka orders the topic's records, so a record's number (its offset plus one) is unique and grows.
Five kinds of records:

- **settings**: a worker with other settings or versions than the registered ones refuses to start;
  `fluxplain settings replace` registers new ones;
- **owner**: a worker claims a partition; the number is its epoch. Readers ignore a writer whose
  partition was claimed again since (:mod:`fluxplain.kafka.ownership.writers`);
- **begin**: from which checkpoint an owner goes on;
- **cold-start**: a state began behind the beginning of its log, so that it is another one than
  before (:mod:`fluxplain.kafka.ownership.lives`). The same offset and settings give the same state,
  so each worker that starts there gets the number of the first one;
- **model**: an announced model took over, or was withdrawn before. Of several such records about
  one announcement the first counts, so that all shards, and all later starts, decide as one.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, get_args

import orjson

from fluxplain.config import ConfigError
from fluxplain.kafka.ownership.writers import ANY, Begin, Writer
from fluxplain.stages.awaiting import Decision

TOPIC = "register"
"""Its name, without the prefix."""


class RegisteredError(ConfigError):
    """The pipeline is registered with other settings. The message names the keys."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All that decides what a pipeline publishes.

    Digests of the settings by key, versions by package, and the ids of the topics that users write
    (where the broker has such ids), which a topic that was deleted and created again does not keep.
    """

    settings: Mapping[str, str]
    versions: Mapping[str, str]
    logs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Return the fingerprint in a record; others than ours raise TypeError or KeyError."""
        return cls(*(_texts(fields[name]) for name in ("settings", "versions", "logs")))

    def record(self, replaces: int) -> dict[str, Any]:
        """Return the record that registers it instead of the settings with a number."""
        return {
            "kind": "settings",
            "replaces": replaces,
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "logs": dict(self.logs),
        }

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
    """What the records say, up to the last one that was read.

    ``number`` is that of the registered settings, 0 while there are none. Slots, as text, map to
    the epoch of their newest owner and to where it began. ``cold_starts`` (place, offset → number)
    and ``decisions`` (stream and seq of an announcement → what was decided) are of the present
    settings. Incarnations consist of ``lives``, the numbers of all settings and cold starts.
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
                self._take_begin(str(fields["slot"]), fields)
            elif fields.get("settings") != self.number:
                pass  # cold starts and decisions count with the settings that they name
            elif fields["kind"] == "model" and fields["decision"] in get_args(Decision):
                place = str(fields["stream"]), _whole(fields["seq"])
                self.decisions.setdefault(place, fields["decision"])
            elif fields["kind"] == "cold-start":
                place = str(fields["place"]), _whole(fields["offset"])
                self.lives.add(self.cold_starts.setdefault(place, number))

    def _take_begin(self, slot: str, fields: Mapping[str, Any]) -> None:
        begin = Begin(_whole(fields["epoch"]), _whole(fields["next_offset"]))
        # an owner before may have been late to say so, and nobody begins before he claims
        if self.begins.get(slot, ANY).epoch <= begin.epoch <= self.epochs.get(slot, 0):
            self.begins[slot] = begin


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("an epoch or an offset is a whole number")
    return value


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise TypeError("a fingerprint holds names and texts")
    return value
