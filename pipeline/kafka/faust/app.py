"""Builds and runs a role: Faust app, worker, checkpoints, producer."""

import asyncio
import gc
import logging
import logging.config
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import faust
from faust.auth import Credentials, OAuthCredentials, SASLCredentials, SSLCredentials
from faust.utils import venusian

from fluxplain.config import Config, KafkaSettings
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints.checkpoint import StageFactory
from fluxplain.kafka.checkpoints.configured import fingerprint_of, identity_of, open_store
from fluxplain.kafka.checkpoints.directory import make_private_folder
from fluxplain.kafka.client import cluster
from fluxplain.kafka.client_logs import logging_settings
from fluxplain.kafka.exits import EXIT_FAILED, end
from fluxplain.kafka.faust.connections import CLIENT_ID, TokenProvider
from fluxplain.kafka.faust.consumer_metrics import FaustMonitor
from fluxplain.kafka.faust.delivery import Together
from fluxplain.kafka.faust.transport import FaustDriver, install
from fluxplain.kafka.metrics.partitions import StatusCollector
from fluxplain.kafka.metrics.worker_metrics import WorkerMetrics
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.registry.codec import check_registry, open_decoder, open_encoder
from fluxplain.kafka.timeouts import group_settings
from fluxplain.kafka.topics.create import feature_partitions
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.health import HealthServer
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.kafka.worker.watchdog import Watchdog
from fluxplain.kafka.worker.worker import RoleWorker

log = logging.getLogger("fluxplain.worker")

Agent = TypeVar("Agent", bound=Callable[..., Any])

READ_AHEAD = 200
"""Largest number of messages of one fetch."""

DELIVERIES_AHEAD = 16
"""Largest number of deliveries that wait for the agent."""

SHUTDOWN_S = 9.0
"""Seconds that a shutdown may take: Kubernetes and systemd wait longer before they kill."""

TICK_S = 0.1

GC_THRESHOLDS = (50_000, 20, 20)
"""Arguments of :func:`gc.set_threshold`: records leave little cyclic garbage. With Python's
defaults, the collector takes a twentieth of the model role's time."""

# Faust looks up the source file of each agent and task, for a search of modules that is not used
# here: it took half of the processor time of a worker's start
venusian.attach = lambda *_args, **_kwargs: None


@dataclass(frozen=True, slots=True)
class FaustWorker:
    """A role's worker, with the Faust app that drives it."""

    app: faust.App
    worker: RoleWorker

    def agent(self, loop: Agent) -> Agent:
        """Make a loop the Faust agent of the role's topics.

        It gets one :class:`~fluxplain.kafka.faust.delivery.Delivery` at a time, of raw bytes, so
        that stages also see bad records.
        """
        config, replica = self.worker.context.config, self.worker.context.replica
        topics = map(config.topic, config.inputs(replica.role))
        source = self.app.topic(*topics, key_serializer="raw", value_serializer="raw")
        self.app.agent(source, name=replica.role, concurrency=1)(loop)
        return loop


def create_worker(config: Config, replica: Replica, make_stage: StageFactory) -> FaustWorker:
    """Return the worker of a role, or of a shard, for a broker that answers; it has no agent yet.

    Raises ``BrokerError`` (also of the schema registry), ``RegisteredError`` if the pipeline is
    registered with other settings, and ``ConfigError`` if the broker cannot keep checkpoints.
    """
    metadata = cluster(config)
    check_registry(config)
    register = Register(config)
    number = register.enter(fingerprint_of(config, identity_of(config, metadata)))
    registered = register.read(number)
    app = _faust_app(config, replica)
    metrics = WorkerMetrics(config, replica)
    app.monitor = FaustMonitor(str(replica), metrics)
    producer, partitions = RecordProducer(config), feature_partitions(config)
    context = Context(
        config,
        replica,
        FaustDriver(app),
        open_store(config, metadata, identity_of(config, metadata, registered)),
        Outbox(config, producer, partitions, metrics.published.observe, open_encoder(config)),
        register,
        registered.number,
        registered.versions_number,
        metrics,
    )
    worker = RoleWorker(context, make_stage, open_decoder(config))
    install(app, worker)
    _keep_checkpoints(app, worker)
    return FaustWorker(app, worker)


