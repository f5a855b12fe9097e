"""Serves the dashboard in one process, independent of the workers; it writes only notes."""

import asyncio
import gzip
import hashlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeVar, cast, get_args

from aiohttp import web
from prometheus_client import CollectorRegistry

from fluxplain.config import Config
from fluxplain.http.host_check import host_check, is_loopback
from fluxplain.monitor.dashboard.listening import listen
from fluxplain.monitor.dashboard.metrics_server import MetricsServer
from fluxplain.monitor.dashboard.note_requests import NoteRequests, Write, may_write
from fluxplain.monitor.dashboard.views import Choice, Noting, View
from fluxplain.results.live_feed import Feed
from fluxplain.results.notes_topic import write_notes
from fluxplain.results.store import Store
from fluxplain.schemas.methods import Method

N = TypeVar("N", int, float)

UPDATE_S = 0.5
"""Seconds between two updates of a page."""

KEEP_ALIVE_S = 10.0
"""Longest time without an update, in seconds, so that pages detect a lost connection."""

MAX_LISTENERS = 50
"""Most pages that receive updates at the same time."""

MAX_BODY = 16 * 1024
"""Bytes of the largest request: notes are short."""

MAX_REQUESTED = 200
"""Most features in one request for series."""

PAGE = Path(__file__).with_name("page")

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""Suffix → content type; files with other suffixes, such as licences, are not served."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers that restrict the browser, in every response including errors."""


async def run(
    config: Config, report: Callable[[str], None], metrics: CollectorRegistry | None
) -> None:
    """Serve the page, and metrics if given, until SIGTERM or Ctrl-C; report the addresses."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, ended.set)
    store = Store(config.topic(config.source))
    write = partial(write_notes, config) if may_write(config.dashboard) else None
    server = Server(config, store, write, noting="commands" if write is None else "here")
    feed = Feed(config, store, partial(loop.call_soon_threadsafe, ended.set))
    metrics_server = None if metrics is None else MetricsServer(config, metrics)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop)
        report(f"Dashboard: {await server.start()}")
        if metrics_server is not None:
            stack.push_async_callback(metrics_server.stop)
            report(f"Metrics: {await metrics_server.start()}/metrics")
        if not is_loopback(config.dashboard.host):
            what = "read it" if write is None else "read it, acknowledge and mute"
            report(
                f"dashboard.host is {config.dashboard.host!r}: the page has no authentication, so "
                f"anyone who can reach it can {what}. Put a proxy with authentication in front of "
                "it."
            )
        feed.start()
        stack.push_async_callback(asyncio.to_thread, feed.stop)
        await ended.wait()
    if feed.error is not None:
        raise feed.error


@contextmanager
def serving(config: Config, store: Store) -> Iterator[str]:
    """Serve the page of a store that this process fills, in a thread; yield its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="dashboard", daemon=True)
    thread.start()
    server = Server(config, store)
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


