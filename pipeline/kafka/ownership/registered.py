"""The content of the topic ``register``: the settings of a pipeline, and its partitions' owners.

Kafka orders the topic's records, so a record's number (its offset plus one) is unique and grows.
Six kinds of records:

- **settings**: a worker with other settings or versions than the registered ones refuses to start;
  `fluxplain settings replace` registers new ones;
- **versions**: other versions replace the registered ones, under the same settings and with the
  states of before (`fluxplain checkpoints adopt`). Unless they give the same bits, the record holds
  the next offset of each slot's state, which resumes there in a new life: the record's number. It
  is ``LOST`` for a slot whose state is gone, which therefore starts cold;
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
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

import orjson

from fluxplain.config import ConfigError
from fluxplain.kafka.ownership.writers import ANY, Begin, Writer

TOPIC = "register"
"""Name of the topic, without the prefix."""

PROCESSOR = "processor"
"""Name of the processor's architecture among the versions: it can change bits, too."""

ADOPT = "fluxplain checkpoints adopt"
"""The command that replaces the registered versions and keeps the states."""

LOST = -1
"""The next offset of a state that is gone, while results of it may have been published."""

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
        return [*self.other_settings(here), *self.other_versions(here)]

    def other_versions(self, here: "Fingerprint") -> list[str]:
        """Describe the differences between the registered versions and those here."""
        return [
            f"{_title(name)} (registered: {before}, here: {now})"
            for name, before, now in different_versions(self.versions, here.versions)
        ]

    def other_settings(self, here: "Fingerprint") -> list[str]:
        """Name the settings that differ, and the topics that were created again."""
        keys = {*self.settings, *here.settings}
        found = sorted(key for key in keys if self.settings.get(key) != here.settings.get(key))
        for topic in sorted({*self.logs} & {*here.logs}):
            if self.logs[topic] != here.logs[topic]:
                found.append(f"the topic {topic} was deleted and created again")
        return found


