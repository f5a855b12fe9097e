"""Serves metrics at a port of their own, where the page cannot be reached."""

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from fluxplain.config import Config
from fluxplain.http.host_check import host_check, is_loopback
from fluxplain.monitor.dashboard.listening import listen


class MetricsServer:
    """Serves ``/metrics``; on this machine only, it refuses requests for other hosts."""

    def __init__(self, config: Config, metrics: CollectorRegistry) -> None:
        self._settings = config.dashboard
        checks = [host_check((), "ask localhost")] if is_loopback(config.dashboard.host) else []
        app = web.Application(middlewares=checks)
        app.router.add_get("/metrics", make_aiohttp_handler(metrics))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def start(self) -> str:
        """Start to listen; return the address, ``http://host:port``."""
        port = self._settings.metrics_port or 0
        return await listen(self._runner, self._settings.host, port, "metrics_port")

    async def stop(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()
