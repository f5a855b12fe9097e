"""Tokens for SASL OAUTHBEARER, from the endpoint by the client credentials grant (RFC 6749, 4.4).

librdkafka's clients fetch their own. These are for Faust's clients, and to tell why librdkafka gets
none: its reason has neither the endpoint's address nor its words.
"""

import base64
import logging
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode

import orjson

from fluxplain.config import KafkaSettings
from fluxplain.config.secrets import reason
from fluxplain.kafka.bounded_http import handlers, in_thread

log = logging.getLogger("fluxplain.tokens")

REQUEST_S = 5.0
"""Longest duration of a request to the token endpoint, in seconds; it is asked again."""

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
        """Held for moments only, never during a request."""
        self._token: Token | None = None
        self._fetch: Future[Token] | None = None
        """The fetch in progress: there is one at a time."""

    def get(self) -> str:
        """Return a token that has not expired; raise ``TokenError`` if there is none.

        A valid token is returned at once, and replaced in the background when it is time.
        """
        with self._lock:
            token, now = self._token, self._now()
            if token is not None and now < token.replaced_at:
                return token.value
            if self._fetch is None:
                self._fetch = in_thread(self._replace)
            fetch = self._fetch
        if token is not None and now < token.expires_at:
            return token.value
        return fetch.result().value

    def _replace(self) -> Token:
        token = None
        try:
            token = self._fetched()
        except Exception as error:
            left_s = self._left_s()
            if left_s > 0.0:  # else callers wait for the fetch, or the next one does
                log.warning("%s; the last token is valid for %.0f s more", error, left_s)
            raise
        finally:
            with self._lock:
                self._token, self._fetch = token or self._token, None
        return token

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
    opener = urllib.request.build_opener(*handlers(kafka.token_tls_context()), _NoRedirects())
    # in a thread: nothing else bounds the resolution of the name, and the addresses to try
    answer = in_thread(lambda: _exchange(opener, _request(kafka, secret)))
    try:
        status, body = answer.result(REQUEST_S)
    except (OSError, HTTPException) as error:
        raise TokenError(
            f"the token endpoint {kafka.token_url} does not answer: {_cause(error)} "
            "(kafka.token_url; with https also kafka.token_ca_file)"
        ) from None
    if status is not None:
        raise _failure(kafka, status, body, secret)
    return body


def _exchange(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request
) -> tuple[int | None, bytes]:
    """Return the HTTP status of an error, None without one, and the body of the answer."""
    try:
        with opener.open(request, timeout=REQUEST_S) as answer:
            return None, bytes(answer.read(MAX_BYTES))
    except HTTPError as error:
        with error:
            try:
                return error.code, error.read(MAX_BYTES)
            except (OSError, HTTPException):
                return error.code, b""


def _cause(error: OSError | HTTPException) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return "timed out"
    why = reason(cause) if isinstance(cause, OSError) else str(cause)
    return why or type(cause).__name__


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


def _failure(kafka: KafkaSettings, status: int, body: bytes, secret: str) -> TokenError:
    words = _words(body, (secret, _login(kafka, secret)))
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


def _words(body: bytes, secrets: Sequence[str]) -> str:
    """Return the error that the endpoint names (RFC 6749, 5.2), in one line without secrets."""
    try:
        answer = orjson.loads(body)
        said = [answer.get("error"), answer.get("error_description")]
    except (ValueError, AttributeError):
        return ""
    text = ": ".join(each for each in said if isinstance(each, str))
    for secret in secrets:  # before the text is normalised and cut: afterwards it may not match
        text = text.replace(secret, "***")
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
