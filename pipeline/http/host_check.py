"""Rejects requests with an unexpected Host header (DNS-rebinding protection)."""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on is reachable from this machine only."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_known(host_header: str, names: Collection[str]) -> bool:
    """Return whether a Host header names this server.

    In DNS rebinding, a foreign page resolves its own name to this machine's address, to read what
    is here. Nobody can do that with an address: all are accepted.
    """
    try:
        host = urlsplit(f"//{host_header}").hostname
    except ValueError:
        return False
    return host is not None and (host in {"localhost", *names} or _is_address(host))


def guarded(names: Collection[str], remedy: str) -> Middleware:
    """Return a middleware that accepts addresses, localhost and some names; else sends a remedy."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_known(request.headers.get("Host", ""), names):
            raise web.HTTPMisdirectedRequest(
                text=f"This is not the server that was asked for; {remedy}.\n"
            )
        return await handler(request)

    return guard


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
