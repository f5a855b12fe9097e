"""Waits for a broker before a worker starts; meanwhile the process is alive but not ready.

If it ended instead, its supervisor would restart it after growing pauses, and it would import
everything again just when the cluster is back.
"""

import logging
import logging.config
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry, Gauge

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.client import AccessError, client_settings, no_answer
from fluxplain.kafka.client_logs import logging_settings
from fluxplain.kafka.worker.health import Health, HealthServer

log = logging.getLogger("fluxplain.worker")

ATTEMPT_S = 1.0
"""Seconds that one request to the brokers may take; connections stay open in between."""

REMIND_S = 60.0
"""Seconds between two log lines about the wait."""


def wait_for_broker(config: Config, replica: Replica) -> None:
    """Return when a broker answers; until then `/healthz` answers 200, and `/readyz` 503.

    SIGTERM and Ctrl-C end the process with status 0 meanwhile. Raises ``AccessError`` if a broker
    refuses the credentials or TLS fails, ``NotYetError`` or ``ConfigError`` if the health endpoint
    cannot listen.
    """
    problems: deque[KafkaError] = deque(maxlen=10)
    admin = AdminClient({**client_settings(config), "error_cb": problems.append})
    if _answers(admin):
        return
    since = reminded_at = time.monotonic()
    with _ends_on_signals(), ExitStack() as serving:
        serving.callback(_alive(config, replica, _reason(config, problems)).stop)
        while not _answers(admin):
            reason = _reason(config, problems)
            if time.monotonic() - reminded_at >= REMIND_S:
                reminded_at = time.monotonic()
                log.warning("%s: %s; still waiting", replica, reason)
    log.info("%s: a broker answers, after %.0f s", replica, time.monotonic() - since)


@contextmanager
def _ends_on_signals() -> Iterator[None]:
    # process 1 of a container would ignore them
    both = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, lambda *_: sys.exit(0)) for each in both]
    try:
        yield
    finally:
        for each, handler in zip(both, before, strict=True):
            signal.signal(each, handler)


def _answers(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=ATTEMPT_S).brokers)
    except KafkaException:
        admin.poll(0)  # calls error_cb, which gets the reasons
        return False


def _reason(config: Config, problems: Sequence[KafkaError]) -> str:
    """Return why no broker answers; raise ``AccessError`` if waiting would not help."""
    error = no_answer(config, problems)
    if isinstance(error, AccessError):
        raise error
    return str(error)


def _alive(config: Config, replica: Replica, reason: str) -> HealthServer:
    """Log the reason of the wait, and return a server that answers health checks."""
    logging.config.dictConfig(logging_settings())
    registry = CollectorRegistry()
    meaning = "Whether the broker answers the worker (1 or 0)."
    answers = Gauge("fluxplain_broker_answers", meaning, ["role"], registry=registry)
    answers.labels(str(replica)).set(0)
    server = HealthServer(config, lambda: Health(replica, waits_for=reason), registry)
    log.info("%s: health at %s", replica, server.start())
    log.warning("%s: %s; waiting for it", replica, reason)
    return server
