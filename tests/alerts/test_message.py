"""What an alert says, and its signature."""

import hashlib
import hmac
from dataclasses import replace

import orjson
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.alerts.message import (
    MAX_TEXT,
    SIGNATURE,
    TIMESTAMP,
    body,
    headers,
    sample,
    sign,
    text,
)
from fluxplain.schemas import Change
from tests.kit.records import change
from tests.kit.support import PROPERTY

SECRETS = st.binary(min_size=20, max_size=20)
BODIES = st.binary(max_size=60)
TIMES = st.integers(0, 2**40)


@PROPERTY
@given(SECRETS, TIMES, BODIES, SECRETS, TIMES, BODIES)
def test_a_signature_fits_only_its_secret_time_and_body(
    secret: bytes, at_s: int, content: bytes, secret_2: bytes, at_s_2: int, content_2: bytes
) -> None:
    one = sign(secret, at_s, content)
    # as a receiver computes it, from what it got
    expected = hmac.new(secret, f"{at_s}.".encode() + content, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(one, f"sha256={expected}")
    for other in [(secret_2, at_s, content), (secret, at_s_2, content), (secret, at_s, content_2)]:
        assert (sign(*other) == one) == (other == (secret, at_s, content))


def test_time_and_body_cannot_be_shifted_into_each_other() -> None:
    secret = b"s" * 16
    assert sign(secret, 17, b"0.{}") != sign(secret, 170, b"{}")


def test_headers_name_the_change_and_sign_it() -> None:
    signed = headers("0123456789ab", b"{}", b"s" * 16, 1_700_000_000)
    assert signed["Idempotency-Key"] == "0123456789ab"
    assert signed["Content-Type"] == "application/json"
    assert signed[TIMESTAMP] == "1700000000"
    assert signed[SIGNATURE] == sign(b"s" * 16, 1_700_000_000, b"{}")
    assert SIGNATURE not in headers("0123456789ab", b"{}", None, 1_700_000_000)


def test_the_body_has_the_whole_change_and_a_line_for_people() -> None:
    event = replace(change("age", 2627), incident="features-0@2610")
    alert = orjson.loads(body(event))
    assert list(alert) == ["version", "test", "text", "severity", "link", "change"]
    assert (alert["version"], alert["test"]) == (1, False)
    assert Change.validated(alert["change"]) == event
    assert alert["text"] == (
        "fluxplain (high), features-0 at 2,627: ipfi of age rose from 0.1 to 0.4 "
        f"(change {event.id}, incident features-0@2610)"
    )


def test_an_alert_leads_to_the_change_on_the_dashboard() -> None:
    event = replace(change("age", 2627), stream="a&b-0")
    alert = orjson.loads(body(event, page="https://flux.example/"))
    assert alert["link"] == f"https://flux.example/#stream=a%26b-0&change={event.id}"
    assert alert["text"].endswith(f" {alert['link']}")
    assert "a&b-0 at 2,627" in alert["text"]
    assert orjson.loads(body(event))["link"] is None


def test_a_test_says_that_it_is_one_and_each_has_an_id_of_its_own() -> None:
    one, other = sample("features-0", "age"), sample("features-0", "age")
    assert one.id != other.id
    alert = orjson.loads(body(one, is_test=True))
    assert alert["test"] is True
    assert alert["text"].startswith("TEST: ")


def test_plain_text_calls_nobody_either_where_a_chat_shows_it() -> None:
    shown = orjson.loads(body(change("<!channel> <@U1> @here a<b", 1)))["text"]
    assert "<!" not in shown
    assert "<@" not in shown
    assert "@here" not in shown
    assert "a<b" in shown


def test_what_stands_on_a_topic_can_neither_call_a_channel_or_anybody_nor_fill_it() -> None:
    shown = text(change("<!channel> @here s@7 \x1b[2J" + "&" * 5000, 1))
    assert "<" not in shown
    assert "&lt;!channel&gt;" in shown
    assert "@here" not in shown
    assert "s@7" in shown
    assert "\x1b" not in shown
    assert len(shown.replace("&amp;", "&")) <= MAX_TEXT + 10
