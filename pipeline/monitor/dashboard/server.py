"""Serves the page and what it shows: read only, from one process, without the pipeline's help."""

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast, get_args

from aiohttp import web

from pipeline.config import Config, ConfigError
from pipeline.guard import guarded
from pipeline.monitor.dashboard.choice import Selection
from pipeline.monitor.dashboard.files import page_files
from pipeline.monitor.dashboard.headers import add_headers
from pipeline.monitor.dashboard.state import State
from pipeline.monitor.dashboard.views import View
from schemas.explanation import Method

N = TypeVar("N", int, float)

UPDATE_S = 0.5
"""Between two updates of a page."""

KEEP_ALIVE_S = 10.0
"""After so long without news something is sent, so that a lost connection shows."""

MAX_LISTENERS = 50
"""Pages that are kept up to date at the same time."""

MAX_ASKED = 200
"""Features of which the courses may be asked for at once."""


class Server:
    """The dashboard's HTTP server.

    Parameters
    ----------
    config
        The settings: where to listen, and units.
    state
        What to show.
    """

    def __init__(self, config: Config, state: State) -> None:
        self._settings = config.dashboard
        self._state = state
        self._view = View(config, state)
        self._files = page_files()
        self._listeners = 0
        self._closing = asyncio.Event()
        guard = guarded(config.dashboard.names, "dashboard.names may allow it")
        app = web.Application(middlewares=[guard])
        app.on_response_prepare.append(add_headers)
        app.router.add_get("/api/overview", self._overview)
        app.router.add_get("/api/streams", self._streams)
        app.router.add_get("/api/series", self._series)
        app.router.add_get("/api/curves", self._curves)
        app.router.add_get("/api/changes/{id}", self._change)
        app.router.add_get("/api/events", self._events)
        for path in self._files:
            app.router.add_get(path, self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> str:
        """Listen and return the address, ``http://host:port``.

        Raises
        ------
        ConfigError
            If the address cannot be listened on.
        """
        host, port = self._settings.host, self._settings.port
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigError(
                f"dashboard.port is {port} and dashboard.host {host!r}: cannot listen there: "
                f"{error.strerror}; 0 takes any free port"
            ) from None
        return f"http://{f'[{host}]' if ':' in host else host}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Let go of every page."""
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

    async def _overview(self, request: web.Request) -> web.Response:
        return _json(self._view.overview(_selection(request)))

    async def _streams(self, request: web.Request) -> web.Response:
        return _json(self._view.streams(_selection(request).method))

    async def _series(self, request: web.Request) -> web.Response:
        features = request.query.getall("feature", [])
        if len(features) > MAX_ASKED:
            raise web.HTTPBadRequest(text=f"feature may be given {MAX_ASKED} times at most\n")
        first, last = (_number(request, name, int) for name in ("from", "to"))
        return _json(self._view.series(_selection(request), features, first, last))

    async def _curves(self, request: web.Request) -> web.Response:
        stream, feature = (request.query.get(name, "") for name in ("stream", "feature"))
        found = self._view.curves(stream, feature, _number(request, "alpha", float))
        if found is None:
            raise web.HTTPNotFound(text="there is no curve of this feature\n")
        return _json(found)

    async def _change(self, request: web.Request) -> web.Response:
        with self._state.lock:
            story = self._state.stories.get(request.match_info["id"])
        if story is None:
            raise web.HTTPNotFound(text="no such change is kept\n")
        return _json(story)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send what is new, as server-sent events, until the page goes away."""
        selection, since = _selection(request), _number(request, "since", int) or 0
        if self._listeners >= MAX_LISTENERS:
            raise web.HTTPServiceUnavailable(text=f"{MAX_LISTENERS} pages are open already\n")
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        self._listeners += 1
        try:
            await response.prepare(request)
            quiet_s, told = KEEP_ALIVE_S, b""
            while not self._closing.is_set():
                since, news = self._view.news(selection, since)
                quiet_s += UPDATE_S
                if news != told or quiet_s >= KEEP_ALIVE_S:
                    await response.write(b"data: " + news + b"\n\n")
                    quiet_s, told = 0.0, news
                await _unless(self._closing, UPDATE_S)
        except ConnectionResetError:
            pass  # the page was closed
        finally:
            self._listeners -= 1
        return response


def _json(body: bytes) -> web.Response:
    response = web.Response(
        body=body, content_type="application/json", headers={"Cache-Control": "no-store"}
    )
    response.enable_compression()
    return response


def _selection(request: web.Request) -> Selection:
    method = request.query.get("method")
    if method is not None and method not in get_args(Method):
        raise web.HTTPBadRequest(text=f"method must be one of {', '.join(get_args(Method))}\n")
    return Selection(
        request.query.get("stream"), cast(Method | None, method), _number(request, "alpha", float)
    )


def _number(request: web.Request, name: str, kind: Callable[[str], N]) -> N | None:
    text = request.query.get(name)
    try:
        return None if text is None else kind(text)
    except ValueError:
        raise web.HTTPBadRequest(text=f"{name} must be a number\n") from None


async def _unless(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but not longer than so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
