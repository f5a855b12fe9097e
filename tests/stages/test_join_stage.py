"""Features and labels in one topic: as they were, and each once however often it is passed on."""

import random
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.ownership.writers import WRITER, Writer
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Change, DeadLetter, Prediction
from fluxplain.schemas.record import MAX_RECORD_BYTES
from fluxplain.stages import JoinStage, Message, ModelStage, process
from fluxplain.stages.join_stage import PassedOn
from fluxplain.stages.stage import ORIGIN, ORIGIN_TIME, PREVIOUS
from tests.kit import support as kit
from tests.kit.stages import contents, only_letter

CONFIG = kit.linear_config(
    label={"type": "number", "topic": True, "wait": 20}, explain={"methods": ["ipfi", "ipdp"]}
)

OBSERVATIONS = "fluxplain.observations"

STREAM = f"{OBSERVATIONS}-0"


def observation(offset: int, *, y: float | None = None, **more: Any) -> Message:
    value = {"x": {"a": 1.0 * offset, "b": 2.0, "c": "u"}, "id": offset, "y": y, **more}
    return Message("fluxplain.features", 0, offset, b"k", orjson.dumps(value), 1_000 + offset)


def label(offset: int, id_: int, **more: Any) -> Message:
    value = {"id": id_, "y": 3.0, **more}
    return Message("fluxplain.labels", 0, offset, b"k", orjson.dumps(value), 2_000 + offset)


def joined(messages: list[Message]) -> list[Message]:
    """Return them as the model role reads them.

    What an origin's messages go back to, another owner passes on again, from the state that it had
    there.
    """
    stages: dict[tuple[str, int], dict[int, JoinStage]] = {}
    passed: list[Message] = []
    for i, each in enumerate(messages):
        known = stages.setdefault((each.topic, each.partition), {})
        stage = kit.pickled(known.get(each.offset, JoinStage()))
        [record] = process(stage, each)
        key, headers = messages[0].key, record.message_headers()
        passed.append(Message(OBSERVATIONS, 0, i, key, record.encode(), None, headers))
        known[each.offset + 1] = stage
    return passed


def moved(messages: list[Message]) -> list[Message]:
    """Return messages with the offsets that they have in this order."""
    return [replace(each, offset=i) for i, each in enumerate(messages)]


def model_stage() -> ModelStage:
    return ModelStage(CONFIG, STREAM)


def test_a_message_is_passed_on_as_it_is() -> None:
    message = replace(observation(7), headers={"traceparent": b"00-1"})
    [record] = process(JoinStage(), message)
    assert isinstance(record, PassedOn)
    assert record.encode() == message.value
    assert record.headers == {
        "traceparent": b"00-1",
        ORIGIN: b"fluxplain.features-0@7",
        ORIGIN_TIME: b"1007",
    }
    assert record.message_key() is None


LONG = b" " * MAX_RECORD_BYTES

UNUSABLE: dict[str, dict[str, Any]] = {
    "the message has no value (a tombstone)": {"value": None},
    "the message has 900,001 bytes, but must have at most 900,000": {"value": LONG + b" "},
    "the message has 900,012 bytes, but must have at most 900,000": {
        "value": b" ",
        "headers": {"h": LONG},
    },
    "the message has 1,001 headers, but must have at most 1,000": {
        "headers": {str(i): b"" for i in range(1_001)}
    },
    "it cannot be read": {"value": None, "flaw": "it cannot be read"},
    "the key has 65,537 bytes, but must have at most 65,536": {"key": b"k" * 65_537},
}


@pytest.mark.parametrize("reason", UNUSABLE)
def test_what_cannot_be_passed_on_is_a_dead_letter(reason: str) -> None:
    letter = only_letter(process(JoinStage(), replace(observation(7), **UNUSABLE[reason])))
    assert letter.reason == reason
    assert (letter.topic, letter.offset) == ("fluxplain.features", 7)


