"""Where the schema registry is, and what is written with it."""

import ssl
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic import model_validator as validates_model

from pipeline.kafka.security import CaFile, PasswordFile, read_secret

Output = Literal["none", "json", "avro"]


class RegistrySettings(BaseModel):
    """A schema registry with Confluent's API, for values in its wire format.

    Errors begin with the key that they are about, since they are those of the whole table.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str | None = Field(
        None,
        description="Its address, `https://…` or `http://…`; unset: there is none. Messages in the "
        "wire format are then read, of JSON Schema and Avro; plain JSON as before. It needs the "
        "extra `fluxplain[registry]`.",
    )
    output: Output = Field(
        "none",
        description="How predictions, explanations, changes and dead letters are written: as "
        'plain JSON (`"none"`), or in the wire format. Their schemas are registered at the start.',
    )
    username: str | None = Field(None, min_length=1, description="For HTTP's basic authentication.")
    password: SecretStr | None = Field(None, min_length=1, description="Needed with `username`.")
    password_file: PasswordFile = None
    ca_file: CaFile = None

    @validates_model(mode="after")
    def _fits_together(self) -> Self:
        if self.url is not None:
            _check_url(self.url)
        for name in ("username", "password", "password_file", "ca_file"):
            if self.url is None and getattr(self, name) is not None:
                raise ValueError(f"{name} is set, but url is missing")
        if self.output != "none" and self.url is None:
            raise ValueError(f"output is {self.output!r}, but url is missing")
        if self.password is not None and self.password_file is not None:
            raise ValueError("password and password_file are both set: give one of them")
        password = self.get_password()
        if (self.username is None) != (password is None):
            missing = "username" if self.username is None else "password"
            raise ValueError(f"{missing} is missing: username and password belong together")
        if self.ca_file is not None:
            self.tls_context()
        return self

    def tls_context(self) -> ssl.SSLContext:
        """Return what connections are encrypted with; the registry's name is verified.

        Raises
        ------
        ValueError
            If there are no certificates in ``ca_file``.
        """
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:  # also of OpenSSL
            raise ValueError(
                f"ca_file is {str(self.ca_file)!r}, and holds no certificates in PEM format that "
                f"can be read: {error.strerror or error}"
            ) from None

    def get_password(self) -> str | None:
        """Return the password; a file is read anew each time.

        Raises
        ------
        ValueError
            If the file cannot be read.
        """
        if self.password is not None:
            return self.password.get_secret_value()
        return read_secret("password_file", self.password_file) if self.password_file else None


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port or an IPv6 address
        fits, parts = False, urlsplit("")
    if "@" in parts.netloc:
        raise ValueError("url must not hold a username or password: see username, password_file")
    if not fits or not url.isprintable() or set(" ,?#") & set(url):
        raise ValueError("url must be https://host:port/path or http://host:port/path")
