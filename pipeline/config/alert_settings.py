"""The table ``[alerts]``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from fluxplain.config.base import wrong
from fluxplain.config.secrets import Secret, Secrets, split_url
from fluxplain.schemas.change import CauseKind, Kind, NoticeKind, Status
from fluxplain.schemas.methods import Watched

Severity = Literal["low", "medium", "high"]

SECRET_LENGTH = 16
"""Shortest secret, in characters: shorter than for checkpoints, as some receivers prescribe it."""

Hidden = Annotated[str | None, Field(repr=False)]
"""A URL, which may hold a password."""

NOT_EMPTY = Field(min_length=1)


class AlertSettings(Secrets):
    """The webhook, and which changes it receives."""

    url: Hidden = None
    """Where to send changes as JSON, `https://…` or `http://…`; by default there are no alerts. If
    the URL holds a token, set it as an environment variable."""
    format: Literal["json", "slack", "teams", "pagerduty"] = "json"
    """Body of an alert: an object of our own, or what this receiver takes. `"pagerduty"` needs the
    integration key as `secret`."""
    page: str | None = None
    """The dashboard's address, `https://…` or `http://…`, for a link in each alert."""
    proxy: Hidden = None
    """An HTTP proxy, `http://…`. `HTTP_PROXY` and similar environment variables are ignored."""
    secret: Secret = None
    """Secret that signs alerts, of at least 16 characters."""
    secret_file: Path | None = None
    """A file with the secret in its only line."""
    timeout_s: Annotated[float, Field(ge=0.1, le=60.0)] = 10.0
    """Seconds to wait for the receiver's response."""
    kinds: Annotated[list[Kind], NOT_EMPTY] = ["drift", "input", *get_args(NoticeKind)]
    """Send only changes of these kinds; by default, changes of predictions are not."""
    methods: Annotated[list[Watched], NOT_EMPTY] = list(get_args(Watched))
    """Send only changes of these methods, or of the `"loss"`."""
    features: Annotated[list[str], NOT_EMPTY] | None = None
    """Send only changes of these features, groups and pairs; by default all."""
    statuses: Annotated[list[Status], NOT_EMPTY] = ["noticed", "transient", "reverted"]
    """Send changes when they are noticed, and if they do not last."""
    causes: Annotated[list[CauseKind], NOT_EMPTY] = list(get_args(CauseKind))
    """Send only changes with these causes. A cause is known when a change is confirmed, so this
    needs `statuses` without `"noticed"`, as `["confirmed", "unclear"]`. Changes without a cause,
    such as those of the loss, are sent."""
    mute: Mapping[str, Annotated[str, NOT_EMPTY]] = {}
    """Features, groups and pairs whose changes are not sent, with the reason for each."""
    learning: bool = False
    """Whether to send changes while the model is still learning."""
    min_severity: Severity = "high"
    """Send changes that are at least so urgent: `"high"`, `"medium"` or `"low"`; see
    [Alerts](../README.md#alerts)."""
    min_effect: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Smallest `effect_size` of a change to send; `drift.min_effect` applies before it."""
    quiet_s: Annotated[float, Field(ge=0.0, le=604_800.0)] = 300.0
    """Minimum seconds between two alerts about the same feature; an incident gives one alert, and a
    second one if it becomes more urgent."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_url("url", self.url, ("http", "https"))
        _check_url("page", self.page, ("http", "https"))
        _check_url("proxy", self.proxy, ("http",))
        if self.signing_secret() is None and self.format == "pagerduty":
            raise ValueError("secret is not set, but format 'pagerduty' needs the integration key")
        is_late = "noticed" not in self.statuses and {"confirmed", "unclear"} & {*self.statuses}
        if self.chooses_causes and not is_late:
            reason = (
                "a cause is known when a change is confirmed: statuses must name 'confirmed' or "
                "'unclear', and not 'noticed'"
            )
            raise wrong("causes", self.causes, reason)
        if self.chooses_causes:
            self._check_causes_exist()
        return self

    def _check_causes_exist(self) -> None:
        if "drift" not in self.kinds:
            reason = f"kinds is {self.kinds}: only changes of the kind 'drift' have a cause"
            raise wrong("causes", self.causes, reason)
        if {*self.methods} == {"loss"}:
            reason = f"methods is {self.methods}: changes of the loss have no cause"
            raise wrong("causes", self.causes, reason)

    @property
    def chooses_causes(self) -> bool:
        """Whether some causes are left out."""
        return {*self.causes} != {*get_args(CauseKind)}

    def signing_secret(self) -> bytes | None:
        """Return the secret that signs alerts; None if there is none."""
        secret = self.read_secret("secret", SECRET_LENGTH)
        return None if secret is None else secret.encode()


def _check_url(key: str, url: str | None, schemes: tuple[str, ...]) -> None:
    if url is not None and split_url(url, schemes) is None:
        allowed = " or ".join(f"{scheme}://host/path" for scheme in schemes)
        raise ValueError(f"{key} must be {allowed} (what is set is not shown: it may be secret)")
