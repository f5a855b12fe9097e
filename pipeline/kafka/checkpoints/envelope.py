"""The header of a pickled stage: its identity, digest and signature.

Unpickling runs code, so nothing is unpickled before these were checked (the signature if a key is
configured).
"""

import hashlib
import hmac
import json
import logging
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

from fluxplain import __version__
from fluxplain.kafka.checkpoints.checkpoint import (
    Candidate,
    Checkpoint,
    CheckpointError,
    Slot,
    Snapshot,
    State,
)
from fluxplain.kafka.ownership.registered import ADOPT, PROCESSOR, different_versions
from fluxplain.kafka.ownership.writers import Begin

log = logging.getLogger("fluxplain.checkpoints")

FORMAT = "fluxplain-checkpoint-"

MAGIC = f"{FORMAT}17"

MOST_KEYS = 6
"""Largest number of settings named in an error."""


class DamagedError(Exception):
    """The checkpoint is damaged or incomplete."""


class RefusedError(Exception):
    """The checkpoint is intact, but has another identity or no valid signature."""


class OtherVersionsError(RefusedError):
    """The checkpoint was written with other versions, which were not adopted."""


class SupersededError(RefusedError):
    """The checkpoint belongs to replaced settings (`fluxplain settings replace`)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The configuration, cluster and versions that a checkpoint belongs to.

    Digests of the settings that affect the results, by key; the id of the Kafka cluster; the
    versions by package; the topics' ids, where the broker has them, which change when a topic is
    created again; the number of the settings in the register; and the id of that topic, since
    numbers begin again in a new one.

    ``history`` and ``adopted`` are the ``versions`` and ``adopted`` of
    :class:`~fluxplain.kafka.ownership.registered.Registered`: checkpoints of earlier versions are
    opened if these were adopted.
    """

    settings: Mapping[str, str]
    cluster: str
    versions: dict[str, str]
    logs: Mapping[str, str] = field(default_factory=dict)
    registered: int = 1
    register: str | None = None
    history: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    adopted: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @property
    def versions_number(self) -> int:
        """The register's number of the versions."""
        return max(self.history, default=self.registered)

    @classmethod
    def of(
        cls,
        settings: Mapping[str, str],
        cluster: str,
        logs: Mapping[str, str] | None = None,
        libraries: Iterable[str] = (),
        **register: Any,
    ) -> Self:
        """Return the identity of this process, with the models' libraries."""
        packages = {name: _version(name) for name in ("river", "numpy", "numba", *libraries)}
        machine = {"python": platform.python_version(), PROCESSOR: platform.machine()}
        versions = {"fluxplain": __version__, **packages, **machine}
        return cls(settings, cluster, versions, logs or {}, **register)

    def fields(self, slot: Slot) -> dict[str, Any]:
        """Return the identity's fields in the header of a slot's checkpoints."""
        return {
            "settings": dict(self.settings),
            "cluster": self.cluster,
            "versions": self.versions,
            "versions_number": self.versions_number,
            "log": self.logs.get(slot.topic),
            "registered": self.registered,
            "register": self.register,
        }


