"""The table ``[kafka]``."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote_plus

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from fluxplain.config import client_keys
from fluxplain.config.base import variable, wrong
from fluxplain.config.client_keys import ClientKeys
from fluxplain.config.secrets import ReadableFile, Secret, Secrets, reason, split_url, trusting

EMBEDDED = "embedded"
OAUTH = "OAUTHBEARER"

SESSION_TIMEOUT_S = 10.0
"""Session timeout of a worker, and of `fluxplain alerts run`, in seconds."""

STATIC_SESSION_TIMEOUT_S = 45.0
"""Session timeout of a static member in seconds: longer than a restart takes."""

TOKEN_KEYS = ("token_url", "token_scope", "token_extensions", "token_ca_file")
SASL_KEYS = ("sasl_mechanism", "username", "password", "password_file", *TOKEN_KEYS)
CLIENT_KEYS = ("client_key_file", "client_key_password", "client_key_password_file")
TLS_KEYS = ("ca_file", "client_cert_file", *CLIENT_KEYS)


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _addresses(value: str) -> str:
    servers = [each.strip() for each in value.split(",")]
    if not all(servers) or any(each.lower().startswith(("http:", "https:")) for each in servers):
        raise ValueError("must be host:port, of several brokers separated by commas, without http:")
    for each in servers:
        port = each.rpartition(":")[2]
        if value != EMBEDDED and not (port.isascii() and port.isdigit()):
            example = f", as {each}:9092" if ":" not in each else ""
            raise ValueError(f"must be host:port{example}, of several brokers separated by commas")
    return value


Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

ExtensionName = Annotated[str, Field(pattern=r"^[A-Za-z]+$")]
"""As of RFC 7628."""

ExtensionValue = Annotated[str, Field(pattern=r"^[!-+\--~]+$")]
"""Printable and without commas, which separate extensions in librdkafka's settings."""


