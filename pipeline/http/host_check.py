"""Rejects requests with an unexpected Host header (DNS-rebinding protection)."""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware


def is_loopback(host: str) -> bool:
    """Return whether a listen address is reachable from this machine only."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_known(host_header: str, names: Collection[str]) -> bool:
    """Return whether a Host header names this server.

    In DNS rebinding, an attacker's page resolves its own name to this machine's address, in order
    to read from this server. IP addresses cannot be rebound, so all of them are accepted.
    """
    try:
        host = urlsplit(f"//{host_header}").hostname
    except ValueError:
        return False
    return host is not None and (host in {"localhost", *names} or _is_address(host))


def host_check(names: Collection[str], remedy: str) -> Middleware:
    """Return a middleware that refuses unknown hosts and sends them a remedy.

    It accepts IP addresses, localhost and ``names``.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_known(request.headers.get("Host", ""), names):
            raise web.HTTPMisdirectedRequest(
                text=f"This server does not answer requests for this host; {remedy}.\n"
            )
        return await handler(request)

    return check


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
