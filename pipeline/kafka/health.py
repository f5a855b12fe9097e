"""``/healthz``, ``/readyz`` and ``/metrics`` of a worker, for whoever supervises it."""

import asyncio
import threading
from typing import Any

import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from pipeline.config import Config, ConfigError
from pipeline.guard import guarded, is_loopback
from pipeline.kafka.watchdog import Watchdog


class HealthServer:
    """Answers from a thread of its own, also while a step takes long.

    ``/healthz`` is 200 while the worker goes on, or nothing waits; ``/readyz`` is 200 while it
    has its share of the partitions, their state is loaded, and the broker answers. Else both are
    503. The body says how far each partition is. ``/metrics`` is for Prometheus. Where only this
    machine is to reach it, requests by any other name than localhost are refused.

    Parameters
    ----------
    config
        Where to listen.
    watchdog
        What knows how the worker is.
    metrics
        What the worker tells Prometheus.
    """

    def __init__(self, config: Config, watchdog: Watchdog, metrics: CollectorRegistry) -> None:
        self._settings = config.health
        self._watchdog = watchdog
        self._metrics = metrics

    def start(self) -> str:
        """Listen and return the address, ``http://host:port``.

        Raises
        ------
        ConfigError
            If the address cannot be listened on.
        """
        loop = asyncio.new_event_loop()
        try:
            port = loop.run_until_complete(self._listen())
        except OSError as error:
            raise ConfigError(
                f"health.port is {self._settings.port} and health.host {self._settings.host!r}: "
                f"cannot listen there: {error.strerror}; 0 takes any free port"
            ) from None
        threading.Thread(target=loop.run_forever, name="health", daemon=True).start()
        return f"http://{self._settings.host}:{port}"

    async def _listen(self) -> int:
        guards = [guarded((), "ask localhost")] if is_loopback(self._settings.host) else []
        app = web.Application(middlewares=guards)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", make_aiohttp_handler(self._metrics))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, self._settings.host, self._settings.port).start()
        return int(runner.addresses[0][1])

    async def _healthz(self, _request: web.Request) -> web.Response:
        return self._answer(self._watchdog.progress.stalled() is None)

    async def _readyz(self, _request: web.Request) -> web.Response:
        return self._answer(self._watchdog.is_ready)

    def _answer(self, well: bool) -> web.Response:
        progress = self._watchdog.progress
        body: dict[str, Any] = {
            "role": str(self._watchdog.part),
            "topics": self._watchdog.topics,
            "ready": self._watchdog.is_ready,
            "stalled": progress.stalled(),
            "broker_answers": progress.broker_answers,
            "waits_for": self._watchdog.waits_for,
            "lag": progress.lag,
            "partitions": [
                {
                    "topic": standing.topic,
                    "partition": standing.partition,
                    "next_offset": standing.next_offset,
                    "committed_offset": standing.committed_offset,
                }
                for standing in self._watchdog.standings
            ],
        }
        return web.Response(
            status=200 if well else 503,
            body=orjson.dumps(body),
            content_type="application/json",
        )
