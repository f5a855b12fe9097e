"""Requests of the page to note something: who may send them, and what they become."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from fluxplain.config import Config
from fluxplain.config.dashboard_settings import DashboardSettings
from fluxplain.errors import UserError
from fluxplain.http.host_check import is_loopback
from fluxplain.results.note_making import NoteError, about_changes, about_feature, features_of
from fluxplain.results.store import Store
from fluxplain.schemas import Note

Write = Callable[[Sequence[Note]], None]
"""Writes notes to the topic; may raise ``UserError``, and takes as long as the broker."""

TEXTS = ("state", "change", "feature", "stream", "text", "by", "until")
"""Fields of a request, each a text or null."""


def may_write(settings: DashboardSettings) -> bool:
    """Return whether the page may write notes: as set, or if only this machine reaches it.

    Examples
    --------
    >>> may_write(DashboardSettings()), may_write(DashboardSettings(host="0.0.0.0"))
    (True, False)
    >>> may_write(DashboardSettings(host="0.0.0.0", write=True))
    True
    """
    return is_loopback(settings.host) if settings.write is None else settings.write


class NoteRequests:
    """Answers requests for notes, one at a time."""

    def __init__(self, config: Config, store: Store, write: Write | None) -> None:
        self._features = features_of(config)
        self._store = store
        self._write = write
        self._one = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.Response:
        """Write what a request notes; answer 204, or why not."""
        if self._write is None:
            raise web.HTTPForbidden(text="this page may not write notes (dashboard.write)\n")
        _check_origin(request)
        try:
            notes = self._notes(_fields(await request.read()))
        except NoteError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None
        async with self._one:
            try:
                await asyncio.to_thread(self._write, notes)
            except UserError as error:
                raise web.HTTPServiceUnavailable(text=f"{error}\n") from None
        return web.Response(status=204)

    def _notes(self, given: dict[str, str | None]) -> list[Note]:
        undo, text, by = given["state"] in {"open", "unmuted"}, given["text"], given["by"]
        if given["state"] in {"acknowledged", "open"}:
            with self._store.lock:
                changes = self._store.changes_of(given["change"] or "")
            if not changes:
                raise NoteError("there is no such change, or it was evicted")
            return about_changes(changes, text=text, by=by, undo=undo)
        if given["state"] not in {"muted", "unmuted"}:
            raise NoteError("state must be acknowledged, open, muted or unmuted")
        if given["stream"] is not None and given["stream"] not in self._store.streams:
            raise NoteError(f"there is no stream {given['stream']!r}")
        scope = {"stream": given["stream"], "until": given["until"]}
        feature = given["feature"] or ""
        return [about_feature(feature, self._features, text=text, by=by, undo=undo, **scope)]


def _check_origin(request: web.Request) -> None:
    """Refuse what a page of somebody else could send (cross-site request forgery).

    A browser sends JSON to another host only if that host agrees, which this server never does;
    and it names the page's own host in Origin.
    """
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="the body must be application/json\n")
    try:
        origin = urlsplit(request.headers.get("Origin", "")).netloc
    except ValueError:
        origin = ""
    if not origin or origin != request.headers.get("Host"):
        raise web.HTTPForbidden(text="only this page may write notes: Origin is not its own\n")


def _fields(body: bytes) -> dict[str, str | None]:
    """Return the fields of a request, null for those it lacks."""
    try:
        given: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict) or not given.keys() <= set(TEXTS):
        raise NoteError(f"the body must be an object of {', '.join(TEXTS)}")
    if not all(each is None or isinstance(each, str) for each in given.values()):
        raise NoteError(f"{', '.join(TEXTS)} must be texts")
    return {name: given.get(name) for name in TEXTS}
