"""``/healthz``, ``/readyz`` and ``/metrics`` of a worker, for its supervisor."""

import asyncio
import errno
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from fluxplain.config import Config, ConfigError
from fluxplain.config.replica import Replica
from fluxplain.errors import NotYetError
from fluxplain.http.host_check import host_check, is_loopback
from fluxplain.kafka.worker.partition import PartitionProgress


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a worker; ``waits_for`` names what blocks it, ``stalled`` a lack of progress.

    ``lag`` is the number of messages not taken yet.
    """

    replica: Replica
    waits_for: str | None
    is_ready: bool = False
    stalled: str | None = None
    broker_answers: bool = False
    lag: int = 0
    partitions: Sequence[PartitionProgress] = ()


class HealthServer:
    """Answers in its own thread, even during a long step.

    ``/healthz`` is 200 while the worker makes progress, or nothing waits. ``/readyz`` is 200 while
    it has its share of the partitions with their states, and the broker answers. Otherwise they are
    503. The body has the progress of each partition. ``/metrics`` is for Prometheus. If it listens
    on this machine only, it refuses requests for any host name but localhost.
    """

    def __init__(
        self, config: Config, look: Callable[[], Health], metrics: CollectorRegistry
    ) -> None:
        self._config = config
        self._look = look
        self._metrics = metrics
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="health", daemon=True)
        self._runner: web.AppRunner | None = None

    def start(self) -> str:
        """Listen and return the address, ``http://host:port``.

        Raises NotYetError if another process has the port, and ConfigError if it can never be had.
        """
        settings = self._config.health
        try:
            port = self._loop.run_until_complete(self._listen(settings.host, settings.port))
        except OSError as error:
            # it may be free soon: any client's connection can have it while a worker restarts
            failed = NotYetError if error.errno == errno.EADDRINUSE else ConfigError
            raise failed(
                f"health.port is {settings.port} and health.host is {settings.host!r}, but the "
                f"worker cannot listen there: {error.strerror}; health.port = 0 takes any free port"
            ) from None
        self._thread.start()
        return f"http://{settings.host}:{port}"

    def stop(self) -> None:
        """Stop listening and free the port."""
        if self._runner is not None:
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self, host: str, port: int) -> int:
        checks = [host_check((), "ask localhost")] if is_loopback(host) else []
        app = web.Application(middlewares=checks)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", make_aiohttp_handler(self._metrics))
        # do not wait for open connections: a probe keeps none
        runner = self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        return int(runner.addresses[0][1])

    async def _healthz(self, _request: web.Request) -> web.Response:
        health = self._look()
        return self._answer(health, is_well=health.stalled is None)

    async def _readyz(self, _request: web.Request) -> web.Response:
        health = self._look()
        return self._answer(health, is_well=health.is_ready)

    def _answer(self, health: Health, *, is_well: bool) -> web.Response:
        topics = map(self._config.topic, self._config.inputs(health.replica.role))
        body = {
            "role": str(health.replica),
            "topics": list(topics),
            "ready": health.is_ready,
            "stalled": health.stalled,
            "broker_answers": health.broker_answers,
            "waits_for": health.waits_for,
            "lag": health.lag,
            "partitions": [
                {
                    **each.tp._asdict(),
                    "next_offset": each.next_offset,
                    "committed_offset": each.committed_offset,
                    "waits_for": each.waits_for,
                }
                for each in health.partitions
            ],
        }
        status, kind = 200 if is_well else 503, "application/json"
        return web.Response(status=status, body=orjson.dumps(body), content_type=kind)
