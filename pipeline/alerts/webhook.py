"""Sends alerts to a webhook, with retries."""

import random
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Self

import aiohttp

from fluxplain.alerts.message import headers
from fluxplain.config import AlertSettings
from fluxplain.config.secrets import shown
from fluxplain.schemas.wording import printable

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Shortest and longest pause before the next attempt. The pause doubles each time, and is shortened
at random by up to a half, so that many senders do not retry at once."""

MAX_AGE_S = 900.0
"""Age in seconds from which an alert is outdated and not retried. A change that is already older
when it is read gets one attempt."""

RETRIED = (408, 425, 429)
"""Statuses besides 5xx after which another attempt may succeed: too slow, too early, too many."""

MAX_ANSWER_BYTES = 2_000
"""Bytes of an answer to read, for the log."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one attempt; ``what`` describes it in a sentence without its subject.

    ``again`` is whether another attempt may succeed; the receiver asked to wait ``not_before_s``
    seconds before it.
    """

    delivered: bool
    what: str
    again: bool = False
    not_before_s: float = 0.0


class Webhook:
    """A receiver of alerts.

    An alert and its signature go only to the configured address: redirects are not followed, and
    proxy settings of the environment are ignored. Certificates are verified.
    """

    def __init__(self, settings: AlertSettings) -> None:
        if settings.url is None:
            raise ValueError("there is no url")
        self._url = settings.url
        self._proxy = settings.proxy
        self._secret = settings.signing_secret()
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=settings.timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        self._timeout_s = settings.timeout_s
        self.name = shown(settings.url)

    async def send(self, change_id: str, content: bytes) -> Answer:
        """Make one attempt."""
        signed = headers(change_id, content, self._secret, int(time.time()))
        try:
            async with self._session.post(
                self._url, data=content, headers=signed, proxy=self._proxy, allow_redirects=False
            ) as response:
                start = await _start_of(response)
                if self._secret:
                    start = start.replace(self._secret, b"***")  # some repeat the request
                return interpreted(response.status, response.reason, response.headers, start)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _failed(error, self._timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._session.close()


async def deliver(
    attempt: Callable[[], Awaitable[Answer]],
    *,
    age_s: Callable[[], float],
    pause: Callable[[float], Awaitable[bool]],
    report: Callable[[str], None] = lambda _line: None,
    chance: Callable[[], float] = random.random,
) -> Answer | None:
    """Try until an alert is delivered, or another attempt would not help; return the last answer.

    `age_s` returns the change's age; from :data:`MAX_AGE_S` on there is no other attempt. `report`
    receives a sentence before each pause. `pause` waits and returns whether to continue; if not,
    this returns None. `chance` returns uniform random numbers in [0, 1).
    """
    longest = FIRST_PAUSE_S
    while True:
        answer = await attempt()
        pause_s = max(longest * (1.0 - chance() / 2.0), answer.not_before_s)
        if not answer.again or age_s() + pause_s > MAX_AGE_S:
            return answer
        report(f"{answer.what}; retrying in {pause_s:.1f} s")
        if not await pause(pause_s):
            return None
        longest = min(2.0 * longest, LONGEST_PAUSE_S)


def interpreted(
    status: int, reason: str | None, response_headers: Mapping[str, str], start: bytes
) -> Answer:
    """Interpret an HTTP response.

    Examples
    --------
    >>> interpreted(429, "Too Many Requests", {"Retry-After": "7"}, b"slow down\\n")
    Answer(delivered=False, what='answered 429 (Too Many Requests): slow down', again=True, \
not_before_s=7.0)
    """
    words = printable(" ".join(start.decode(errors="replace").split())[:200])
    what = f"answered {status}" + (f" ({printable(reason)})" if reason else "")
    what += f": {words}" if words else ""
    if 200 <= status < 300:
        return Answer(True, what)
    if 300 <= status < 400:
        return Answer(False, f"{what}; redirects are not followed: set alerts.url to the new URL")
    again = status in RETRIED or status >= 500
    wanted_s = _retry_after_s(response_headers.get("Retry-After", "")) if again else 0.0
    return Answer(False, what, again=again, not_before_s=wanted_s)


async def _start_of(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.content.read(MAX_ANSWER_BYTES)
    except (aiohttp.ClientError, OSError):
        return b""  # the status alone decides whether it was delivered


def _retry_after_s(value: str) -> float:
    """Return the seconds of a Retry-After header, a number or a date; 0 for anything else."""
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return 0.0
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(date.timestamp() - time.time(), 0.0)


def _failed(error: Exception, timeout_s: float) -> Answer:
    """Return why there was no answer; only an unusable URL is not retried."""
    match error:
        case TimeoutError():
            what = f"did not answer within {timeout_s:g} s (alerts.timeout_s)"
        case aiohttp.ClientConnectorDNSError():
            what = "cannot be resolved: the host name is unknown, or no name server answers"
        case aiohttp.ClientConnectorCertificateError():
            what = f"has a certificate that is not trusted: {error.certificate_error}"
        case aiohttp.ClientConnectorError():
            what = f"cannot be reached: {_reason(error.os_error)}"
        case aiohttp.ServerDisconnectedError():
            what = "closed the connection without an answer"
        case aiohttp.ClientHttpProxyError():
            what = f"cannot be reached: the proxy answered {error.status}"
        case ValueError():
            # its message shows the URL, which may be secret
            return Answer(False, "cannot be reached: alerts.url or alerts.proxy is no valid URL")
        case _:
            what = f"gave no readable answer ({type(error).__name__})"
    return Answer(False, what, again=True)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error})"
    return error.strerror or type(error).__name__
