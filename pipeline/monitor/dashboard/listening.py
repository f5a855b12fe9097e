"""Listens on the addresses of ``[dashboard]``."""

from aiohttp import web

from fluxplain.config import ConfigError


async def listen(runner: web.AppRunner, host: str, port: int, key: str) -> str:
    """Start to listen; return the address, ``http://host:port``.

    Raises ConfigError, which names ``dashboard.<key>``, if nobody can listen there.
    """
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise ConfigError(
            f"dashboard.{key} is {port} and dashboard.host {host!r}, but cannot listen there: "
            f"{error.strerror}; port 0 takes any free one"
        ) from None
    return f"http://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}"
