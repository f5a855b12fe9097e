"""Whatever stands in the topic of checkpoints: only what was saved is found, and nothing raises."""

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.checkpoints import envelope, records
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint
from fluxplain.kafka.checkpoints.envelope import DamagedError, Envelope, RefusedError
from fluxplain.kafka.checkpoints.records import LogRecord, kept_keys, newest_first, split
from tests.fuzz.strategies import EXTREME_NUMBERS, FUZZ, SEEDS, dumps, mangled
from tests.kit.sealed import IDENTITY, KEY, SLOT, Spy, spy

__all__ = ["spy"]

Pair = tuple[bytes | None, bytes | None]
"""Key and value of a record."""

SAVED = (3, 7, 12)
"""Next offsets of the checkpoints that were saved."""

ENVELOPE = Envelope(IDENTITY, KEY)


@cache
def saved() -> list[tuple[bytes, bytes]]:
    """Return the records of the saved checkpoints, each of several chunks."""
    pairs: list[tuple[bytes, bytes]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "CHUNK_BYTES", 64)
        for generation, offset in enumerate(SAVED):
            pairs += split(SLOT, generation, *ENVELOPE.seal(SLOT, checkpoint(offset)))
    return pairs


def checkpoint(offset: int) -> Checkpoint:
    stage: Any = f"state at {offset}, " * 15
    return Checkpoint(offset, stage)


def windows(pairs: list[Pair], rng: random.Random) -> Iterator[list[LogRecord]]:
    """Yield a log from its end backwards, in windows of any size."""
    log = [LogRecord(offset, *pair) for offset, pair in enumerate(pairs)]
    while log:
        start = rng.randrange(len(log))
        yield log[start:]
        del log[start:]


def found(pairs: list[Pair], rng: random.Random, spy: Spy) -> list[int]:
    """Return the next offsets of what can be opened; all of it is what was saved."""
    offsets = []
    for each in newest_first(windows(pairs, rng), SLOT, ENVELOPE):
        try:
            offset = each.open().next_offset
        except (DamagedError, RefusedError):
            continue
        assert offset in SAVED
        assert spy.given.pop() == ENVELOPE.seal(SLOT, checkpoint(offset))[1]
        offsets.append(offset)
    assert spy.given == []
    return offsets


OWN_BUT_ODD = [
    *("", "/", "/0", "/0/", "//header", "/0/0/", "/1000/header", "/-1/0", "/٣/0", "/0/٣"),
    *("/0/Header", "/0/0\n", f"/{SLOT}/0/header", "0/0/header", "/0/header/0", "/0/" + "9" * 5_000),
]
"""What stands behind the slot's name."""

OF_OTHERS = [
    *(f" {SLOT}/0/0", f"x{SLOT}/0/header", "drift fluxplainXexplanations-0/0/header"),
    *("drift fluxplain.explanations-1/0/header", "model fluxplain.explanations-0/0/0"),
]

FOREIGN_KEYS: list[bytes | None] = [
    *(None, b"", b"\xff" * 20),
    *(key.encode() for key in [*(f"{SLOT}{odd}" for odd in OWN_BUT_ODD), *OF_OTHERS]),
]


def odd_value(rng: random.Random) -> bytes | None:
    """Return a tombstone, garbage, garbage behind a digest, or a header that is signed but odd."""
    _, value = rng.choice(saved())
    garbage = rng.randbytes(rng.randrange(60))
    return rng.choice([None, b"", value[:32], garbage, value[:32] + garbage, odd_header(rng)])


def odd_header(rng: random.Random) -> bytes:
    header, state = ENVELOPE.seal(SLOT, checkpoint(rng.choice(SAVED)))
    fields = json.loads(header)
    fields["bytes"] = rng.choice([0, 1, 63, 64, 65, len(state) - 1, *EXTREME_NUMBERS, None, "1"])
    if rng.random() < 0.3:
        fields["sha256"] = rng.choice(["0" * 64, "F" * 64, "", None, "é" * 64, 0])
    fields["signature"] = envelope._sign(fields, KEY)
    return dumps(fields)


