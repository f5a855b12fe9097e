"""Records: exact on the wire, as their schemas say, and nothing but ``BadRecordError``."""

import dataclasses
import hashlib

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.schemas import (
    RECORDS,
    BadRecordError,
    Change,
    Control,
    DeadLetter,
    Evaluation,
    Explanation,
    LateLabel,
    Note,
    Observation,
    Prediction,
    Record,
    parse_stream,
    stream_name,
)
from fluxplain.schemas.__main__ import files, schema_path
from fluxplain.schemas.dead_letter import MAX_BYTES
from fluxplain.schemas.record import describe
from fluxplain.stages import Message, ModelStage, process
from tests.fuzz.strategies import anything
from tests.kit import support as kit
from tests.kit.any_records import ANY, maybe, types
from tests.kit.records import explanation
from tests.kit.stages import explained, local, modelled

every_record = pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)


@every_record
def test_the_published_schemas_are_those_of_the_records(record: type[Record]) -> None:
    """If this fails, write them anew: ``python -m fluxplain.schemas``."""
    assert {path: path.read_bytes() for path in files(record)} == files(record)


@every_record
def test_the_schema_is_a_schema_and_describes_every_field(record: type[Record]) -> None:
    schema = record.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {f.name for f in dataclasses.fields(record)}


@kit.PROPERTY
@given(st.one_of([*ANY.values()]))
def test_encoding_and_decoding_gives_the_same_record_exactly(record: Record) -> None:
    decoded = type(record).decode(record.encode())
    assert decoded == record
    assert types(dataclasses.asdict(decoded)) == types(dataclasses.asdict(record))
    assert decoded.encode() == record.encode()


@kit.PROPERTY
@given(st.one_of([*ANY.values()]))
def test_every_record_is_valid_under_its_schema(record: Record) -> None:
    jsonschema.Draft202012Validator(record.json_schema()).validate(orjson.loads(record.encode()))


def published_records() -> list[Record]:
    """Return what real streams publish, classification and regression, good and bad; and a note."""
    reasons = {"enabled": True, "reservoir_size": 20, "most_inputs": 400}
    classified = kit.make_config(explain={"emit_every": 5}, reasons=reasons)
    measured = kit.linear_config(
        drift={"detector": "adwin", "min_effect": 0.0, "delta": 0.9, "grace_period": 3}
    )
    values = [each.value for each in kit.observations(kit.agrawal(80))]
    records = modelled(classified, [*values, None, b"oops", b"\xff", b'{"x": {}}'])
    kept = [e for e in kit.of_kind(records, Evaluation) if e.seqs[0] != 40]
    records += explained(classified, kept)
    late = [{"x": {"a": 1.0, "b": 2.0, "c": "u"}, "id": 1}, {"id": 1, "y": 2.0}]
    records += local(measured, kit.linear_records(150)) + local(measured, late)
    records += [LateLabel.decode(orjson.dumps(late[1])), Control.decode(b'{"every": 2}')]
    note = Note("muted", "2026-03-01T12:00:00Z", feature="a", text="noise", by="Ada")
    return [*records, note, *map(Observation.decode, values)]


def test_everything_that_real_streams_publish_is_valid_under_its_schema() -> None:
    records = published_records()
    assert {type(record) for record in records} == set(RECORDS)
    assert {c.kind for c in kit.of_kind(records, Change)} == {"drift", "gap"}
    for kind in RECORDS:
        validator = jsonschema.Draft202012Validator(orjson.loads(schema_path(kind).read_bytes()))
        for record in kit.of_kind(records, kind):
            validator.validate(orjson.loads(record.encode()))
            assert kind.decode(record.encode()) == record


@kit.PROPERTY
@given(st.data(), st.sampled_from(RECORDS))
def test_any_bytes_are_a_record_or_a_bad_record_error_with_a_reason(
    data: st.DataObject, kind: type[Record]
) -> None:
    good = orjson.loads(data.draw(ANY[kind]).encode())
    value, reason = data.draw(anything([good])), ""
    try:
        record = kind.decode(value)
    except BadRecordError as error:
        reason = str(error)
    assert reason or isinstance(record, kind)


@pytest.mark.parametrize("name", ["increments", "trends"])
def test_the_numbers_of_an_explanation_are_as_many_as_its_observations(name: str) -> None:
    record = dataclasses.replace(explanation("a", 7, 0.5), trends=[-0.5])
    assert Explanation.decode(record.encode()) == record
    for wrong in ([], [0.5, 0.5]):
        with pytest.raises(BadRecordError, match=f"{name} must be as long as seqs"):
            Explanation.of({**dataclasses.asdict(record), name: wrong})


@every_record
@pytest.mark.parametrize("depth", [300, 1_000, 100_000])
def test_deep_nesting_is_a_bad_record(record: type[Record], depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    for value in (nested, b'{"x":{"a":' + nested + b"}}", b'{"x":' + nested + b"}"):
        with pytest.raises(BadRecordError):
            record.decode(value)


@kit.PROPERTY
@given(st.none() | st.binary(max_size=80))
def test_any_bytes_pass_through_the_first_stage_as_one_record(value: bytes | None) -> None:
    stage = ModelStage(kit.linear_config(), "features-0")
    [letter] = process(stage, Message("features", 0, 5, None, value))
    assert isinstance(letter, DeadLetter)
    assert letter.original() == value
    assert DeadLetter.decode(letter.encode()) == letter


@kit.PROPERTY
@given(maybe(st.binary(max_size=200)), maybe(st.binary(max_size=50)))
def test_a_dead_letter_keeps_the_original_bytes(value: bytes | None, key: bytes | None) -> None:
    letter = DeadLetter.decode(Message("t", 3, 9, key, value).dead_letter("why").encode())
    assert letter.original() == value
    assert letter.truncated is False
    assert letter.sha256 == (None if value is None else hashlib.sha256(value).hexdigest())
    assert (letter.stream, letter.seq) == ("t-3", 9)


@pytest.mark.parametrize("unit", [b"a", b"\x00", b"\xff", b'"', "é".encode(), b"\n"])
def test_a_dead_letter_of_the_longest_message_stays_below_a_megabyte(unit: bytes) -> None:
    value = unit * (1_000_000 // len(unit))
    letter = Message("t", 0, 0, None, value).dead_letter("too long")
    assert letter.truncated
    assert letter.original() == value[:MAX_BYTES]
    assert letter.sha256 == hashlib.sha256(value).hexdigest()
    assert len(letter.encode()) < 1_000_000


def test_values_are_described_for_people_in_few_characters() -> None:
    described = [*map(describe, (None, 1, 1.5, [1]))]
    assert described == ["null", "an integer 1", "a number 1.5", "an array [1]"]
    assert len(describe("x" * 10_000)) < 100


def test_the_key_of_a_record_is_its_feature() -> None:
    records = published_records()
    for record in records:
        if isinstance(record, Evaluation | Explanation):
            assert record.message_key() == record.feature
        elif isinstance(record, Observation | Prediction | DeadLetter):
            assert record.message_key() is None
    cold = Change.notice(kind="cold-start", stream="features-0", seq=1, detail="no checkpoint")
    assert cold.message_key() == "features-0"
    losses = [c for c in kit.of_kind(records, Change) if c.method == "loss"]
    assert losses
    assert {c.message_key() for c in losses} == {"fluxplain.features-0"}


@kit.PROPERTY
@given(st.sampled_from(["features", "a-b", "x.y"]), st.integers(0, 999))
def test_a_stream_is_named_by_topic_and_partition(topic: str, partition: int) -> None:
    assert parse_stream(stream_name(topic, partition)) == (topic, partition)
