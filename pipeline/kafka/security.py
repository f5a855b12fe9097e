"""Who the clients of Kafka are, and whom they trust: the same settings for all of them.

Secrets come from the environment or from files of their own. They are read when a client is made,
and shown nowhere.
"""

import ssl
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator
from pydantic import model_validator as validates_model

SECRETS = ("password", "client_key_password")
"""Settings that have a ``_file`` beside them."""

SASL_SETTINGS = ("sasl_mechanism", "username", "password", "password_file")
KEY_PASSWORDS = ("client_key_password", "client_key_password_file")
TLS_SETTINGS = ("ca_file", "client_cert_file", "client_key_file", *KEY_PASSWORDS)


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


Protocol = Annotated[
    Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], BeforeValidator(_upper)
]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

PasswordFile = Annotated[
    Path | None, Field(description="A file of one line that holds the password.")
]
CaFile = Annotated[
    Path | None,
    Field(
        description="PEM file of the authorities whose certificates are trusted; by default those "
        "of the system."
    ),
]


class SecuritySettings(BaseModel):
    """Authentication and encryption of every client.

    Errors begin with the key that they are about, since they are those of the whole table.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    security_protocol: Protocol = Field(
        "PLAINTEXT",
        description="Authentication and encryption: `SASL_` is by a password, `SSL` means TLS.",
    )
    sasl_mechanism: Annotated[Mechanism | None, BeforeValidator(_upper)] = Field(
        None, description='How the password is proved. With SASL by default `"SCRAM-SHA-512"`.'
    )
    username: str | None = Field(None, min_length=1, description="Needed for SASL.")
    password: SecretStr | None = Field(None, min_length=1, description="Needed for SASL.")
    password_file: PasswordFile = None
    ca_file: CaFile = None
    client_cert_file: Path | None = Field(
        None, description="PEM file: who the clients are, by TLS."
    )
    client_key_file: Path | None = Field(
        None, description="PEM file of its key; by default that is in `client_cert_file`."
    )
    client_key_password: SecretStr | None = Field(
        None, min_length=1, description="Needed for an encrypted key."
    )
    client_key_password_file: Path | None = Field(
        None, description="A file of one line that holds that password."
    )

    @property
    def uses_sasl(self) -> bool:
        """Whether clients say who they are by a username and a password."""
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted, and the broker has to say who it is."""
        return self.security_protocol.endswith("SSL")

    @property
    def mechanism(self) -> Mechanism:
        """How the password is proved."""
        return self.sasl_mechanism or "SCRAM-SHA-512"

    def get_password(self) -> str:
        """Return the password; files are read anew each time."""
        return self._secret("password") or ""

    def tls_context(self) -> ssl.SSLContext | None:
        """Return what Python's clients encrypt with, or None; the broker's name is verified.

        Raises
        ------
        ValueError
            If a certificate or key cannot be used.
        """
        if not self.uses_tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except ssl.SSLError as error:
            raise ValueError(
                f"ca_file is {str(self.ca_file)!r}, which holds no certificates in PEM format: "
                f"{_reason(error)}"
            ) from None
        if self.client_cert_file:
            self._add_client_certificate(context, self.client_cert_file)
        return context

    def librdkafka_settings(self) -> dict[str, str]:
        """Return the same for librdkafka; there is a password in it."""
        settings: dict[str, str] = {"security.protocol": self.security_protocol}
        if self.uses_sasl:
            settings |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.username or "",
                "sasl.password": self.get_password(),
            }
        if self.uses_tls:
            settings |= {
                "ssl.endpoint.identification.algorithm": "https",
                # librdkafka comes with an OpenSSL of its own, which knows no system's folders
                "ssl.ca.location": str(self.ca_file or "probe"),
            }
        if self.client_cert_file:
            settings |= {
                "ssl.certificate.location": str(self.client_cert_file),
                "ssl.key.location": str(self.client_key_file or self.client_cert_file),
            }
        key_password = self._secret("client_key_password")
        return settings | ({"ssl.key.password": key_password} if key_password else {})

    @field_validator("ca_file", "client_cert_file", "client_key_file")
    @classmethod
    def _can_be_read(cls, path: Path | None) -> Path | None:
        if path:
            try:
                path.read_bytes()
            except OSError as error:
                raise ValueError(f"this file cannot be read: {error.strerror}") from None
        return path

    @validates_model(mode="after")
    def _fits_together(self) -> Self:
        if not self.uses_sasl:
            self._refuse(SASL_SETTINGS, "SASL_PLAINTEXT or SASL_SSL")
        if not self.uses_tls:
            self._refuse(TLS_SETTINGS, "SSL or SASL_SSL")
        for name in SECRETS:
            path = getattr(self, f"{name}_file")
            if path and getattr(self, name):
                raise ValueError(
                    f"{name}_file is {str(path)!r}, but there is also {_variable(name)} in the "
                    "environment: only one of them is allowed"
                )
            self._secret(name)
        if self.uses_sasl:
            self._require_user()
        if not self.client_cert_file:
            for name in ("client_key_file", *KEY_PASSWORDS):
                if getattr(self, name):
                    raise ValueError(f"{name} is set, but client_cert_file is missing")
        self.tls_context()
        return self

    def _refuse(self, names: tuple[str, ...], allowed: str) -> None:
        for name in names:
            if (value := getattr(self, name)) is not None:
                shown = "set" if name in SECRETS else repr(str(value))
                raise ValueError(
                    f"{name} is {shown}, but security_protocol is {self.security_protocol!r}: "
                    f"it must be {allowed} for that"
                )

    def _require_user(self) -> None:
        what = f"is missing: security_protocol {self.security_protocol} needs it"
        if not self.username:
            raise ValueError(f"username {what}")
        if not (self.password or self.password_file):
            raise ValueError(
                f"password {what}. Set the environment variable {_variable('password')}, or "
                "password_file"
            )

    def _add_client_certificate(self, context: ssl.SSLContext, certificate: Path) -> None:
        password = self._secret("client_key_password")

        def ask() -> str:
            # without this OpenSSL would ask whoever sits before the terminal
            return password or _raise("client_key_password is missing: the client's key needs it")

        try:
            context.load_cert_chain(certificate, self.client_key_file, ask)
        except ssl.SSLError as error:
            key = self.client_key_file or certificate
            raise ValueError(
                f"client_cert_file is {str(certificate)!r}, and cannot be used with the key in "
                f"{str(key)!r}: both must be in PEM format and belong together, and the key's "
                f"password must be right: {_reason(error)}"
            ) from None

    def _secret(self, name: str) -> str | None:
        value: SecretStr | None = getattr(self, name)
        path: Path | None = getattr(self, f"{name}_file")
        if value is not None:
            return value.get_secret_value()
        return read_secret(f"{name}_file", path) if path else None


def read_secret(name: str, path: Path) -> str:
    """Return the line of text that a file holds, without the newline at its end.

    Parameters
    ----------
    name
        Of the setting, for the error.
    path
        The file.

    Raises
    ------
    ValueError
        If it cannot be read, or holds something else than one line.
    """
    where = f"{name} is {str(path)!r}, and this file"
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{where} is not UTF-8 text") from None
    if not text:
        raise ValueError(f"{where} is empty")
    if "\n" in text:
        raise ValueError(f"{where} has more than one line")
    return text


def _variable(name: str) -> str:
    return f"FLUXPLAIN_KAFKA__{name.upper()}"


def _reason(error: ssl.SSLError) -> str:
    return error.reason.replace("_", " ").lower() if error.reason else str(error)


def _raise(reason: str) -> NoReturn:
    raise ValueError(reason)
