"""The tables about operating the pipeline: checkpoint, health, registry, alerts and dashboard."""

import ssl
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from fluxplain.config.base import Name, Port, Section, variable
from fluxplain.config.secrets import ReadableFile, Secret, Secrets, split_url, trusting
from fluxplain.schemas.change import Kind
from fluxplain.schemas.methods import Watched

KEY_LENGTH = 32
"""Shortest key that signs checkpoints, in characters."""

SECRET_LENGTH = 16
"""Shortest secret, in characters: shorter than for checkpoints, as some receivers prescribe it."""

Hidden = Annotated[str | None, Field(repr=False)]
"""A URL, which may hold a password."""

NOT_EMPTY = Field(min_length=1)


class CheckpointSettings(Secrets):
    """Where and how often workers save their state."""

    store: Literal["directory", "topic"] = "directory"
    """Where to keep state: `"directory"` for one machine, `"topic"` for workers that move between
    machines."""
    directory: Path = Path(".fluxplain/checkpoints")
    """The directory, relative to the worker's working directory."""
    key: Secret = None
    """Key that signs checkpoints, of at least 32 characters. Required for the store `"topic"`."""
    key_file: Path | None = None
    """A file with the key in its only line."""
    out_of_range: Literal["fail", "earliest", "latest"] = "fail"
    """What to do when messages were deleted before a worker read them: `"fail"` ends the worker;
    `"earliest"` and `"latest"` resume with the oldest or the next new message and publish the gap.
    """
    interval_s: Annotated[float, Field(ge=0.05, le=3600.0)] = 5.0
    """Seconds between two checkpoints."""

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if self.signing_key() is None and self.store == "topic":
            raise ValueError(
                "store is 'topic', which needs a key that signs checkpoints, since they are "
                f"unpickled: set the environment variable {variable('checkpoint', 'key')}, or "
                "checkpoint.key_file"
            )
        return self

    @property
    def place(self) -> str:
        """Where state is kept, for messages."""
        return "the topic for them" if self.store == "topic" else str(self.directory.absolute())

    def signing_key(self) -> bytes | None:
        """Return the key that signs checkpoints; None if there is none."""
        key = self.read_secret("key", KEY_LENGTH)
        return None if key is None else key.encode()


class HealthSettings(Section):
    """Each worker's health endpoint and watchdog."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address that `/healthz`, `/readyz` and `/metrics` listen on."""
    port: Port = 0
    """Port to listen on; 0 takes any free one and logs it. `fluxplain up` gives its n-th worker
    `port` + n − 1."""
    stall_s: Annotated[float, Field(ge=1.0, le=86400.0)] = 60.0
    """Seconds without progress, while messages wait and the broker answers, after which a worker
    ends itself. Must be longer than the model ever needs for one observation."""


class RegistrySettings(Secrets):
    """A schema registry with Confluent's API."""

    url: str | None = None
    """The registry's address, `https://…` or `http://…`; by default there is none. With it, workers
    also read JSON Schema and Avro in the wire format, besides plain JSON. Needs
    `fluxplain[registry]`."""
    output: Literal["none", "json", "avro"] = "none"
    """Format of predictions, explanations, changes and dead letters: plain JSON (`"none"`), or the
    wire format with JSON Schema or Avro. Workers register the schemas when they start."""
    username: Annotated[str, Field(min_length=1)] | None = None
    """User for HTTP basic authentication."""
    password: Secret = None
    """The user's password; required with `username`."""
    password_file: Path | None = None
    """A file with the password in its only line."""
    ca_file: ReadableFile | None = None
    """PEM file of the certificate authorities to trust; by default the system's."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.url is None:
            self._refuse_without_url()
        else:
            _check_registry_url(self.url)
        password = self.get_password()
        if (self.username is None) != (password is None):
            missing = "username" if self.username is None else "password"
            raise ValueError(f"{missing} is missing: username and password belong together")
        if self.ca_file is not None:
            self.tls_context()
        return self

    def _refuse_without_url(self) -> None:
        for key in ("username", "password", "password_file", "ca_file"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key} is set, but url is missing")
        if self.output != "none":
            raise ValueError(f"output is {self.output!r}, but url is missing")

    def tls_context(self) -> ssl.SSLContext:
        """Return the TLS context; raises ``ValueError`` if ``ca_file`` holds no certificates."""
        return trusting(self.ca_file)

    def get_password(self) -> str | None:
        """Return the password; its file is read again each time."""
        return self.read_secret("password")


def _check_registry_url(url: str) -> None:
    parts = split_url(url)
    if parts is not None and "@" in parts.netloc:
        raise ValueError("url must not hold a username or password: see username, password_file")
    if parts is None or set(",?#") & set(url):
        raise ValueError("url must be https://host:port/path or http://host:port/path")


class AlertSettings(Secrets):
    """The webhook, and which changes it receives."""

    url: Hidden = None
    """Where to send changes as JSON, `https://…` or `http://…`; by default there are no alerts. If
    the URL holds a token, set it as an environment variable."""
    proxy: Hidden = None
    """An HTTP proxy, `http://…`. `HTTP_PROXY` and similar environment variables are ignored."""
    secret: Secret = None
    """Secret that signs alerts, of at least 16 characters."""
    secret_file: Path | None = None
    """A file with the secret in its only line."""
    timeout_s: Annotated[float, Field(ge=0.1, le=60.0)] = 10.0
    """Seconds to wait for the receiver's response."""
    kinds: Annotated[list[Kind], NOT_EMPTY] = list(get_args(Kind))
    """Send only changes of these kinds."""
    methods: Annotated[list[Watched], NOT_EMPTY] = list(get_args(Watched))
    """Send only changes of these methods, or of the `"loss"`."""
    features: Annotated[list[str], NOT_EMPTY] | None = None
    """Send only changes of these features, groups and pairs; by default all."""
    min_effect: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Smallest |after - before| to send, as a share of the larger of |before| and |after|."""
    quiet_s: Annotated[float, Field(ge=0.0, le=604_800.0)] = 300.0
    """Minimum seconds between two alerts about the same feature or incident."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_url("url", self.url, ("http", "https"))
        _check_url("proxy", self.proxy, ("http",))
        self.signing_secret()
        return self

    def signing_secret(self) -> bytes | None:
        """Return the secret that signs alerts; None if there is none."""
        secret = self.read_secret("secret", SECRET_LENGTH)
        return None if secret is None else secret.encode()


def _check_url(key: str, url: str | None, schemes: tuple[str, ...]) -> None:
    if url is not None and split_url(url, schemes) is None:
        allowed = " or ".join(f"{scheme}://host/path" for scheme in schemes)
        raise ValueError(f"{key} must be {allowed} (what is set is not shown: it may be secret)")


class DashboardSettings(Section):
    """The live web page."""

    enabled: bool = True
    """Whether `fluxplain up` serves the page."""
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on. The page has no authentication: to reach it from other machines, put a
    proxy with authentication in front of it."""
    port: Port = 8777
    """Port to listen on; 0 takes any free one and prints it."""
    names: list[Name] = []
    """Extra host names to accept, for example your proxy's. Requests for any other host are refused
    (protection against DNS rebinding)."""