def damaged(rng: random.Random, value: bytes | None) -> bytes | None:
    """Return the value with a bit flipped, or cut."""
    if not value:
        return value
    at = rng.randrange(len(value))
    if rng.random() < 0.5:
        return value[:at]
    return value[:at] + bytes([value[at] ^ 1 << rng.randrange(8)]) + value[at + 1 :]


def disturbed(rng: random.Random) -> list[Pair]:
    """Return the log of the saved checkpoints after up to eight things happened to it."""
    log: list[Pair] = [*saved()]
    for _ in range(rng.randint(1, 8)):
        at, elsewhere = rng.randrange(len(log)), rng.randrange(len(log))
        key, value = log[at]
        other_key, other_value = log[elsewhere]
        match rng.choice(["drop", "move", "repeat", "remove", "key", "value", "swap", "insert"]):
            case "drop":
                log = [*log[:at], *log[at + 1 :]] or log
            case "move":
                log.insert(elsewhere, log.pop(at))
            case "repeat":
                log.insert(elsewhere, log[at])
            case "remove":
                log.insert(elsewhere, (key, None))
            case "key":
                log[at] = (rng.choice([other_key, *FOREIGN_KEYS]), value)
            case "value":
                log[at] = (key, rng.choice([damaged(rng, value), odd_value(rng)]))
            case "swap":
                log[at], log[elsewhere] = (key, other_value), (other_key, value)
            case "insert":
                log.insert(at, (rng.choice([key, *FOREIGN_KEYS]), odd_value(rng)))
    return log


@FUZZ
@given(SEEDS)
def test_only_what_was_saved_is_found_in_a_disturbed_log(spy: Spy, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        found(disturbed(rng), rng, spy)


@FUZZ
@given(
    st.lists(
        st.tuples(
            st.sampled_from([key for key, _ in saved()]) | st.none() | st.binary(max_size=40),
            st.sampled_from([value for _, value in saved()]) | st.none() | st.binary(max_size=99),
        ),
        max_size=30,
    ),
    SEEDS,
)
def test_only_what_was_saved_is_found_among_any_records(
    spy: Spy, pairs: list[Pair], seed: int
) -> None:
    found(pairs, random.Random(seed), spy)


@FUZZ
@given(SEEDS)
def test_records_of_others_and_windows_of_any_size_hide_nothing(spy: Spy, seed: int) -> None:
    rng = random.Random(seed)
    log: list[Pair] = [*saved()]
    for _ in range(rng.randrange(20)):
        log.insert(rng.randrange(len(log) + 1), (rng.choice(FOREIGN_KEYS), odd_value(rng)))
    assert found(log, rng, spy) == sorted(SAVED, reverse=True)


@FUZZ
@given(SEEDS)
def test_nothing_is_found_after_tombstones_for_all_keys(spy: Spy, seed: int) -> None:
    rng = random.Random(seed)
    log = disturbed(rng)
    keys = kept_keys(windows(log, rng), SLOT)
    assert not {*keys} & {*FOREIGN_KEYS}
    log += [(key, None) for key in keys]
    assert found(log, rng, spy) == []
    assert kept_keys(windows(log, rng), SLOT) == []
    # and what is saved next is found
    assert found([*log, *saved()], rng, spy) == sorted(SAVED, reverse=True)


@FUZZ
@given(mangled([key for key, _ in saved()]) | st.binary(max_size=60))
def test_only_the_slots_own_keys_are_read(key: bytes) -> None:
    place = records._parse_key(SLOT, key)
    if place is not None:
        generation, name = place
        prefix, number, last = key.decode().rsplit("/", 2)
        assert (prefix, int(number), last) == (str(SLOT), generation, name)