def test_a_record_of_the_topic_of_labels_is_a_label_whatever_other_fields_it_has() -> None:
    x = {"a": 5.0, "b": 5.0, "c": "v"}
    predictions = kit.of_kind(
        kit.run(model_stage(), joined([observation(0), label(0, 0, x=x)])), Prediction
    )
    assert [each.observation for each in predictions] == [None, 0]


def test_a_dead_letter_names_both_the_place_in_the_stream_and_its_producers() -> None:
    bad = replace(label(4, 0), value=b"oops")
    [letter] = kit.of_kind(kit.run(model_stage(), joined([observation(0), bad])), DeadLetter)
    assert (letter.stream, letter.seq) == ("fluxplain.observations-0", 1)
    assert (letter.topic, letter.partition, letter.offset) == ("fluxplain.labels", 0, 4)


@pytest.mark.parametrize(
    "origin",
    [
        *(b"", b"\xff", b"nothing", b"features-0", b"features-0@", b"features@1", b"f-0@-1"),
        *(b"f-0@\xb2", b"f-0@" + b"9" * 20),
    ],
)
def test_a_malformed_origin_header_is_ignored(origin: bytes) -> None:
    message = replace(observation(3), headers={ORIGIN: origin, ORIGIN_TIME: origin})
    assert message.origin == ("fluxplain.features", 0, 3)
    [passed] = joined([observation(3)])
    assert message.time == passed.time == 1_003


def logs(seed: int) -> tuple[list[Message], list[Message]]:
    """Return messages in some order, and with repetitions as crashes of the join role leave them.

    Whoever goes on begins at or before the first message that was not passed on yet.
    """
    rng = random.Random(seed)
    sources = {
        "features": [observation(i, y=rng.choice([None, 1.0])) for i in range(12)],
        "labels": [label(i, rng.randrange(12)) for i in range(10)],
    }
    bad = rng.randrange(12)
    sources["features"][bad] = replace(sources["features"][bad], value=b"oops")
    once: list[Message] = []
    again: list[Message] = []
    done = dict.fromkeys(sources, 0)
    while any(done[name] < len(each) for name, each in sources.items()):
        name = rng.choice([name for name, each in sources.items() if done[name] < len(each)])
        begin = rng.randint(0, done[name]) if rng.random() < 0.25 else done[name]
        end = rng.randint(begin, len(sources[name]))
        again += sources[name][begin:end]
        once += sources[name][done[name] : end]
        done[name] = max(done[name], end)
    return once, again


@pytest.mark.slow
@kit.PROPERTY
@given(st.integers(0, 10**6))
def test_what_is_passed_on_again_changes_nothing(seed: int) -> None:
    once, again = logs(seed)
    records = kit.run_copies(model_stage(), joined(again))
    assert contents(records) == contents(kit.run(model_stage(), joined(once)))


# what is lost


def test_each_message_names_the_one_that_was_passed_on_before_it() -> None:
    messages = [observation(3), replace(observation(4), value=None), observation(7)]
    stage = JoinStage()
    records = [record for each in messages for record in process(stage, each)]
    passed = [each for each in records if isinstance(each, PassedOn)]
    assert [each.headers.get(PREVIOUS) for each in passed] == [None, b"3"]


@kit.PROPERTY
@given(st.integers(0, 10**6))
def test_each_message_is_taken_once_whatever_is_lost_doubled_or_swapped(seed: int) -> None:
    rng = random.Random(seed)
    whole = joined([observation(i, y=1.0) for i in range(12)])
    log = moved([whole[0], *rng.choices(whole, k=20)])
    records = kit.run_copies(model_stage(), log)
    taken = dict.fromkeys(each.origin[2] for each in log)
    assert [each.id for each in kit.of_kind(records, Prediction)] == list(taken)
    gaps = kit.of_kind(records, Change)
    assert all(each.kind == "gap" for each in gaps)
    late = [i for n, i in enumerate(taken) if i < max(list(taken)[: n + 1])]
    missing = set(range(max(taken))) - taken.keys()
    assert bool(gaps) == bool(late or missing), "what is missing is published"
    assert len({each.seq for each in gaps}) == len(gaps)


