"""A real receiver that is well, slow, ill, or not there."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.alerts.message import SIGNATURE, TIMESTAMP, sign
from fluxplain.alerts.webhook import MAX_AGE_S, Answer, Webhook, deliver, interpreted
from fluxplain.config import AlertSettings
from fluxplain.config.secrets import shown
from tests.kit.support import PROPERTY

ID, CONTENT = "0123456789ab", b'{"version":1}'

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve with the handler at the address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def attempt(
    handler: Handler,
    url: str = "http://{}/hook",
    tls: ssl.SSLContext | None = None,
    **settings: Any,
) -> Answer:
    """Make one attempt while somebody serves, and return its answer."""

    async def run() -> Answer:
        async with serving(handler, tls) as address:
            return await ask(url.format(address), **settings)

    return asyncio.run(run())


async def ask(url: str, **settings: Any) -> Answer:
    async with Webhook(AlertSettings(url=url, **settings)) as webhook:
        return await webhook.send(ID, CONTENT)


class Recording:
    """Answers always the same, and keeps what it got."""

    def __init__(self, **answer: Any) -> None:
        self.got: list[tuple[web.Request, bytes]] = []
        self._answer = answer

    async def handle(self, request: web.Request) -> web.Response:
        self.got.append((request, await request.read()))
        return web.Response(**self._answer)


async def hanging(_request: web.Request) -> web.Response:
    await asyncio.sleep(60)
    return web.Response()


async def dropping(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


def test_a_receiver_gets_what_it_can_verify() -> None:
    receiver = Recording(text="thank you")
    answer = attempt(receiver.handle, "http://{}/hook?token=1", secret="s" * 16)
    assert answer == Answer(True, "answered 200 (OK): thank you")
    [(request, content)] = receiver.got
    assert (request.method, request.path_qs, content) == ("POST", "/hook?token=1", CONTENT)
    assert request.headers["Idempotency-Key"] == ID
    assert request.headers["Content-Type"] == "application/json"
    at_s = int(request.headers[TIMESTAMP])
    assert request.headers[SIGNATURE] == sign(b"s" * 16, at_s, content)


def test_without_a_secret_there_is_no_signature_and_a_url_may_have_a_password() -> None:
    receiver = Recording(status=204)
    assert attempt(receiver.handle, "http://me:hunter2@{}/").delivered
    [(request, _)] = receiver.got
    assert SIGNATURE not in request.headers
    assert request.headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(("status", "again"), [(403, False), (503, True)])
def test_a_refusal_is_final_and_an_ill_receiver_is_tried_again(status: int, again: bool) -> None:
    answer = attempt(Recording(status=status, text="no\x1b[2J").handle)
    assert (answer.delivered, answer.again, answer.not_before_s) == (False, again, 0.0)
    assert answer.what.startswith(f"answered {status}")
    assert "\x1b" not in answer.what
    answer = attempt(Recording(status=status, headers={"Retry-After": "17"}).handle)
    assert answer.not_before_s == (17.0 if again else 0.0)


def test_a_time_to_retry_may_be_a_date() -> None:
    for at_s, is_later in ((2e9, True), (1e9, False)):
        answer = interpreted(503, None, {"Retry-After": formatdate(at_s, usegmt=True)}, b"")
        assert (answer.not_before_s > 0.0) == is_later


@PROPERTY
@given(
    st.integers(100, 999)
    | st.sampled_from([200, 204, 302, 400, 401, 404, 408, 410, 425, 429, 500]),
    *(st.text(), st.text(), st.binary()),
)
def test_whatever_a_receiver_answers_is_understood(
    status: int, reason: str, retry_after: str, start: bytes
) -> None:
    answer = interpreted(status, reason, {"Retry-After": retry_after}, start)
    assert answer.delivered == (200 <= status < 300)
    assert answer.again == (status in (408, 425, 429) or status >= 500)
    assert answer.not_before_s >= 0.0
    assert answer.what.isprintable()


def test_a_redirect_is_not_followed() -> None:
    receiver = Recording(status=302, headers={"Location": "/elsewhere"})
    answer = attempt(receiver.handle)
    assert (answer.delivered, answer.again) == (False, False)
    assert "redirects are not followed" in answer.what
    assert [request.path for request, _ in receiver.got] == ["/hook"]


def test_a_receiver_that_hangs_or_hangs_up_is_tried_again() -> None:
    late = Answer(False, "did not answer within 0.1 s (alerts.timeout_s)", again=True)
    assert attempt(hanging, timeout_s=0.1) == late
    closed = Answer(False, "closed the connection without an answer", again=True)
    assert attempt(dropping) == closed


def test_an_answer_that_never_ends_counts_by_its_status() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=200)
        await response.prepare(request)
        await asyncio.sleep(60)
        return response

    assert attempt(handler, timeout_s=2.0).delivered


def test_a_receiver_that_is_not_there_is_tried_again() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answer = asyncio.run(ask(f"http://127.0.0.1:{free.getsockname()[1]}/"))
    assert (answer.delivered, answer.again) == (False, True)
    assert answer.what.startswith("cannot be reached: Connect")
    answer = asyncio.run(ask("http://nobody.invalid/", timeout_s=60.0))
    assert answer.again
    assert "cannot be resolved" in answer.what


def test_a_certificate_that_nobody_trusts_is_refused(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=me"
    subprocess.run(
        [*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    answer = attempt(Recording().handle, "https://{}/", context)
    assert not answer.delivered
    assert "has a certificate that is not trusted" in answer.what


def test_a_proxy_is_used_if_it_is_set_and_not_if_the_environment_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receiver = Recording()
    with socket.socket() as nowhere:
        nowhere.bind(("127.0.0.1", 0))
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{nowhere.getsockname()[1]}")
        assert attempt(receiver.handle).delivered

    async def by_proxy() -> Answer:
        async with serving(receiver.handle) as address:
            return await ask("http://hooks.example/hook", proxy=f"http://{address}")

    assert asyncio.run(by_proxy()).delivered
    paths = [str(request.raw_path) for request, _ in receiver.got]
    assert paths == ["/hook", "http://hooks.example/hook"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://u:p@hooks.example/T0/secret?k=1#f", "https://hooks.example"),
        ("http://[::1]:8080/x", "http://[::1]:8080"),
    ],
)
def test_only_where_a_url_leads_is_shown(url: str, name: str) -> None:
    assert shown(url) == name


TAKEN, ILL, REFUSED = Answer(True, "yes"), Answer(False, "ill", again=True), Answer(False, "no")
BUSY = Answer(False, "busy", again=True, not_before_s=30.0)
NEVER = Answer(False, "go away", again=True, not_before_s=1e9)


def delivered(
    *answers: Answer,
    aging_s: float = 0.0,
    chances: Sequence[float] = (0.0,),
    goes_on: bool = True,
) -> tuple[Answer | None, list[float]]:
    """Return how a delivery ends whose attempts have these answers, and the pauses before each."""
    left, pauses = list(answers), list[float]()

    async def attempt() -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    async def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return goes_on

    answer = asyncio.run(
        deliver(
            attempt,
            age_s=lambda: aging_s + sum(pauses),
            pause=pause,
            chance=lambda: chances[len(pauses) % len(chances)],
        )
    )
    return answer, pauses


@pytest.mark.parametrize(
    ("answers", "aging_s", "last", "pauses"),
    [
        # pauses double up to a limit
        ([*[ILL] * 8, TAKEN], 0.0, TAKEN, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
        # what the receiver wants goes before a shorter pause
        ([BUSY, ILL, TAKEN], 0.0, TAKEN, [30.0, 2.0]),
        # refused, or wanted after it is too old
        ([ILL, REFUSED, TAKEN], 0.0, REFUSED, [1.0]),
        ([NEVER], 0.0, NEVER, []),
        # what is late has one attempt
        ([ILL], MAX_AGE_S, ILL, []),
        ([TAKEN], MAX_AGE_S, TAKEN, []),
    ],
)
def test_it_is_tried_until_it_is_delivered_refused_or_too_old(
    answers: list[Answer], aging_s: float, last: Answer, pauses: list[float]
) -> None:
    assert delivered(*answers, aging_s=aging_s) == (last, pauses)


def test_it_is_given_up_when_it_is_too_old() -> None:
    answer, pauses = delivered(ILL)
    assert answer == ILL
    assert MAX_AGE_S - 60.0 < sum(pauses) <= MAX_AGE_S


@PROPERTY
@given(st.lists(st.floats(0.0, 0.999), min_size=1, max_size=15))
def test_chance_takes_at_most_half_of_a_pause(chances: list[float]) -> None:
    _, pauses = delivered(*[ILL] * len(chances), TAKEN, chances=chances)
    assert pauses
    for n, seconds in enumerate(pauses):
        longest = min(2.0**n, 60.0)
        assert longest / 2 <= seconds <= longest


def test_the_end_interrupts_a_pause() -> None:
    assert delivered(ILL, TAKEN, goes_on=False) == (None, [1.0])