class Envelope:
    """Seals and opens checkpoints, signed by a key (HMAC-SHA256) unless that is None."""

    def __init__(self, identity: Identity, key: bytes | None = None) -> None:
        self.identity = identity
        self._key = key

    @property
    def signs(self) -> bool:
        """Whether there is a key."""
        return self._key is not None

    def seal(self, slot: Slot, checkpoint: Checkpoint | Snapshot) -> tuple[bytes, State]:
        """Return header and pickled state."""
        state = checkpoint.pickled()
        header = {
            "magic": MAGIC,
            "slot": str(slot),
            "next_offset": checkpoint.next_offset,
            "epoch": checkpoint.epoch,
            "bytes": len(state),
            "sha256": hashlib.sha256(state).hexdigest(),
            **self.identity.fields(slot),
        }
        if self._key is not None:
            header["signature"] = _sign(header, self._key)
        return json.dumps(header).encode(), state

    def read_header(self, slot: Slot, data: bytes) -> dict[str, Any]:
        """Return the fields of a header, checked for this slot and identity.

        Raises ``DamagedError``, ``RefusedError`` or ``SupersededError``, with the reason.
        """
        header: Any
        try:
            header = json.loads(data)
        except (ValueError, RecursionError):
            raise DamagedError("its header is not JSON") from None
        magic = header.get("magic") if isinstance(header, dict) else None
        if not isinstance(magic, str) or not magic.startswith(FORMAT):
            raise DamagedError(f"it is not a {MAGIC}")
        if magic != MAGIC:
            raise RefusedError(f"its format is {magic!r}, this version of fluxplain has {MAGIC!r}")
        try:
            self._check_signature(header)
        except RecursionError:  # orjson writes less deep nesting than it reads
            raise DamagedError("its header is nested too deeply") from None
        if header.get("slot") != str(slot):
            raise DamagedError(f"it belongs to {header.get('slot')!r}")
        self._check_identity(slot, header)
        if not _is_sound(header):
            raise DamagedError("its header has no valid next_offset, epoch, bytes or sha256")
        return dict(header)

    def open(self, header: Mapping[str, Any], state: bytes) -> Checkpoint:
        """Return the checkpoint of a checked header and its state.

        Raises ``DamagedError`` for another digest, ``RefusedError`` if it cannot be unpickled.
        """
        if hashlib.sha256(state).hexdigest() != header.get("sha256"):
            raise DamagedError("its digest does not match")
        try:
            checkpoint = Checkpoint.unpickled(header["next_offset"], header["epoch"], state)
        except Exception as error:  # unpickling may raise anything
            raise RefusedError(
                f"its state cannot be read here ({type(error).__name__}: {error})"
            ) from error
        if adopted := self._adopted_since(header):
            life = replace(checkpoint.life, cold_start=max(adopted))
            return replace(checkpoint, life=life, is_upgraded=True)
        return checkpoint

    def _adopted_since(self, header: Mapping[str, Any]) -> Mapping[int, Mapping[str, int]]:
        """Return the adoptions with other bits since a checkpoint was written."""
        written = _versions_number(header)
        return {number: each for number, each in self.identity.adopted.items() if number > written}

    def _check_signature(self, header: Mapping[str, Any]) -> None:
        if self._key is None:
            return
        signature = header.get("signature")
        if not isinstance(signature, str):
            raise RefusedError("it is not signed")
        # as bytes: compare_digest takes only ASCII text
        if not hmac.compare_digest(
            signature.encode(errors="replace"), _sign(header, self._key).encode()
        ):
            raise RefusedError("it was signed with another key, or changed afterwards")

    def _check_identity(self, slot: Slot, header: Mapping[str, Any]) -> None:
        reasons = {
            "settings": self._difference(header.get("settings")),
            "cluster": "it was written for another Kafka cluster",
            "log": f"the topic {slot.topic} was deleted and created again since it was written",
            "register": "the topic register was deleted and created again since it was written",
        }
        fields = self.identity.fields(slot)
        here, number = fields.pop("versions"), fields.pop("versions_number")
        registered = header.get("registered")
        if registered != fields.pop("registered"):
            raise SupersededError(f"it belongs to settings number {registered}")
        for name, value in fields.items():
            if header.get(name) != value:
                raise RefusedError(reasons[name])
        known = {**self.identity.history, number: here}
        written = known.get(_versions_number(header))
        if written is None or header.get("versions") != written:
            raise OtherVersionsError(self._other_versions(header))
        for adopted in self._adopted_since(header).values():
            if adopted.get(str(slot)) != header.get("next_offset"):
                raise RefusedError("another one was adopted when the versions were replaced")

    def _other_versions(self, header: Mapping[str, Any]) -> str:
        """Return a message that names the versions that differ from a checkpoint's."""
        known = header.get("versions")
        known = {name: str(each) for name, each in known.items()} if isinstance(known, dict) else {}
        found = different_versions(known, self.identity.versions)
        named = ", ".join(f"{name} {before} (here {now})" for name, before, now in found)
        return f"it was written with other versions: {named}"

    def _difference(self, written: Any) -> str:
        """Return a message that names the settings that differ from a checkpoint's."""
        known = written if isinstance(written, dict) else {}
        here = self.identity.settings
        keys = sorted(key for key in known.keys() | here.keys() if known.get(key) != here.get(key))
        more = len(keys) - MOST_KEYS
        named = ", ".join(keys[:MOST_KEYS]) + (f" and {more} more" if more > 0 else "")
        return f"settings differ from those it was written with: {named}"


def _versions_number(header: Mapping[str, Any]) -> int:
    """Return the number of a checkpoint's versions; the first ones under its settings had none."""
    number = header.get("versions_number", header.get("registered"))
    return number if type(number) is int else 0


def _sign(header: Mapping[str, Any], key: bytes) -> str:
    signed = {name: value for name, value in header.items() if name != "signature"}
    message = json.dumps(signed, sort_keys=True).encode()
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def _is_sound(header: Mapping[str, Any]) -> bool:
    numbers = (header.get("next_offset"), header.get("bytes"), header.get("epoch"))
    digest = header.get("sha256")
    return (
        all(type(number) is int and number >= 0 for number in numbers)
        and isinstance(digest, str)
        and re.fullmatch("[0-9a-f]{64}", digest) is not None
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # Numba is not on every platform
        return "none"


def newest_usable(slot: Slot, candidates: Iterable[Candidate], begin: Begin) -> Checkpoint | None:
    """Return the first allowed checkpoint that can be opened; None if there is none.

    Candidates come newest first. Raises ``CheckpointError`` if none can be opened and at least one
    was refused: a person must decide to start without it.
    """
    refusal: RefusedError | None = None
    for name, open_it, _ in candidates:
        try:
            checkpoint = open_it()
            if begin.allows(epoch=checkpoint.epoch, next_offset=checkpoint.next_offset):
                return checkpoint
            log.warning(
                "checkpoint %s of %s is not used: its writer was no longer the owner",
                name,
                slot,
            )
        except DamagedError as error:
            log.warning(
                "checkpoint %s of %s is damaged (%s): trying the one before", name, slot, error
            )
        except SupersededError as error:
            log.info("checkpoint %s of %s is not used: %s, which were replaced", name, slot, error)
        except RefusedError as error:
            log.error(
                "checkpoint %s of %s is refused: %s; trying the one before", name, slot, error
            )
            refusal = refusal or error
    if refusal:
        raise _unusable(slot, refusal)
    return None


def _unusable(slot: Slot, refusal: RefusedError) -> CheckpointError:
    remove = f"fluxplain checkpoints remove --role {slot.role} --partition {slot.partition}"
    restore = "Restore"
    if isinstance(refusal, OtherVersionsError):
        restore = f"To keep what was learned, stop all workers and run `{ADOPT}`. Or restore"
    return CheckpointError(
        f"the checkpoint of {slot} cannot be used: {refusal}. {restore} the settings, versions and "
        "key that it was written with, or use another topics.prefix. If only the key has changed, "
        f"stop all {slot.role} workers and run `{remove}` to rebuild the state from the log"
    )
