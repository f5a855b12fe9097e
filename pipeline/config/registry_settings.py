"""The table ``[registry]``."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fluxplain.config.secrets import ReadableFile, Secret, Secrets, split_url, trusting


class RegistrySettings(Secrets):
    """A schema registry with Confluent's API."""

    url: str | None = None
    """The registry's address, `https://…` or `http://…`; by default there is none. With it, workers
    also read JSON Schema and Avro in the wire format, besides plain JSON. Needs
    `fluxplain[registry]`."""
    output: Literal["none", "json", "avro"] = "none"
    """Format of predictions, reasons, explanations, changes and dead letters: plain JSON
    (`"none"`), or the wire format with JSON Schema or Avro. Workers register the schemas when they
    start."""
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
            _check_url(self.url)
        password = self.get_password()
        if (self.username is None) != (password is None):
            missing = "username" if self.username is None else "password"
            raise ValueError(f"{missing} is missing: username and password belong together")
        if self.ca_file is not None:
            trusting(self.ca_file)
        return self

    def _refuse_without_url(self) -> None:
        for key in ("username", "password", "password_file", "ca_file"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key} is set, but url is missing")
        if self.output != "none":
            raise ValueError(f"output is {self.output!r}, but url is missing")

    def get_password(self) -> str | None:
        """Return the password; its file is read again each time."""
        return self.read_secret("password")


def _check_url(url: str) -> None:
    parts = split_url(url)
    if parts is not None and "@" in parts.netloc:
        raise ValueError("url must not hold a username or password: see username, password_file")
    if parts is None or set(",?#") & set(url):
        raise ValueError("url must be https://host:port/path or http://host:port/path")
