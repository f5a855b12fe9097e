"""Runs the dashboard until it is told to end."""

import asyncio
import signal
from collections.abc import Callable

from pipeline.config import Config
from pipeline.guard import is_loopback
from pipeline.monitor.dashboard.feed import Feed
from pipeline.monitor.dashboard.server import Server
from pipeline.monitor.dashboard.state import State


async def run(config: Config, tell: Callable[[str], None]) -> None:
    """Serve the page until SIGTERM or Ctrl-C.

    Parameters
    ----------
    config
        The settings, for a broker that answers and has the topics.
    tell
        Called with a sentence for people.

    Raises
    ------
    ConfigError
        If the address cannot be listened on.
    BrokerError
        If the broker refuses to go on.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, ended.set)
    state = State(config.topic(config.source))
    server = Server(config, state)

    def failed() -> None:
        loop.call_soon_threadsafe(ended.set)

    feed = Feed(config, state, failed)
    tell(f"Dashboard: {await server.start()}")
    if not is_loopback(config.dashboard.host):
        tell(
            f"dashboard.host is {config.dashboard.host!r}: whoever reaches it sees the dashboard, "
            "there is no authentication. Put a proxy before it that has."
        )
    feed.start()
    try:
        await ended.wait()
    finally:
        await server.stop()
        await asyncio.to_thread(feed.stop)
    if feed.error is not None:
        raise feed.error