def run(role: FaustWorker) -> NoReturn:
    """Run a role until SIGTERM or SIGINT; the process ends with this.

    Raises ``NotYetError`` or ``ConfigError`` if the health endpoint cannot listen.
    """
    logging_config = logging_settings()
    logging.config.dictConfig(logging_config)
    worker, context = role.worker, role.worker.context
    watchdog, registry = Watchdog(worker.status), context.metrics.registry
    registry.register(StatusCollector(worker.status, watchdog))
    address = HealthServer(context.config, watchdog.health, registry).start()
    log.info("%s: health at %s", context.replica, address)
    watchdog.start()
    # freeze imported objects: collecting them would block records for 0.1 s; as little of them is
    # garbage, they are not collected before either
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    logs = {"redirect_stdouts": False, "logging_config": logging_config, "loglevel": "WARNING"}
    process = _Process(role.app, quiet=True, **logs)
    process.worker = worker
    process.spinner = None  # its escape codes do not belong in logs
    process.execute_from_commandline()
    raise SystemExit(0)


class _Process(faust.Worker):
    """Faust's worker process, with a time limit for the shutdown."""

    worker: RoleWorker

    def _schedule_shutdown(self, signal: signal.Signals) -> None:
        threading.Thread(target=self._end_in_time, name="shutdown", daemon=True).start()
        super()._schedule_shutdown(signal)

    def _end_in_time(self) -> None:
        time.sleep(SHUTDOWN_S)
        if self.worker.is_finished:
            log.warning("everything is committed, but leaving the group took too long: ending")
            end(0)
        log.critical(
            "the last work could not be committed within %.0f s: the next start repeats it",
            SHUTDOWN_S,
        )
        end(EXIT_FAILED)


def _faust_app(config: Config, replica: Replica) -> faust.App:
    folder = config.checkpoint.directory / "faust"
    try:
        make_private_folder(folder)
    except OSError as error:
        key = f"checkpoint.directory is '{config.checkpoint.directory}'"
        error.filename = f"{key}, but no folder can be made there"
        raise
    servers = config.kafka.bootstrap_servers.split(",")
    client_id = config.kafka.passed_through().get(CLIENT_ID)
    named = {} if client_id is None else {"broker_client_id": client_id}
    return faust.App(
        config.group(replica),
        broker=[f"kafka://{server.strip()}" for server in servers],
        broker_credentials=credentials(config.kafka),
        store="memory://",
        datadir=folder,
        web_enabled=False,
        topic_allow_declare=False,  # topics are created by one command
        topic_disable_leader=True,
        stream_wait_empty=False,  # otherwise a revocation waits for unacknowledged messages
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=config.group_instance_id(replica),
        stream_recovery_delay=0.0,
        # a message waits for all messages read before it, also of other partitions
        stream_buffer_maxsize=DELIVERIES_AHEAD,
        broker_max_poll_records=READ_AHEAD,
        ConsumerScheduler=Together,
        **named,
        **group_settings(config.kafka),
    )


def credentials(kafka: KafkaSettings) -> Credentials | None:
    """Return the security settings for Faust's clients."""
    context = kafka.tls_context()
    if kafka.uses_tokens:
        return OAuthCredentials(oauth_cb=TokenProvider(kafka), ssl_context=context)
    if kafka.uses_sasl:
        return SASLCredentials(
            username=kafka.username,
            password=kafka.get_password(),
            mechanism=kafka.mechanism,
            ssl_context=context,
        )
    return SSLCredentials(context) if context else None


def _keep_checkpoints(app: faust.App, worker: RoleWorker) -> None:
    @app.task  # type: ignore[untyped-decorator]
    async def tick() -> None:
        while not app.should_stop:
            await asyncio.sleep(TICK_S)
            await worker.tick()

    async def shut_down(*_args: Any, **_kwargs: Any) -> None:
        await worker.shut_down()

    # Faust keeps weak references to signal handlers
    app.on_before_shutdown.connect(shut_down, weak=False)