class KafkaSettings(Secrets):
    """The connection to Kafka: brokers, authentication and encryption of every client."""

    bootstrap_servers: Annotated[str, AfterValidator(_addresses)] = "localhost:9092"
    """Your brokers as `host:port`, comma-separated; or `"embedded"` for the broker that `fluxplain
    up --embedded` or `fluxplain broker` runs on this machine."""
    group_instance_id: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=200)] | None
    ) = None
    """Makes workers static members of their consumer groups, so that a quick restart moves no
    partitions. Each worker of a role needs a different one."""
    session_timeout_s: Annotated[float, Field(ge=6.0, le=1_800.0)] | None = None
    """Seconds without a heartbeat after which a worker, or `fluxplain alerts run`, loses its
    partitions; by default 10, with `group_instance_id` 45. A shorter session hands the partitions
    of a killed worker over sooner, a longer one outlasts longer pauses of the network. The broker
    must allow it (`group.min.session.timeout.ms`, `group.max.session.timeout.ms`)."""
    rebalance_timeout_s: Annotated[float, Field(ge=10.0, le=1_800.0)] = 60.0
    """Seconds that a worker may take to rejoin its group during a rebalance: longer than a record
    and a checkpoint take."""
    delivery_timeout_s: Annotated[float, Field(ge=60.0, le=43_200.0)] = 300.0
    """Seconds without any acknowledgement after which a worker with unacknowledged messages ends:
    longer than the outages of the brokers that it should wait out."""
    security_protocol: Annotated[Protocol, BeforeValidator(_upper)] = "PLAINTEXT"
    """Authentication and encryption: `SASL_…` authenticates by password, `…SSL` encrypts by TLS."""
    sasl_mechanism: Annotated[Mechanism | None, BeforeValidator(_upper)] = None
    """SASL mechanism; with SASL by default `"SCRAM-SHA-512"`. `"OAUTHBEARER"` needs `token_url`."""
    username: Annotated[str, Field(min_length=1)] | None = None
    """The user, of OAUTHBEARER the client id; required with SASL."""
    password: Secret = None
    """The user's password, of OAUTHBEARER the client secret; required with SASL."""
    password_file: Path | None = None
    """A file with the password in its only line."""
    token_url: str | None = None
    """Token endpoint of OAUTHBEARER, `https://…` or `http://…`: clients get their tokens there by
    the client credentials grant."""
    token_scope: Annotated[str, Field(pattern=r"^[!-~]+( [!-~]+)*$")] | None = None
    """Scopes to request with a token, separated by spaces."""
    token_extensions: Mapping[ExtensionName, ExtensionValue] = {}
    """SASL extensions to send with a token, such as `{logicalCluster = "lkc-1"}`."""
    token_ca_file: ReadableFile | None = None
    """PEM file of the certificate authorities to trust at `token_url`; by default the system's."""
    ca_file: ReadableFile | None = None
    """PEM file of the certificate authorities to trust; by default the system's."""
    client_cert_file: ReadableFile | None = None
    """PEM file of the certificate that authenticates clients by TLS."""
    client_key_file: ReadableFile | None = None
    """PEM file of the certificate's key; by default the key is in `client_cert_file`."""
    client_key_password: Secret = None
    """Password of the key, if it is encrypted."""
    client_key_password_file: Path | None = None
    """A file with the key's password in its only line."""
    client: ClientKeys = {}
    """Further settings for librdkafka's clients, by its own names, such as `"client.rack"`; see
    [Settings for the Kafka clients](../README.md#settings-for-the-kafka-clients)."""

    @property
    def session_s(self) -> float:
        """The session timeout in seconds."""
        default = SESSION_TIMEOUT_S if self.group_instance_id is None else STATIC_SESSION_TIMEOUT_S
        return default if self.session_timeout_s is None else self.session_timeout_s

    @property
    def uses_sasl(self) -> bool:
        """Whether clients authenticate by username and password, or by a token."""
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tokens(self) -> bool:
        """Whether clients authenticate by a token."""
        return self.uses_sasl and self.mechanism == OAUTH

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted, and brokers verified."""
        return self.security_protocol.endswith("SSL")

    @property
    def mechanism(self) -> Mechanism:
        """The SASL mechanism."""
        return self.sasl_mechanism or "SCRAM-SHA-512"

    def get_password(self) -> str:
        """Return the password; its file is read again each time."""
        return self.read_secret("password") or ""

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context for Python's clients; None without TLS."""
        if not self.uses_tls:
            return None
        context = trusting(self.ca_file)
        if self.client_cert_file:
            self._load_client_certificate(context, self.client_cert_file)
        return context

    def librdkafka_settings(self) -> dict[str, str]:
        """Return these settings, including passwords, in librdkafka's terms."""
        settings = {
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.mechanism if self.uses_sasl else None,
            **(self._token_settings() if self.uses_tokens else self._password_settings()),
            "ssl.endpoint.identification.algorithm": "https" if self.uses_tls else None,
            # probe: librdkafka's own OpenSSL does not know the system's folders
            "ssl.ca.location": (self.ca_file or "probe") if self.uses_tls else None,
            "ssl.certificate.location": self.client_cert_file,
            "ssl.key.location": self.client_key_file or self.client_cert_file,
            "ssl.key.password": self.read_secret("client_key_password"),
        }
        return {name: str(value) for name, value in settings.items() if value is not None}

    def passed_through(self) -> dict[str, str]:
        """Return `[kafka.client]` in librdkafka's terms."""
        return client_keys.texts(self.client)

    def _password_settings(self) -> dict[str, str | None]:
        return {"sasl.username": self.username, "sasl.password": self.read_secret("password")}

    def _token_settings(self) -> dict[str, Any]:
        extensions = ",".join(f"{name}={text}" for name, text in self.token_extensions.items())
        is_https = (self.token_url or "").startswith("https:")
        return {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
            "sasl.oauthbearer.client.id": self.username,
            "sasl.oauthbearer.client.secret": self.read_secret("password"),
            # encoded: librdkafka puts it into the body of its request as it is
            "sasl.oauthbearer.scope": quote_plus(self.token_scope) if self.token_scope else None,
            "sasl.oauthbearer.extensions": extensions or None,
            "https.ca.location": (self.token_ca_file or "probe") if is_https else None,
        }

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.bootstrap_servers == EMBEDDED and self.security_protocol != "PLAINTEXT":
            open_ = f"bootstrap_servers is {EMBEDDED!r}: the embedded broker has only 'PLAINTEXT'"
            raise wrong("security_protocol", self.security_protocol, open_)
        if not self.uses_sasl:
            self._refuse(SASL_KEYS, "SASL_PLAINTEXT or SASL_SSL")
        if not self.uses_tls:
            self._refuse(TLS_KEYS, "SSL or SASL_SSL")
        password = self.read_secret("password")
        if self.uses_sasl and not (self.username and password):
            missing = "password" if self.username else "username"
            source = f"{variable('kafka', 'password')} or password_file"
            raise ValueError(
                f"{missing} is missing: security_protocol {self.security_protocol} needs username "
                f"and password, which comes from {source}"
            )
        self._check_tokens()
        for key in CLIENT_KEYS:
            if getattr(self, key) and not self.client_cert_file:
                raise ValueError(f"{key} is set, but client_cert_file is missing")
        self.tls_context()
        return self

    def _check_tokens(self) -> None:
        if self.token_url is None and self.uses_tokens:
            raise ValueError(f"token_url is missing: sasl_mechanism {OAUTH!r} needs it")
        if self.token_url is not None:
            _check_token_url(self.token_url)
        for key in TOKEN_KEYS:
            if getattr(self, key) and not self.uses_tokens:
                raise ValueError(
                    f"{key} is set, but sasl_mechanism is {self.mechanism!r}: it must be {OAUTH!r} "
                    "for that"
                )
        if "auth" in self.token_extensions:
            raise ValueError("token_extensions has 'auth', which is the name of the token itself")
        if self.token_ca_file is not None:
            trusting(self.token_ca_file, "token_ca_file")

    def token_tls_context(self) -> ssl.SSLContext:
        """Return the TLS context for requests to `token_url`."""
        return trusting(self.token_ca_file, "token_ca_file")

    def _refuse(self, keys: tuple[str, ...], allowed: str) -> None:
        for key in keys:
            if (value := getattr(self, key)) not in (None, {}):
                shown = "set" if isinstance(value, SecretStr) else repr(str(value))
                raise ValueError(
                    f"{key} is {shown}, but security_protocol is {self.security_protocol!r}: "
                    f"it must be {allowed} for that"
                )

    def _load_client_certificate(self, context: ssl.SSLContext, certificate: Path) -> None:
        password = self.read_secret("client_key_password")

        def ask() -> str:
            # without this callback OpenSSL would prompt at the terminal
            if password is None:
                raise ValueError("client_key_password is missing: the client's key needs it")
            return password

        try:
            context.load_cert_chain(certificate, self.client_key_file, ask)
        except ssl.SSLError as error:
            key = self.client_key_file or certificate
            raise ValueError(
                f"client_cert_file is {str(certificate)!r}, and cannot be used with the key in "
                f"{str(key)!r}: both must be in PEM format and belong together, and the key's "
                f"password must be right: {reason(error)}"
            ) from None


def _check_token_url(url: str) -> None:
    parts = split_url(url)
    if parts is not None and "@" in parts.netloc:
        raise ValueError(
            "token_url must not hold a username or password: see username, password_file"
        )
    if parts is None or parts.fragment:
        raise ValueError("token_url must be https://host/path or http://host/path")
