"""Whatever is where a checkpoint should be: it is passed over or refused, and never unpickled."""

import copy
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.checkpoints import envelope
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, CheckpointError
from fluxplain.kafka.checkpoints.directory import DirectoryCheckpointStore
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.stages import DriftStage
from tests.fuzz.pools import REGRESSION
from tests.fuzz.strategies import (
    ANY_JSON,
    CONFUSED,
    EXTREME_NUMBERS,
    EXTREME_TEXTS,
    FUZZ,
    SEEDS,
    dumps,
    mangled,
    nested,
)
from tests.kit.sealed import IDENTITY, KEY, SLOT, Spy, Unpickled, sealed, spy

__all__ = ["spy"]  # a fixture

OLDER, NEWER = 7, 12

keys = pytest.mark.parametrize("key", [None, KEY], ids=["unsigned", "signed"])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bytes | None, Path]:
    """Folders in which an older checkpoint is good, and the newer one is to be written."""
    roots: dict[bytes | None, Path] = {}
    for key in (None, KEY):
        roots[key] = root = tmp_path_factory.mktemp("checkpoints")
        store = DirectoryCheckpointStore(root, Envelope(IDENTITY, key))
        store.save(SLOT, Checkpoint(OLDER, DriftStage(REGRESSION)))
    return roots


def loaded(root: Path, key: bytes | None, newer: bytes) -> Checkpoint | None:
    """Return what is loaded where the newest file holds these bytes."""
    older = next(root.rglob(f"*{OLDER}.checkpoint"))
    older.with_name(older.name.replace(f"{OLDER:020d}", f"{NEWER:020d}")).write_bytes(newer)
    return DirectoryCheckpointStore(root, Envelope(IDENTITY, key)).load(SLOT)


def assert_only_the_whole(spy: Spy, key: bytes | None, newer: bytes) -> None:
    """What was unpickled has the digest of its header; with a key it is what was saved."""
    header, _, state = newer.partition(b"\n")
    for given_ in spy.given:
        if given_ == sealed(key, OLDER)[1]:
            continue
        assert key is None
        assert given_ == state
        assert json.loads(header)["sha256"] == hashlib.sha256(state).hexdigest()
    spy.given.clear()


@keys
def test_a_good_one_is_loaded(
    folders: dict[bytes | None, Path], spy: Spy, key: bytes | None
) -> None:
    checkpoint = loaded(folders[key], key, b"\n".join(sealed(key, NEWER)))
    assert checkpoint is not None
    assert checkpoint.next_offset == NEWER
    assert spy.given == [sealed(key, NEWER)[1]]
    spy.given.clear()


@keys
@FUZZ
@given(
    st.binary(max_size=200)
    | nested()
    | ANY_JSON.map(dumps)
    | ANY_JSON.map(lambda v: dumps(v) + b"\n")
)
def test_any_bytes_are_passed_over(
    folders: dict[bytes | None, Path], spy: Spy, key: bytes | None, newer: bytes
) -> None:
    checkpoint = loaded(folders[key], key, newer)
    assert checkpoint is not None
    assert checkpoint.next_offset == OLDER
    assert_only_the_whole(spy, key, newer)


@keys
@FUZZ
@given(st.data())
def test_a_damaged_one_is_passed_over(
    folders: dict[bytes | None, Path], spy: Spy, key: bytes | None, data: st.DataObject
) -> None:
    whole = [b"\n".join(sealed(key, NEWER)), b"\n".join(sealed(None, NEWER))]
    header, state = sealed(key, NEWER)
    assert isinstance(state, bytes)
    part = data.draw(st.sampled_from(["file", "header", "state"]))
    if part == "file":
        newer = data.draw(mangled(whole))
    elif part == "header":
        newer = data.draw(mangled([header])) + b"\n" + state
    else:
        newer = header + b"\n" + data.draw(mangled([state], numbers=False))
    checkpoint = loaded(folders[key], key, newer)
    assert checkpoint is not None  # the older one is good
    assert isinstance(checkpoint.stage, Unpickled)
    assert type(checkpoint.next_offset) is int
    assert checkpoint.next_offset >= 0
    if key is not None:
        assert checkpoint.next_offset in (OLDER, NEWER)
    assert_only_the_whole(spy, key, newer)


