"""Which records in the topic ``register`` count; any client may have written them."""

import asyncio
from contextlib import closing
from typing import Any

import orjson
import pytest

from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import Fingerprint, Registered, RegisteredError
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


def versions(replaces: int, adopted: Any = None, settings: int = 1, **found: str) -> dict[str, Any]:
    fields = {"kind": "versions", "replaces": replaces, "settings": settings}
    return {**fields, "versions": found, "adopted": adopted}


def test_other_versions_keep_the_number_of_the_settings() -> None:
    found = registered(
        settings(0),
        versions(1, river="2"),
        versions(1, river="3"),
        versions(2, {SLOT: 60}, river="4"),
        versions(3, {SLOT: 70}, river="5", settings=9),
    )
    assert (found.number, found.versions_number) == (1, 4)
    assert found.fingerprint == Fingerprint({}, {"river": "4"})
    assert found.versions == {1: {}, 2: {"river": "2"}, 4: {"river": "4"}}
    assert found.adopted == {4: {SLOT: 60}}
    assert found.changes_at(4) == "river from 2 to 4"
    assert found.lives == {1, 4}, "the same bits go on in the same life"
    assert registered(settings(0), versions(1, river="2"), settings(1)).versions == {3: {}}


@pytest.mark.parametrize(
    "wrong",
    [
        versions(1, {SLOT: "60"}),
        versions(1, [SLOT]),
        {**versions(1), "versions": {"river": 1}},
        {**versions(1), "versions": None},
        {"kind": "versions", "replaces": 0, "settings": 0, "versions": {}, "adopted": None},
    ],
)
def test_malformed_versions_are_ignored(wrong: dict[str, Any]) -> None:
    assert registered(settings(0), wrong) == registered(settings(0))
    assert registered(wrong) == registered()


def test_a_cold_start_of_former_versions_is_another_one_if_the_bits_differ() -> None:
    cold = {"kind": "cold-start", "place": "model features-0", "offset": 0, "settings": 1}
    place = "model features-0", 0
    same = registered(settings(0), cold, versions(1), {**cold, "versions": 3})
    assert same.cold_starts == {place: 2}
    other = registered(settings(0), cold, versions(1, {}), cold, {**cold, "versions": 3})
    assert other.cold_starts == {place: 5}, "one by a worker of former versions is ignored"
    assert other.lives == {1, 2, 3, 5}


def test_other_versions_continue_a_state_that_did_not_start_cold_in_between() -> None:
    def cold(number: int, place: str, **more: int) -> dict[str, Any]:
        return {"kind": "cold-start", "place": place, "offset": number, "settings": 1, **more}

    place = "model features-0"
    found = registered(settings(0), cold(2, place), cold(3, "model features-1"), versions(1, {}))
    assert found.continues(4, 4, place)
    assert found.continues(4, 2, place)
    assert not found.continues(4, 1, place)
    assert not found.continues(4, 1, "model"), "a role stands for all its streams"
    assert found.continues(4, 1, "explainer")
    assert not found.continues(2, 1, place)
    assert not found.continues(3, 2, place), "a cold start has no other versions"


def test_places_with_former_results_are_known_whatever_the_shards() -> None:
    found = registered(settings(0), versions(1, {"model-0of2 f-0": 60, "drift e-1": -1}))
    assert found.has_former_bits("model f-0")
    assert found.has_former_bits("drift e-1")
    assert not found.has_former_bits("model f-1")
    assert not found.has_former_bits("drift f-0")
    assert not registered(settings(0), versions(1)).has_former_bits("model f-0")


def test_of_two_adoptions_at_the_same_time_one_fails() -> None:
    with EmbeddedBroker() as broker:
        config = linear_config().on_broker(broker.bootstrap_servers)
        create_topics(config)
        with closing(Register(config)) as first, closing(Register(config)) as second:
            number = first.enter(Fingerprint({}, {"river": "1"}, {}))
            assert second.read().number == number
            taken = first.adopt({"river": "2"}, None)
            with pytest.raises(RegisteredError, match="meanwhile"):
                second.adopt({"river": "3"}, {SLOT: 60})
            assert second.read().versions_number == taken
            with pytest.raises(RegisteredError, match="fluxplain checkpoints adopt"):
                second.enter(Fingerprint({}, {"river": "1"}, {}))
            with pytest.raises(RegisteredError, match="fluxplain settings replace"):
                second.enter(Fingerprint({"seed": "1"}, {"river": "1"}, {}))
            assert second.enter(Fingerprint({}, {"river": "2"}, {})) == number


def test_a_fingerprint_of_before_the_processor_counted_names_it() -> None:
    differences = Fingerprint({}, {}).differences(Fingerprint({}, {"processor": "x86_64"}))
    assert differences == ["the processor (registered: none, here: x86_64)"]


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
            number = model.cold_start("model fluxplain.features-0", 60, settings, settings)
            assert number is not None

            async def ask(*numbers: int) -> list[bool]:
                return [drift.is_life(each) for each in numbers]

            assert asyncio.run(ask(number, number + 1, settings)) == [True, False, True]