def different_versions(
    before: Mapping[str, str], now: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Return (name, version before, version now) of what differs; "none" for a missing one.

    Examples
    --------
    >>> different_versions({"river": "0.26.1", "numpy": "2.2.0"}, {"numpy": "2.2.1"})
    [('numpy', '2.2.0', '2.2.1'), ('river', '0.26.1', 'none')]
    """
    names = {*before, *now}
    each = ((name, before.get(name, "none"), now.get(name, "none")) for name in names)
    return sorted(versions for versions in each if versions[1] != versions[2])


def _title(name: str) -> str:
    # registered since the processor counts as well; it has no version
    return "the processor" if name == PROCESSOR else f"the version of {name}"


@dataclass(slots=True)
class Registered:
    """The content of the register, up to the last record that was read.

    ``number`` is the registered settings' number, 0 without any. ``epochs`` and ``begins`` map a
    slot, as text, to its newest owner's epoch and begin. ``cold_starts`` (place, offset → number)
    and ``decisions`` (stream and seq of an announcement → decision) are those of the current
    settings. ``lives`` are the numbers in incarnations, and ``places`` has the place of each one
    that is a cold start's.

    ``versions`` (number of the record → versions by package) are those registered under the current
    settings. ``adopted`` has, for those with other bits than before, slot → next offset of the
    state that resumes, or ``LOST``.
    """

    number: int = 0
    fingerprint: Fingerprint | None = None
    epochs: dict[str, int] = field(default_factory=dict)
    begins: dict[str, Begin] = field(default_factory=dict)
    cold_starts: dict[tuple[str, int], int] = field(default_factory=dict)
    decisions: dict[tuple[str, int], Decision] = field(default_factory=dict)
    lives: set[int] = field(default_factory=set)
    places: dict[int, str] = field(default_factory=dict)
    versions: dict[int, Mapping[str, str]] = field(default_factory=dict)
    adopted: dict[int, Mapping[str, int]] = field(default_factory=dict)

    @property
    def versions_number(self) -> int:
        """Number of the record that registered the current versions; 0 without any."""
        return max(self.versions, default=0)

    @property
    def bits_number(self) -> int:
        """Number of the newest record since which a state's bits differ from those of before."""
        return max(self.adopted, default=self.number)

    def is_life(self, number: int) -> bool:
        """Return whether a number in an incarnation is registered."""
        return number in self.lives

    def continues(self, number: int, before: int, place: str) -> bool:
        """Return whether a state's life is that of ``before``, with other versions.

        ``place`` is a role and its stream; a role alone stands for all its streams. Cold starts in
        other places do not matter.
        """
        # a copy: another thread may read the register meanwhile
        since = [each for each in tuple(self.lives) if before < each <= number]
        begun = (each for each in since if each not in self.adopted)
        places = (self.places.get(each, place) for each in begun)
        is_begun = any(place in {each, each.partition(" ")[0]} for each in places)
        return number == before or (number in self.adopted and not is_begun)

    def knows(self, writer: Writer) -> bool:
        """Return whether a writer has claimed its slot."""
        return self.epochs.get(writer.slot, 0) >= writer.epoch

    def take(self, number: int, value: bytes | None) -> None:
        """Take a record; ignore a malformed one.

        Settings count only if they replace those registered before them: of two workers that
        register at the same time, the first one wins. Likewise versions.
        """
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            fields = orjson.loads(value or b"")
            if fields["kind"] == "settings" and fields["replaces"] == self.number:
                self.fingerprint = Fingerprint.of(fields)
                self.number = number
                self.lives.add(number)
                self.cold_starts.clear()
                self.decisions.clear()
                self.versions, self.adopted = {number: self.fingerprint.versions}, {}
            elif fields["kind"] == "owner":
                self.epochs[str(fields["slot"])] = number
            elif fields["kind"] == "begin":
                self._take_begin(str(fields["slot"]), fields)
            elif fields.get("settings") != self.number:
                pass  # the other kinds count with the settings that they name
            elif fields["kind"] == "versions" and fields["replaces"] == self.versions_number:
                self._take_versions(number, _texts(fields["versions"]), fields["adopted"])
            elif fields["kind"] == "model" and fields["decision"] in get_args(Decision):
                place = str(fields["stream"]), _whole(fields["seq"])
                self.decisions.setdefault(place, fields["decision"])
            elif fields["kind"] == "cold-start":
                place = str(fields["place"]), _whole(fields["offset"])
                if fields.get("versions", self.number) != self.versions_number:
                    return  # by a worker that does not know yet that its versions were replaced
                if not self.has_cold_start(*place):
                    self.cold_starts[place] = number
                    self.places[number] = place[0]
                    self.lives.add(number)

    def has_former_bits(self, place: str) -> bool:
        """Return whether a place may have published results of versions with other bits."""
        slots = (slot for each in self.adopted.values() for slot in each)
        return place in map(place_of, slots)

    def changes_at(self, number: int) -> str:
        """Describe what other versions, which these settings have, changed."""
        before = max(each for each in self.versions if each < number)
        found = different_versions(self.versions[before], self.versions[number])
        return ", ".join(f"{name} from {old} to {new}" for name, old, new in found)

    def has_cold_start(self, place: str, offset: int) -> bool:
        """Return whether a cold start is registered that gives the same bits now."""
        return self.cold_starts.get((place, offset), 0) > self.bits_number

    def _take_versions(
        self, number: int, versions: Mapping[str, str], adopted: Mapping[str, Any] | None
    ) -> None:
        if self.fingerprint is None:
            return
        if adopted is not None:
            self.adopted[number] = {str(slot): _whole(next_) for slot, next_ in adopted.items()}
            self.lives.add(number)
        self.fingerprint = replace(self.fingerprint, versions=versions)
        self.versions[number] = versions

    def _take_begin(self, slot: str, fields: Mapping[str, Any]) -> None:
        begin = Begin(_whole(fields["epoch"]), _whole(fields["next_offset"]))
        # a former owner's record may be late, and no owner begins before its claim
        if self.begins.get(slot, ANY).epoch <= begin.epoch <= self.epochs.get(slot, 0):
            self.begins[slot] = begin


def place_of(slot: str) -> str:
    """Return role and stream of a slot: shards share them, and their number may change.

    Examples
    --------
    >>> place_of("model-0of2 fluxplain.features-0")
    'model fluxplain.features-0'
    """
    owner, _, stream = slot.partition(" ")
    return f"{owner.partition('-')[0]} {stream}"


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("an epoch or an offset is a whole number")
    return value


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise TypeError("a fingerprint holds names and texts")
    return value
