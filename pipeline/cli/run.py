"""Commands that run the pipeline: one worker, all roles, the embedded broker, the demonstration."""

import tempfile
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from fluxplain.cli.common import (
    DEFAULT_CONFIG,
    RUN,
    ConfigPath,
    app,
    console,
    load,
    ready,
    say,
    status_for_supervisor,
)
from fluxplain.cli.interruption import ended_by_ctrl_c, until_interrupted
from fluxplain.cli.supervisor import Supervisor, command_of, end_with_supervisor
from fluxplain.config import EMBEDDED, ENV_PREFIX, Config, ConfigError
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.embedded import ADDRESS_FILE, EmbeddedBroker, resolve, workers_environment
from fluxplain.kafka.topics import create_topics


@app.command(rich_help_panel=RUN)
def worker(
    role: Annotated[
        Role,
        typer.Option(
            help="The role to run: model, explainer or drift; also join, if label.topic or "
            "control.topic is true."
        ),
    ],
    config: ConfigPath = DEFAULT_CONFIG,
    shard: Annotated[
        int | None,
        typer.Option(min=0, help="The shard of the model role, from 0, if model.shards > 1."),
    ] = None,
) -> None:
    """Run one worker of a role.

    It runs until SIGTERM or Ctrl-C. While no broker answers, the worker waits: it is alive but not
    ready, and logs that.

    Each role is a consumer group. Run at most as many workers of a role as its input topic has
    partitions; more would be idle. If `model.shards` is above 1, each shard of the model role is a
    group: run at least one worker of each.
    """
    with ended_by_ctrl_c():
        # Faust is slow to import, and only workers need it
        from fluxplain.agents import factory  # noqa: PLC0415
        from fluxplain.kafka.faust.app import run  # noqa: PLC0415
        from fluxplain.kafka.worker.broker_wait import wait_for_broker  # noqa: PLC0415

        create = factory(role)
    settings = resolve(load(config, role))
    replica = _replica(settings, role, shard)
    end_with_supervisor()
    with status_for_supervisor():
        wait_for_broker(settings, replica)
        run(create(ready(settings), replica))


@app.command(rich_help_panel=RUN)
def up(
    config: ConfigPath = DEFAULT_CONFIG,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Also run a broker, in this process, in memory.")
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Workers of each role. They share the partitions of its input: topics.partitions, "
            "or topics.features_partitions for model and drift.",
        ),
    ] = 1,
) -> None:
    """Run all roles on this machine.

    Workers that die are restarted, and Ctrl-C stops all of them. The dashboard runs too, unless
    `dashboard.enabled` is false; its address is printed.
    """
    settings = load(config)
    with until_interrupted():
        if not embedded:
            with status_for_supervisor():
                ready(settings)
            _supervise(config, settings, {}, workers)
        if settings.kafka.bootstrap_servers != EMBEDDED:
            raise ConfigError(
                f"kafka.bootstrap_servers is {settings.kafka.bootstrap_servers!r}, but --embedded "
                f"runs a broker here: set it to {EMBEDDED!r}, in {config} or by "
                f"FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS={EMBEDDED}, so that replay and watch find it"
            )
        with EmbeddedBroker() as broker, tempfile.TemporaryDirectory(prefix="fluxplain-") as state:
            create_topics(broker.settings_for(settings))
            broker.publish_address()
            _say_embedded(broker)
            _supervise(config, settings, workers_environment(broker, Path(state)), workers)
    say("Stopped.")


@app.command(rich_help_panel=RUN)
def broker() -> None:
    """Run only the embedded broker, until Ctrl-C."""
    with until_interrupted(), EmbeddedBroker() as embedded:
        embedded.publish_address()
        _say_embedded(embedded)
        while True:
            time.sleep(1.0)


@app.command(rich_help_panel=RUN)
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the figure and the workers' log.")
    ] = Path("demo-output"),
    records: Annotated[
        int,
        typer.Option(
            min=1000, help="Number of observations; the concept changes after half of them."
        ),
    ] = 6000,
    stay: Annotated[
        bool, typer.Option("--stay", help="Keep the dashboard running at the end, until Ctrl-C.")
    ] = False,
) -> None:
    """Show the pipeline on a drifting stream.

    The whole pipeline runs on the embedded broker. Halfway through the stream, its concept changes.
    The dashboard runs too: open the address that is printed.
    """
    from fluxplain.cli.demo import run_demo  # noqa: PLC0415  loads the plotting library

    with until_interrupted():
        run_demo(out, records, console, stay=stay)


def _replica(settings: Config, role: Role, shard: int | None) -> Replica:
    replicas = settings.replicas(role)
    if not replicas:
        raise ConfigError("label.topic and control.topic are false: there is nothing to join")
    if len(replicas) > 1 and shard is None:
        raise ConfigError(
            f"model.shards is {len(replicas)}: select one by --shard 0 to {len(replicas) - 1}"
        )
    if (shard or 0) >= len(replicas):
        raise ConfigError(f"--shard is {shard}, but the role {role} has {len(replicas)}, from 0 on")
    return replicas[shard or 0]


def _supervise(
    config: Path, settings: Config, environment: dict[str, str], workers: int
) -> NoReturn:
    with Supervisor(
        config,
        settings.replicas(),
        environment=environment,
        environment_of=lambda name: _own_environment(settings, name),
        report=say,
    ) as supervisor:
        supervisor.start(workers)
        if settings.alerts.url is not None:
            supervisor.add_service("alerts", command_of("alerts", "run", config_path=config))
        if settings.dashboard.enabled:
            supervisor.add_service("dashboard", command_of("dashboard", config_path=config))
        pids = ", ".join(f"{name} ({pid})" for name, pid in supervisor.running().items())
        say(f"Running: {pids}. Ctrl-C stops them.")
        while True:
            supervisor.check()
            time.sleep(0.5)


def _own_environment(settings: Config, name: str) -> dict[str, str]:
    """Return one worker's environment variables, for resources that workers cannot share."""
    own = {}
    replica, _, number = name.rpartition("-")
    if settings.health.port:
        replicas = [str(each) for each in settings.replicas()]
        index = replicas.index(replica) + len(replicas) * (int(number) - 1)
        own[f"{ENV_PREFIX}HEALTH__PORT"] = str(settings.health.port + index)
    if instance := settings.kafka.group_instance_id:
        own[f"{ENV_PREFIX}KAFKA__GROUP_INSTANCE_ID"] = f"{instance}-{number}"
    return own


def _say_embedded(embedded: EmbeddedBroker) -> None:
    say(
        f"Embedded broker at {embedded.bootstrap_servers}, in memory. Commands in this directory "
        f'find it with kafka.bootstrap_servers = "embedded" (address in {ADDRESS_FILE}).'
    )
