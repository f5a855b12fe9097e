"""The content of the topic ``register``: the settings of a pipeline, and its partitions' owners.

Kafka orders the topic's records, so a record's number (its offset plus one) is unique and grows.
Five kinds of records:

- **settings**: a worker with other settings or versions than the registered ones refuses to start;
  `fluxplain settings replace` registers new ones;
- **owner**: a worker claims a partition; the number is its epoch. Readers ignore a writer whose
  partition was claimed again later (:mod:`fluxplain.kafka.ownership.writers`);
- **begin**: the checkpoint that an owner resumes from;
- **cold-start**: a state began after the beginning of its log, so it differs from the one before
  (:mod:`fluxplain.kafka.ownership.lives`). Equal offset and settings give equal states, so each
  worker that starts there gets the number of the first one;
- **model**: an announced model took over, or was withdrawn before that. The first such record about
  an announcement counts, so that all shards and all later starts agree.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

import orjson

from fluxplain.config import ConfigError
from fluxplain.kafka.ownership.writers import ANY, Begin, Writer

TOPIC = "register"
"""Name of the topic, without the prefix."""

Decision = Literal["taken", "withdrawn"]
"""Whether an announced model takes over or was withdrawn."""


class RegisteredError(ConfigError):
    """The pipeline is registered with other settings. The message names the keys."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Everything that decides the results of a pipeline.

    Digests of the settings by key, versions by package, and the ids of the topics that users write
    (where the broker has ids), which change when a topic is deleted and created again.
    """

    settings: Mapping[str, str]
    versions: Mapping[str, str]
    logs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Return the fingerprint in a record; a malformed one raises TypeError or KeyError."""
        return cls(*(_texts(fields[name]) for name in ("settings", "versions", "logs")))

    def differences(self, here: "Fingerprint") -> list[str]:
        """Describe the differences between the registered fingerprint and this one.

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
                found.append(f"the topic {topic} was deleted and created again")
        return found


@dataclass(slots=True)
class Registered:
    """The content of the register, up to the last record that was read.

    ``number`` is the registered settings' number, 0 without any. ``epochs`` and ``begins`` map a
    slot, as text, to its newest owner's epoch and begin. ``cold_starts`` (place, offset → number)
    and ``decisions`` (stream and seq of an announcement → decision) are those of the current
    settings. ``lives`` are the numbers of all settings and cold starts, used in incarnations.
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
        """Take a record; ignore a malformed one.

        Settings count only if they replace those registered before them: of two workers that
        register at the same time, the first one wins.
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
        # a former owner's record may be late, and no owner begins before its claim
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
