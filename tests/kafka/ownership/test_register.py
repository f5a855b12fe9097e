"""Which records in the topic ``register`` count; any client may have written them."""

import asyncio
from contextlib import closing
from typing import Any

import orjson
import pytest

from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import Fingerprint, Registered
from fluxplain.kafka.ownership.writers import Begin, Writer
from fluxplain.kafka.topics.create import create_topics
from tests.kit.support import linear_config

SLOT = "model fluxplain.features-0"


def registered(*records: dict[str, Any] | bytes) -> Registered:
    """Return the content of the register after these records."""
    found = Registered()
    for offset, record in enumerate(records):
        found.take(offset + 1, record if isinstance(record, bytes) else orjson.dumps(record))
    return found


def settings(replaces: int) -> dict[str, Any]:
    return {"kind": "settings", "replaces": replaces, "settings": {}, "versions": {}, "logs": {}}


def begin(epoch: Any, next_offset: Any) -> dict[str, Any]:
    return {"kind": "begin", "slot": SLOT, "epoch": epoch, "next_offset": next_offset}


OWNER = {"kind": "owner", "slot": SLOT}


def test_the_begin_of_a_slot_is_its_newest_owners() -> None:
    found = registered(settings(0), OWNER, begin(2, 60), OWNER, begin(4, 80), begin(2, 100))
    assert found.begins == {SLOT: Begin(4, 80)}
    assert found.knows(Writer(SLOT, 4))
    assert not found.knows(Writer(SLOT, 5))


@pytest.mark.parametrize("epoch", [3, 9 * 10**18, 1e308, 2.0, "2", None, True])
def test_a_begin_in_an_unclaimed_epoch_is_ignored(epoch: Any) -> None:
    found = registered(settings(0), OWNER, begin(2, 60), begin(epoch, -1))
    assert found.begins == {SLOT: Begin(2, 60)}


def test_incarnations_consist_of_registered_numbers() -> None:
    cold = {"kind": "cold-start", "place": "model features-0", "offset": 60, "settings": 1}
    new = {**cold, "settings": 4}
    found = registered(
        settings(0), cold, cold, settings(1), settings(7), {**new, "offset": 6e1}, cold
    )
    assert found.lives == {1, 2, 4}, "a worker with settings that were replaced starts nothing"
    assert not found.cold_starts
    assert found.number == 4


def test_the_first_decision_about_a_model_counts_until_the_settings_change() -> None:
    taken = {"kind": "model", "stream": "features-0", "seq": 7, "decision": "taken", "settings": 1}
    withdrawn = {**taken, "decision": "withdrawn"}
    found = registered(
        settings(0), {**taken, "decision": "?"}, withdrawn, taken, {**taken, "seq": 9}
    )
    assert found.decisions == {("features-0", 7): "withdrawn", ("features-0", 9): "taken"}
    assert not registered(settings(0), taken, settings(1), taken).decisions


@pytest.mark.parametrize("poison", [b"", b"[]", b"{}", b'{"kind": "begin"}', b"\xff", b"1e400"])
def test_malformed_records_are_ignored(poison: bytes) -> None:
    assert registered(settings(0), OWNER, poison) == registered(settings(0), OWNER)


def test_a_cold_start_is_known_to_those_that_read_the_register_before_it() -> None:
    with EmbeddedBroker() as broker:
        config = linear_config().on_broker(broker.bootstrap_servers)
        create_topics(config)
        with closing(Register(config)) as model, closing(Register(config)) as drift:
            settings = model.enter(Fingerprint({}, {}, {}))
            assert drift.read().lives == {settings}
            number = model.cold_start("model fluxplain.features-0", 60, settings)
            assert number is not None

            async def ask(*numbers: int) -> list[bool]:
                return [drift.is_life(each) for each in numbers]

            assert asyncio.run(ask(number, number + 1, settings)) == [True, False, True]
