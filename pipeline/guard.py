"""Whose requests a server of ours answers: those that were meant for it."""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address to listen on.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_known(host_header: str, names: Collection[str]) -> bool:
    """Return whether a request was meant for this server.

    Against DNS rebinding, in which a page of somebody else gives its own name this machine's
    address, and then may read what is here. An address cannot be given away, so all are known.

    Examples
    --------
    >>> [is_known(host, {"stats.example.com"}) for host in
    ...     ("localhost:8777", "[::1]:8777", "10.0.0.7", "stats.example.com", "evil.example.com")]
    [True, True, True, True, False]
    """
    try:
        host = urlsplit(f"//{host_header}").hostname
    except ValueError:
        return False
    return host is not None and (host in {"localhost", *names} or _is_address(host))


def guarded(names: Collection[str], remedy: str) -> Middleware:
    """Return a middleware that refuses requests meant for others.

    Parameters
    ----------
    names
        By which the server is known, beside addresses and localhost.
    remedy
        What it tells who is refused.
    """

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
