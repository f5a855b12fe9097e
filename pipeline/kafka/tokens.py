"""Tokens for SASL OAUTHBEARER, from the endpoint by the client credentials grant (RFC 6749, 4.4).

librdkafka's clients fetch their own. These are for Faust's clients, and to tell why librdkafka gets
none: its reason has neither the endpoint's address nor its words.
"""

import base64
import logging
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode

import orjson

from fluxplain.config import KafkaSettings
from fluxplain.config.secrets import reason

log = logging.getLogger("fluxplain.tokens")

REQUEST_S = 5.0
"""Seconds to wait for the token endpoint; it is asked again."""

PAUSES_S = (0.2, 1.0)
"""Seconds before each further attempt when the endpoint does not answer, or fails."""

USED_SHARE = 0.8
"""Share of a token's lifetime after which a new one is fetched, as by librdkafka. Until the old one
expires, an endpoint that does not answer delays nothing."""

MAX_BYTES = 1_000_000
"""Longest answer that is read, in bytes."""

PASSING = {408, 425, 429}
"""HTTP statuses besides 5xx after which a retry may help: too slow, too early, too many."""


class TokenError(Exception):
    """The endpoint gives no token; the message names it and the remedy. A retry may help."""


class TokenRefusedError(TokenError):
    """The endpoint refuses this client, or gives tokens that cannot be used."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, with the Unix times of its expiry and of its replacement, in seconds."""

    value: str
    expires_at: float
    replaced_at: float


class Tokens:
    """Fetches tokens, and reuses each for most of its lifetime; for several threads."""

    def __init__(self, kafka: KafkaSettings, now: Callable[[], float] = time.time) -> None:
        self._kafka = kafka
        self._now = now
        self._lock = threading.Lock()
        self._token: Token | None = None

    def get(self) -> str:
        """Return a token that has not expired; raise ``TokenError`` if there is none."""
        with self._lock:
            now = self._now()
            if self._token is None or now >= self._token.replaced_at:
                try:
                    self._token = self._fetched()
                except TokenError as error:
                    if self._token is None or now >= self._token.expires_at:
                        raise
                    log.warning(
                        "%s; the last token is valid for %.0f s more", error, self._left_s()
                    )
            return self._token.value

    def _left_s(self) -> float:
        return 0.0 if self._token is None else self._token.expires_at - self._now()

    def _fetched(self) -> Token:
        for pause_s in PAUSES_S:
            try:
                return fetch_token(self._kafka, self._now)
            except TokenRefusedError:
                raise
            except TokenError:
                time.sleep(pause_s)
        return fetch_token(self._kafka, self._now)


_shared: dict[tuple[str | None, ...], Tokens] = {}
_shared_lock = threading.Lock()


def shared_tokens(kafka: KafkaSettings) -> Tokens:
    """Return the process's tokens for these settings: its clients use the same ones."""
    key = (kafka.token_url, kafka.username, kafka.token_scope)
    with _shared_lock:
        return _shared.setdefault(key, Tokens(kafka))


def fetch_token(kafka: KafkaSettings, now: Callable[[], float] = time.time) -> Token:
    """Request a token once; raise ``TokenError``."""
    asked_at = now()
    answer = _answer(kafka)
    try:
        token = orjson.loads(answer)["access_token"]
        expires_at = _expiry(token)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TokenRefusedError(
            f"the token endpoint {kafka.token_url} gives no token that can be used: "
            f"{_missing(error)} (kafka.token_url)"
        ) from None
    if expires_at <= now():
        raise TokenRefusedError(
            f"the token endpoint {kafka.token_url} gives tokens that have expired already: is this "
            "machine's clock right?"
        )
    return Token(token, expires_at, asked_at + USED_SHARE * (expires_at - asked_at))


def _answer(kafka: KafkaSettings) -> bytes:
    """Return the body of the endpoint's answer."""
    try:
        secret = kafka.get_password()
    except ValueError as error:  # the file is gone
        raise TokenError(f"kafka.{error}") from None
    request = _request(kafka, secret)
    handlers = urllib.request.HTTPSHandler(context=kafka.token_tls_context()), _NoRedirects()
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=REQUEST_S) as answer:
            return bytes(answer.read(MAX_BYTES))
    except HTTPError as error:
        with error:
            raise _failure(kafka, error, secret) from None
    except (OSError, HTTPException) as error:
        cause = error.reason if isinstance(error, URLError) else error
        why = reason(cause) if isinstance(cause, OSError) else str(cause)
        raise TokenError(
            f"the token endpoint {kafka.token_url} does not answer: {why or type(cause).__name__} "
            "(kafka.token_url; with https also kafka.token_ca_file)"
        ) from None


def _login(kafka: KafkaSettings, secret: str) -> str:
    # not URL-encoded first, as RFC 6749 asks for: librdkafka does not either
    return base64.b64encode(f"{kafka.username}:{secret}".encode()).decode()


def _request(kafka: KafkaSettings, secret: str) -> urllib.request.Request:
    body = {"grant_type": "client_credentials"}
    if kafka.token_scope:
        body["scope"] = kafka.token_scope
    login = f"Basic {_login(kafka, secret)}"
    headers = {"Authorization": login, "Accept": "application/json"}
    return urllib.request.Request(str(kafka.token_url), urlencode(body).encode(), headers)  # noqa: S310  checked: http or https


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: the secret goes only to the configured address."""

    def redirect_request(self, *_args: object, **_kwargs: object) -> None:
        return None


def _failure(kafka: KafkaSettings, error: HTTPError, secret: str) -> TokenError:
    status, words = error.code, _words(error)
    for hidden in (secret, _login(kafka, secret)):
        words = words.replace(hidden, "***")
    said = f"{words} (HTTP status {status})" if words else f"HTTP status {status}"
    if status >= 500 or status in PASSING:
        return TokenError(f"the token endpoint {kafka.token_url} fails: {said}")
    if status in {400, 401, 403}:
        return TokenRefusedError(
            f"the token endpoint {kafka.token_url} refuses the client {kafka.username!r}: {said} "
            "(kafka.username is the client id; its secret is in kafka.password_file, or the "
            "environment variable FLUXPLAIN_KAFKA__PASSWORD; kafka.token_scope)"
        )
    return TokenRefusedError(
        f"the token endpoint {kafka.token_url} gives no token: {said} (kafka.token_url)"
    )


def _words(error: HTTPError) -> str:
    """Return the error that the endpoint names (RFC 6749, 5.2), in one line."""
    try:
        answer = orjson.loads(error.read(MAX_BYTES))
        said = [answer.get("error"), answer.get("error_description")]
    except (OSError, ValueError, AttributeError, HTTPException):
        return ""
    text = ": ".join(each for each in said if isinstance(each, str))
    return " ".join(text.split())[:300]


def _expiry(token: str) -> float:
    """Return the expiry of a JSON Web Token; Kafka and librdkafka need `exp` and `sub`."""
    payload = token.split(".")[1]
    claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    if not isinstance(claims["sub"], str):
        raise KeyError("sub")
    return float(claims["exp"])


def _missing(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no {error.args[0]}"
    return "it must be a JSON object with access_token, a JSON Web Token with exp and sub"