def test_a_gap_is_published_once_and_what_comes_late_is_taken() -> None:
    first, second, third, fourth = joined([observation(i, y=1.0) for i in range(4)])
    log = moved([first, third, third, fourth, second, second])
    records = kit.run(model_stage(), log)
    assert [each.id for each in kit.of_kind(records, Prediction)] == [0, 2, 3, 1]
    [gap] = kit.of_kind(records, Change)
    assert (gap.kind, gap.stream, gap.seq) == ("gap", STREAM, 1)
    assert gap.detail == (
        "offset 2 of fluxplain.features-0 was read, but offsets 1 to 1, as far as passed on, are "
        "missing before it: they were lost, or come later and are taken then"
    )


def test_the_reference_ignores_what_a_former_owner_wrote_late() -> None:
    """Also what is new in it: its successor writes it again."""
    first, second, third = joined([observation(i, y=1.0) for i in range(3)])
    log = moved([by(1, first), by(5, second), by(1, third), by(5, third)])
    pipeline = LocalPipeline(CONFIG)
    published = [[*pipeline.take(message)] for message in log]
    assert published[2] == []
    taken = [each.seq for records in published for each in kit.of_kind(records, Prediction)]
    assert taken == [0, 1, 3]
    assert kit.of_kind([record for records in published for record in records], Change) == []


def by(epoch: int, message: Message) -> Message:
    """Return a message with the name of its writer, an owner of ``features``."""
    writer = Writer("join fluxplain.features-0", epoch)
    return replace(message, headers={**message.headers, WRITER: writer.header})


def test_a_stage_that_sees_the_whole_log_knows_that_its_beginning_is_missing() -> None:
    _, second = joined([observation(0, y=1.0), observation(1, y=1.0)])
    [gap] = kit.of_kind(kit.run(model_stage(), moved([second])), Change)
    assert "offsets 0 to 0" in gap.detail
    # one that starts cold in the middle does not: its first message is the base
    assert kit.of_kind(kit.run(model_stage(), [second]), Change) == []


@pytest.mark.parametrize("origin", [b"fluxplain.features-1@7", b"other-0@7", b""])
def test_a_message_of_another_stream_is_a_dead_letter(origin: bytes) -> None:
    [first] = joined([observation(0, y=1.0)])
    foreign = replace(first, offset=1, headers={ORIGIN: origin})
    stage = model_stage()
    *_, letter = kit.run(stage, [first, foreign])
    assert isinstance(letter, DeadLetter)
    assert letter.reason.startswith("the message is from ")
    assert letter.reason.endswith(
        "but only partition 0 of fluxplain.features, fluxplain.labels is passed on to "
        "fluxplain.observations-0"
    )
    assert (letter.topic, letter.partition, letter.offset) == ("fluxplain.observations", 0, 1)


def test_an_origin_that_is_forged_costs_no_other_message() -> None:
    messages = joined([observation(i, y=1.0) for i in range(5)])
    forged = replace(messages[0], headers={ORIGIN: b"fluxplain.features-0@999999999999"})
    records = kit.run(model_stage(), moved([messages[0], forged, *messages[1:]]))
    assert [each.id for each in kit.of_kind(records, Prediction)] == [0, 0, 1, 2, 3, 4]


# control


CONTROLLED = kit.linear_config(control={"topic": True})


def control(offset: int, value: object) -> Message:
    return Message("fluxplain.control", 0, offset, None, orjson.dumps(value), 1_000 + offset)


def test_what_is_announced_holds_from_there_on() -> None:
    messages = [observation(i, y=1.0) for i in range(40)]
    messages[20:20] = [control(0, {"every": 5})]
    stage = ModelStage(CONTROLLED, STREAM)
    records = kit.run(stage, joined(messages))
    assert stage.every == 5
    predictions = kit.of_kind(records, Prediction)
    assert len(predictions) == 40
    runs = kit.by_feature(records)["a"]
    assert sum(each.seqs[0] < 20 for each in runs) > 10
    assert sum(each.seqs[0] > 20 for each in runs) == 4
    assert runs[-1].skipped[0] >= 12