ODD: list[Any] = [
    *EXTREME_NUMBERS,
    *EXTREME_TEXTS,
    *CONFUSED,
    *(None, True, {}, {"a": 1}, "0" * 64, "f" * 63, "F" * 64, 12.0, OLDER, str(NEWER)),
    *(str(SLOT), "drift other-0", {"python": "2.7"}, [SLOT.topic], "é" * 32),
]


def altered(rng: random.Random, header: dict[str, Any]) -> dict[str, Any]:
    """Return the header with up to three fields replaced, removed or added."""
    fields = copy.deepcopy(header)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice([*header, "signature", "other"])
        if rng.random() < 0.15:
            fields.pop(name, None)
        else:
            fields[name] = rng.choice(ODD)
    return fields


@keys
@pytest.mark.parametrize("signer", [None, KEY, b"another key"], ids=["nobody", "us", "another"])
@FUZZ
@given(SEEDS)
def test_a_header_of_wrong_fields_is_passed_over(
    folders: dict[bytes | None, Path], spy: Spy, key: bytes | None, signer: bytes | None, seed: int
) -> None:
    """Also when it was signed as it is: then its fields are wrong, and not its signature."""
    header, state = sealed(key, NEWER)
    rng = random.Random(seed)
    for _ in range(4):
        fields = altered(rng, json.loads(header))
        if signer is not None and rng.random() < 0.9:
            fields["signature"] = envelope._sign(fields, signer)
        newer = dumps(fields) + b"\n" + state
        checkpoint = loaded(folders[key], key, newer)
        assert checkpoint is not None
        assert checkpoint.next_offset == (
            fields["next_offset"] if _accepted(fields, header, key, signer) else OLDER
        )
        assert_only_the_whole(spy, key, newer)


def _accepted(
    fields: dict[str, Any], header: bytes, key: bytes | None, signer: bytes | None
) -> bool:
    """Whether it may be loaded: all is as it was, but for the offset and what nobody reads."""
    as_it_was = json.loads(header)
    read = ("magic", "slot", "sha256", "settings", "cluster", "versions", "log", "registered")
    if any(fields.get(name) != as_it_was.get(name) for name in (*read, "register")):
        return False
    # the first versions had no number
    number = fields.get("versions_number", fields["registered"])
    if type(number) is not int or number != as_it_was["versions_number"]:
        return False
    if any(
        type(fields.get(name)) is not int or fields[name] < 0
        for name in ("next_offset", "epoch", "bytes")
    ):
        return False
    if key is None:
        return True
    return bool(fields.get("signature") == envelope._sign(fields, key))


def test_half_a_character_for_a_signature_is_refused() -> None:
    header = json.dumps({"magic": envelope.MAGIC, "signature": "\ud800"}).encode()
    with pytest.raises(envelope.RefusedError):
        Envelope(IDENTITY, KEY).read_header(SLOT, header)


def test_what_is_too_deep_to_be_signed_is_damaged_or_refused() -> None:
    """Python reads JSON about as deep as it writes it, but not to the level."""
    for depth in range(500, 1_200):
        deep = b"[" * depth + b"]" * depth
        header = dumps({"magic": envelope.MAGIC, "signature": "", "x": 0})[:-2] + deep + b"}"
        with pytest.raises((envelope.DamagedError, envelope.RefusedError)):
            Envelope(IDENTITY, KEY).read_header(SLOT, header)


@keys
def test_nothing_but_refused_ones_is_an_error(tmp_path: Path, spy: Spy, key: bytes | None) -> None:
    """To start without a state that is there must be somebody's decision."""
    store = DirectoryCheckpointStore(tmp_path, Envelope(IDENTITY, key))
    store.save(SLOT, Checkpoint(OLDER, DriftStage(REGRESSION)))
    other = Identity.of({"seed": "other"}, "cluster", IDENTITY.logs)
    with pytest.raises(CheckpointError, match="settings"):
        DirectoryCheckpointStore(tmp_path, Envelope(other, key)).load(SLOT)
    assert spy.given == []
    # with nothing but damaged ones there is none
    [path] = tmp_path.rglob("*.checkpoint")
    path.write_bytes(path.read_bytes()[:-1])
    assert DirectoryCheckpointStore(tmp_path, Envelope(IDENTITY, key)).load(SLOT) is None
    assert spy.given == []
