"""What receivers get that prescribe a body."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from fluxplain.alerts.formats import content
from fluxplain.config import AlertSettings
from fluxplain.schemas import Change
from tests.kit.records import change

PAGE = "https://flux.example"

EVENT = replace(change("a<b> @here", 7), incident="features-0@5", effect_size=0.5)


def sent(kind: str, event: Change = EVENT, **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(
        content(AlertSettings(format=kind, page=PAGE, **settings), event)
    )
    return found


def test_slack_gets_one_text_without_markup_of_records_and_with_a_link() -> None:
    alert = sent("slack")
    assert alert.keys() == {"text"}
    assert "a&lt;b&gt;" in alert["text"]
    assert "@here" not in alert["text"]
    link = f"{PAGE}/#stream=features-0&amp;change={EVENT.id}"
    assert alert["text"].endswith(f" <{link}|Open>")


def test_teams_gets_a_card() -> None:
    [attachment] = sent("teams")["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert "a<b> @here" in card["body"][0]["text"]
    assert card["actions"][0]["url"].startswith(PAGE)


@pytest.mark.parametrize("status", ["noticed", "transient", "reverted"])
def test_pagerduty_gets_an_event_of_the_incident_whatever_becomes_of_the_change(
    status: Any,
) -> None:
    event = sent("pagerduty", replace(EVENT, status=status), secret="k" * 32)
    assert event["routing_key"] == "k" * 32
    assert list(event)[-1] == "routing_key"
    assert event["event_action"] == "trigger"
    assert event["dedup_key"] == EVENT.incident
    assert event["payload"]["severity"] == "critical"
    assert Change.validated(event["payload"]["custom_details"]).id == EVENT.id
    assert event["links"][0]["href"].startswith(PAGE)


def test_pagerduty_needs_its_key() -> None:
    with pytest.raises(ValueError, match="integration key"):
        AlertSettings(format="pagerduty")
