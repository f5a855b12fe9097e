"""``/healthz``, ``/readyz`` and ``/metrics`` of a worker, for whoever supervises it."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from pipeline.config import Config, ConfigError
from pipeline.guard import guarded, is_loopback
from pipeline.kafka.stalls import Progress
from pipeline.kafka.worker import Standing
from pipeline.parts import Part


class Subject(Protocol):
    """The worker that health checks ask about: its watchdog, or one that has not started yet."""

    @property
    def part(self) -> Part:
        """Which role, or which shard of it."""

    @property
    def topics(self) -> Sequence[str]:
        """Full names of the topics it reads."""

    @property
    def is_ready(self) -> bool:
        """Whether it has its share of the partitions, and the broker answers."""

    @property
    def waits_for(self) -> str | None:
        """What it cannot go on without, and why that is not there."""

    @property
    def progress(self) -> Progress:
        """How long nothing has moved."""

    @property
    def standings(self) -> Sequence[Standing]:
        """How far it is with each of its partitions."""


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
    subject
        What knows how the worker is.
    metrics
        What the worker tells Prometheus.
    """

    def __init__(self, config: Config, subject: Subject, metrics: CollectorRegistry) -> None:
        self._settings = config.health
        self._subject = subject
        self._metrics = metrics
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="health", daemon=True)
        self._runner: web.AppRunner | None = None

    def start(self) -> str:
        """Listen and return the address, ``http://host:port``.

        Raises
        ------
        ConfigError
            If the address cannot be listened on.
        """
        try:
            port = self._loop.run_until_complete(self._listen())
        except OSError as error:
            raise ConfigError(
                f"health.port is {self._settings.port} and health.host {self._settings.host!r}: "
                f"cannot listen there: {error.strerror}; 0 takes any free port"
            ) from None
        self._thread.start()
        return f"http://{self._settings.host}:{port}"

    def stop(self) -> None:
        """Stop listening, so that another server can have the port."""
        if self._runner is not None:
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> int:
        guards = [guarded((), "ask localhost")] if is_loopback(self._settings.host) else []
        app = web.Application(middlewares=guards)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", make_aiohttp_handler(self._metrics))
        # without a pause for connections that stay open: a probe keeps none
        runner = self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, self._settings.host, self._settings.port).start()
        return int(runner.addresses[0][1])

    async def _healthz(self, _request: web.Request) -> web.Response:
        return self._answer(self._subject.progress.stalled() is None)

    async def _readyz(self, _request: web.Request) -> web.Response:
        return self._answer(self._subject.is_ready)

    def _answer(self, well: bool) -> web.Response:
        progress = self._subject.progress
        body: dict[str, Any] = {
            "role": str(self._subject.part),
            "topics": self._subject.topics,
            "ready": self._subject.is_ready,
            "stalled": progress.stalled(),
            "broker_answers": progress.broker_answers,
            "waits_for": self._subject.waits_for,
            "lag": progress.lag,
            "partitions": [
                {
                    "topic": standing.topic,
                    "partition": standing.partition,
                    "next_offset": standing.next_offset,
                    "committed_offset": standing.committed_offset,
                    "waits_for": standing.waits_for,
                }
                for standing in self._subject.standings
            ],
        }
        return web.Response(
            status=200 if well else 503,
            body=orjson.dumps(body),
            content_type="application/json",
        )
