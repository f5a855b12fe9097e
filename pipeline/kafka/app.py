"""Puts a role together: Faust app, stages, checkpoints, producer."""

import asyncio
from typing import Any, NoReturn

import faust

from pipeline.config import Config, Role
from pipeline.kafka.checkpoints import (
    DirectoryCheckpointStore,
    Identity,
    StageFactory,
    make_private_folder,
)
from pipeline.kafka.client import LIBRDKAFKA_LOG, cluster
from pipeline.kafka.outbox import Outbox
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.transport import install
from pipeline.kafka.worker import RoleWorker

SESSION_TIMEOUT_S = 10.0
"""A worker that was killed blocks its group for so long. Heartbeats come from a thread of their
own, so slow steps do not need more."""

TICK_S = 0.1


def create_worker(config: Config, role: Role, make_stage: StageFactory) -> RoleWorker:
    """Return a role's worker, with its Faust app, for a broker that answers.

    Parameters
    ----------
    config
        The settings.
    role
        ``"model"``, ``"explainer"`` or ``"drift"``; each is a consumer group of its own.
    make_stage
        Makes the stage of a partition that has no checkpoint.

    Raises
    ------
    BrokerError
        If no broker answers.
    """
    cluster_id = str(cluster(config).cluster_id)
    app = _faust_app(config, role)
    identity = Identity.of(config.fingerprint(), cluster_id)
    worker = RoleWorker(
        app,
        config,
        role,
        make_stage=make_stage,
        store=DirectoryCheckpointStore(config.checkpoint.directory, identity),
        outbox=Outbox(config, RecordProducer(config)),
    )
    install(app, worker)
    _keep_checkpoints(app, worker)
    return worker


def run(app: faust.App) -> NoReturn:
    """Run a role until SIGTERM or SIGINT; the process ends with this."""
    logging_config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {"format": "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"}
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {"fluxplain": {"level": "INFO"}, LIBRDKAFKA_LOG: {"propagate": True}},
    }
    worker = faust.Worker(
        app, quiet=True, redirect_stdouts=False, logging_config=logging_config, loglevel="WARNING"
    )
    worker.spinner = None  # its escape codes are not for logs
    worker.execute_from_commandline()
    raise SystemExit(0)


def _faust_app(config: Config, role: Role) -> faust.App:
    folder = config.checkpoint.directory / "faust"
    make_private_folder(folder)
    servers = config.kafka.bootstrap_servers.split(",")
    return faust.App(
        config.group(role),
        broker=[f"kafka://{server.strip()}" for server in servers],
        store="memory://",
        datadir=folder,
        web_enabled=False,
        topic_allow_declare=False,  # topics are created by one command
        topic_disable_leader=True,
        stream_wait_empty=False,  # else a revocation hangs on what is not acknowledged
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=SESSION_TIMEOUT_S,
        broker_heartbeat_interval=SESSION_TIMEOUT_S / 3,
        stream_recovery_delay=0.0,
    )


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