class Server:
    """The dashboard's HTTP server.

    ``write`` writes notes; ``noting`` is how the page offers that, None without a topic.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        write: Write | None = None,
        *,
        noting: Noting | None = None,
    ) -> None:
        self._settings = config.dashboard
        self._store = store
        self._view = View(config, store, noting)
        self._files = _page_files()
        self._listeners = 0
        self._closing = asyncio.Event()
        check = host_check(config.dashboard.names, "dashboard.names may allow it")
        app = web.Application(middlewares=[check], client_max_size=MAX_BODY)
        app.on_response_prepare.append(_add_headers)
        app.router.add_get("/status.json", self._status)
        app.router.add_get("/api/overview", self._overview)
        app.router.add_get("/api/streams", self._streams)
        app.router.add_get("/api/series", self._series)
        app.router.add_get("/api/heat", self._heat)
        app.router.add_get("/api/curves", self._curves)
        app.router.add_get("/api/changes/{id}", self._change)
        app.router.add_get("/api/reasons", self._recent_reasons)
        app.router.add_get(r"/api/reasons/{stream}/{seq:\d{1,16}}", self._reasons)
        app.router.add_get("/api/events", self._events)
        app.router.add_post("/api/notes", NoteRequests(config, store, write).answer)
        for path in self._files:
            app.router.add_get(path, self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> str:
        """Start to listen; return the address, ``http://host:port``."""
        return await listen(self._runner, self._settings.host, self._settings.port, "port")

    async def stop(self) -> None:
        """Disconnect all pages and stop listening."""
        self._closing.set()
        await self._runner.cleanup()

    async def _file(self, request: web.Request) -> web.Response:
        file = self._files[request.path]
        headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == file.tag:
            return web.Response(status=304, headers=headers)
        headers["Content-Type"] = file.content_type
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=file.zipped, headers={**headers, "Content-Encoding": "gzip"})
        return web.Response(body=file.body, headers=headers)

    async def _status(self, _request: web.Request) -> web.Response:
        return _json(self._view.status())

    async def _overview(self, request: web.Request) -> web.Response:
        return _json(self._view.overview(_choice(request)))

    async def _streams(self, request: web.Request) -> web.Response:
        return _json(self._view.streams(_choice(request).method))

    async def _series(self, request: web.Request) -> web.Response:
        features = request.query.getall("feature", [])
        if len(features) > MAX_REQUESTED:
            raise web.HTTPBadRequest(text=f"feature may be given at most {MAX_REQUESTED} times\n")
        first, last = (_number(request, name, int) for name in ("from", "to"))
        return _json(self._view.series(_choice(request), features, first, last))

    async def _heat(self, request: web.Request) -> web.Response:
        return _json(self._view.heat(_choice(request)))

    async def _curves(self, request: web.Request) -> web.Response:
        stream, feature = (request.query.get(name, "") for name in ("stream", "feature"))
        found = self._view.curves(stream, feature, _number(request, "alpha", float))
        if found is None:
            raise web.HTTPNotFound(text="there is no curve of this feature\n")
        return _json(found)

    async def _change(self, request: web.Request) -> web.Response:
        story = self._view.story(request.match_info["id"])
        if story is None:
            raise web.HTTPNotFound(text="there is no such change, or it was evicted\n")
        return _json(story)

    async def _recent_reasons(self, request: web.Request) -> web.Response:
        return _json(self._view.reasons(request.query.get("stream", "")))

    async def _reasons(self, request: web.Request) -> web.Response:
        stream, seq = request.match_info["stream"], int(request.match_info["seq"])
        found = self._view.reasons_of(stream, seq)
        if found is None:
            raise web.HTTPNotFound(
                text="there are no reasons for this output, or they were evicted\n"
            )
        return _json(found)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send updates as server-sent events until the page is closed."""
        choice, since = _choice(request), _number(request, "since", int) or 0
        if self._listeners >= MAX_LISTENERS:
            raise web.HTTPServiceUnavailable(text=f"{MAX_LISTENERS} pages are open already\n")
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        self._listeners += 1
        try:
            await response.prepare(request)
            quiet_s, sent = KEEP_ALIVE_S, b""
            while not self._closing.is_set():
                since, news = self._view.news(choice, since)
                quiet_s += UPDATE_S
                if news != sent or quiet_s >= KEEP_ALIVE_S:
                    await response.write(b"data: " + news + b"\n\n")
                    quiet_s, sent = 0.0, news
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), UPDATE_S)
        except ConnectionResetError:
            pass  # the page was closed
        finally:
            self._listeners -= 1
        return response


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _json(body: bytes) -> web.Response:
    response = web.Response(
        body=body, content_type="application/json", headers={"Cache-Control": "no-store"}
    )
    response.enable_compression()
    return response


def _choice(request: web.Request) -> Choice:
    method = request.query.get("method")
    if method is not None and method not in get_args(Method):
        raise web.HTTPBadRequest(text=f"method must be one of {', '.join(get_args(Method))}\n")
    return Choice(
        request.query.get("stream"), cast(Method | None, method), _number(request, "alpha", float)
    )


def _number(request: web.Request, name: str, kind: Callable[[str], N]) -> N | None:
    text = request.query.get(name)
    try:
        return None if text is None else kind(text)
    except ValueError:
        raise web.HTTPBadRequest(text=f"{name} must be a number\n") from None


@dataclass(frozen=True, slots=True)
class _File:
    """A file's content, plain and gzipped, and its ETag."""

    content_type: str
    body: bytes
    zipped: bytes
    tag: str

    @classmethod
    def read(cls, path: Path) -> "_File":
        body = path.read_bytes()
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        return cls(TYPES[path.suffix], body, gzip.compress(body, mtime=0), tag)


@cache
def _page_files() -> dict[str, _File]:
    """Return URL path → file, held in memory, so that no request can reach another path."""
    paths = [path for path in sorted(PAGE.rglob("*")) if path.suffix in TYPES]
    files = {f"/{path.relative_to(PAGE).as_posix()}": _File.read(path) for path in paths}
    files["/"] = files.pop("/index.html")
    return files
