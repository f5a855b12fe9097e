"""Changes are CloudEvents, as the project's own library reads them."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.schemas import Change
from tests.kit.any_records import TEXT, TIMES
from tests.kit.records import change, loss_change
from tests.kit.support import PROPERTY


def event_of(record: Change) -> Any:
    key = record.message_key().encode()
    message = KafkaMessage(dict(record.message_headers()), key, record.encode())
    return from_kafka(message, JSONFormat())


def test_a_change_is_an_event_with_its_identity_and_subject() -> None:
    record = replace(change("age", 7), ts="2026-03-01T12:00:00.25+01:00")
    event = event_of(record)
    assert event.get_attributes() == {
        "specversion": "1.0",
        "id": record.id,
        "source": "features-0",
        "type": "fluxplain.change.drift",
        "subject": "age",
        "time": event.get_time(),
        "datacontenttype": "application/json",
        "partitionkey": "age",  # what the library calls the key
    }
    assert event.get_time().isoformat() == "2026-03-01T12:00:00.250000+01:00"
    assert event.get_data() == orjson.loads(record.encode())


def test_what_is_about_no_feature_has_no_subject() -> None:
    notice = Change.notice(kind="cold-start", stream="features-0", seq=5, detail="…")
    for record in (loss_change(3), notice):
        event = event_of(record)
        assert event.get_subject() is None
        assert event.get_type() == f"fluxplain.change.{record.kind}"


@PROPERTY
@given(ts=TIMES, feature=TEXT)
def test_whatever_the_names_and_times_are_it_is_an_event(ts: Any, feature: str) -> None:
    record = replace(change("age", 7), ts=ts, feature=feature)
    event = event_of(record)
    assert event.get_id() == record.id
    assert event.get_subject() in {feature, None}
    assert (event.get_subject() is None) == (not feature.isprintable() or not feature)


@PROPERTY
@given(when=st.datetimes(timezones=st.timezones() | st.none()))
def test_a_time_is_one_of_the_event_where_it_names_its_offset(when: Any) -> None:
    seconds = (when.utcoffset().total_seconds() if when.tzinfo else 0) % 60
    record = replace(change("age", 7), ts=when.isoformat())
    headers = record.message_headers()
    assert ("ce_time" in headers) == (when.tzinfo is not None and seconds == 0)


@pytest.mark.parametrize(
    "ts",
    [
        *(None, 1772366400, "yesterday", "2026-03-01"),
        *("2026-03-01T12:00:00", "2026-03-01 12:00:00Z"),
        *("2026-02-30T12:00:00Z", "2026-03-01T25:00:00Z", "2026-03-01T12:00:00+25:00"),
        *("٢026-03-01T12:00:00Z", "2026-03-01T12:00:00Z\n", "2026-03-01T12:00:00.Z"),
    ],
)
def test_what_is_no_time_with_an_offset_is_left_out(ts: Any) -> None:
    assert "ce_time" not in replace(change("age", 7), ts=ts).message_headers()
