"""The bodies of alerts for receivers that prescribe them: Slack, Teams, PagerDuty.

References
----------
Slack, "Sending messages using incoming webhooks"; Microsoft Teams, "Create incoming webhooks with
Workflows" (an Adaptive Card in a message); PagerDuty, "Events API v2", "Send an alert event".
"""

from typing import Any

import orjson

from fluxplain.alerts.message import body, link_to, text
from fluxplain.config import AlertSettings
from fluxplain.config.alert_settings import Severity
from fluxplain.results.feature_names import REAL_NAMES, FeatureNames
from fluxplain.results.severity import severity
from fluxplain.schemas import Change

PAGERDUTY: dict[Severity, str] = {"low": "info", "medium": "warning", "high": "critical"}
"""Our severity → PagerDuty's."""


def content(
    settings: AlertSettings,
    change: Change,
    names: FeatureNames = REAL_NAMES,
    *,
    is_test: bool = False,
) -> bytes:
    """Return the body of an alert in the configured format, with the ``names`` to show."""
    page, shown = settings.page, names.change(change)
    if settings.format == "json":
        return body(change, page=page, is_test=is_test, names=names)
    line, link = text(shown, is_test=is_test), link_to(page, change)
    if settings.format == "slack":
        return orjson.dumps(
            {"text": f"{line} <{link.replace('&', '&amp;')}|Open>" if link else line}
        )
    plain = text(shown, is_test=is_test, for_chat=False)
    if settings.format == "teams":
        return orjson.dumps(_card(plain, link))
    return orjson.dumps(_event(settings, change, plain, link))


def _card(line: str, link: str | None) -> dict[str, Any]:
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "TextBlock", "text": line, "wrap": True}],
    }
    if link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": link}]
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def _event(settings: AlertSettings, change: Change, line: str, link: str | None) -> dict[str, Any]:
    """Return an event; what became of a change is added to the incident, which people resolve."""
    key = settings.signing_secret() or b""
    event: dict[str, Any] = {
        "event_action": "trigger",
        "dedup_key": (change.incident or change.id)[:255],
        "payload": {
            "summary": line,
            "source": change.stream,
            "severity": PAGERDUTY[severity(change)],
            "component": change.feature,
            "class": change.kind,
            "custom_details": change,
        },
    }
    if link:
        event["links"] = [{"href": link, "text": "Open"}]
    # last: what a receiver repeats of the beginning is logged
    return event | {"routing_key": key.decode()}
