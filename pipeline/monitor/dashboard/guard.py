"""What every answer of the dashboard is subject to: who may ask, and what a browser may do."""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

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


def guarded(names: Collection[str]) -> Middleware:
    """Return a middleware that refuses requests meant for others."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_known(request.headers.get("Host", ""), names):
            raise web.HTTPMisdirectedRequest(
                text="This is not the server that was asked for; dashboard.names may allow it.\n"
            )
        return await handler(request)

    return guard


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Add what restricts the browser, to errors too."""
    for name, value in HEADERS.items():
        response.headers[name] = value


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
