"""Where alerts go, and which changes are worth one."""

from pathlib import Path
from typing import Annotated, Self, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic import model_validator as validates_model

from pipeline.kafka.security import read_secret
from schemas.change import Kind, Watched

SECRET_LENGTH = 16
"""Fewest characters of the secret that signs alerts. It is shorter than the key of checkpoints,
since some receivers prescribe their own."""

Some = Field(min_length=1)


class AlertSettings(BaseModel):
    """The webhook, and the filter before it.

    Errors about the URLs begin with the key and do not show the value: there may be a password in
    it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str | None = Field(
        None,
        repr=False,
        description="Where changes are sent as JSON, `https://…` or `http://…`; unset: there are "
        "no alerts. Better in the environment if a token is in it.",
    )
    proxy: str | None = Field(
        None,
        repr=False,
        description="An HTTP proxy, `http://…`; those of the environment are not used.",
    )
    secret: SecretStr | None = Field(
        None, description=f"Signs alerts: at least {SECRET_LENGTH} characters."
    )
    secret_file: Path | None = Field(None, description="A file that holds the secret.")
    timeout_s: float = Field(
        10.0, ge=0.1, le=60.0, description="Seconds that the receiver has for its answer."
    )
    kinds: Annotated[list[Kind], Some] = Field(
        list(get_args(Kind)), description="Only changes of these kinds."
    )
    methods: Annotated[list[Watched], Some] = Field(
        list(get_args(Watched)), description="Only changes of these methods; the loss is one."
    )
    features: Annotated[list[str], Some] | None = Field(
        None, description="Only changes of these features, groups and pairs; by default all."
    )
    min_effect: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="Least |after - before| of a change, as a share of the larger of |before| and "
        "|after|.",
    )
    quiet_s: float = Field(
        300.0,
        ge=0.0,
        le=604_800.0,
        description="Seconds after an alert without another one of the same feature or incident.",
    )

    @validates_model(mode="after")
    def _urls_fit(self) -> Self:
        if self.url is not None:
            _check_url("url", self.url, ("http", "https"))
        if self.proxy is not None:
            _check_url("proxy", self.proxy, ("http",))
        return self

    @validates_model(mode="after")
    def _secret_fits(self) -> Self:
        if self.secret is not None and self.secret_file is not None:
            raise ValueError("secret and secret_file are both set: give one of them")
        self.signing_secret()
        return self

    def signing_secret(self) -> bytes | None:
        """Return the secret that signs alerts; None if there is none.

        Raises
        ------
        ValueError
            If the secret is too short, or its file cannot be read.
        """
        if self.secret is not None:
            name, text = "secret", self.secret.get_secret_value()
        elif self.secret_file is not None:
            name = f"secret_file {self.secret_file}"
            text = read_secret("secret_file", self.secret_file)
        else:
            return None
        if len(text) < SECRET_LENGTH:
            raise ValueError(
                f"{name} has {len(text)} characters, but must have at least {SECRET_LENGTH}: "
                "`openssl rand -hex 32` makes one"
            )
        return text.encode()


def shown(url: str) -> str:
    """Return a URL without what may be a secret: only scheme, host and port.

    Examples
    --------
    >>> shown("https://user:password@hooks.example:8443/services/T0/token?key=1")
    'https://hooks.example:8443'
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}"


def _check_url(key: str, url: str, schemes: tuple[str, ...]) -> None:
    allowed = " or ".join(f"{scheme}://host/path" for scheme in schemes)
    try:
        parts = urlsplit(url)
        fits = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port or an IPv6 address
        fits = False
    if not fits or not url.isprintable() or " " in url:
        raise ValueError(f"{key} must be {allowed} (what is set is not shown: it may be secret)")
