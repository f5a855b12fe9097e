"""Commands that run the pipeline or parts of it: workers, the embedded broker, demo, alerts."""

import asyncio
import logging.config
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from fluxplain.alerts.formats import content
from fluxplain.alerts.message import sample
from fluxplain.cli import common as cli
from fluxplain.cli.interruption import importing, until_interrupted
from fluxplain.cli.ports import check_ports
from fluxplain.cli.supervisor import Supervisor, command_of, end_with_supervisor
from fluxplain.config import EMBEDDED, ENV_PREFIX, Config, ConfigError
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.client_logs import logging_settings
from fluxplain.kafka.embedded import ADDRESS_FILE, EmbeddedBroker, resolve, workers_environment
from fluxplain.kafka.topics.create import create_topics
from fluxplain.results.feature_names import FeatureNames
from fluxplain.schemas import stream_name

if TYPE_CHECKING:
    from fluxplain.alerts.webhook import Answer


alerts_app = cli.group("alerts", cli.RUN, "Send changes, or a test alert, to a webhook.")


@cli.app.command(rich_help_panel=cli.RUN)
def worker(
    role: Annotated[
        Role,
        typer.Option(
            help="The role to run: model, explainer or drift; also join, if label.topic or "
            "control.topic is true."
        ),
    ],
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
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
    with importing():
        # Faust is slow to import, and only workers need it
        from fluxplain.agents import create_agent, stage_class  # noqa: PLC0415
        from fluxplain.kafka.faust.app import run  # noqa: PLC0415
        from fluxplain.kafka.worker.broker_wait import wait_for_broker  # noqa: PLC0415

        stage_class(role)
    end_with_supervisor()
    with cli.status_for_supervisor():
        settings = resolve(cli.load(config, role))
        replica = _replica(settings, role, shard)
        wait_for_broker(settings, replica)
        run(create_agent(cli.ready(settings), replica))


@cli.app.command(rich_help_panel=cli.RUN)
def up(
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
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
    settings = cli.load(config)
    with until_interrupted():
        if not embedded:
            with cli.status_for_supervisor():
                cli.ready(settings)
            check_ports(settings, workers)
            _supervise(config, settings, {}, workers)
        if settings.kafka.bootstrap_servers != EMBEDDED:
            raise ConfigError(
                f"kafka.bootstrap_servers is {settings.kafka.bootstrap_servers!r}, but --embedded "
                f"runs a broker here: set it to {EMBEDDED!r}, in {config} or by "
                f"FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS={EMBEDDED}, so that replay and watch find it"
            )
        check_ports(settings, workers)
        with EmbeddedBroker() as broker, tempfile.TemporaryDirectory(prefix="fluxplain-") as state:
            create_topics(broker.settings_for(settings))
            broker.publish_address()
            _say_embedded(broker)
            _supervise(config, settings, workers_environment(broker, Path(state)), workers)
    cli.say("Stopped.")


@cli.app.command(rich_help_panel=cli.RUN)
def broker() -> None:
    """Run only the embedded broker, until Ctrl-C."""
    with until_interrupted(), EmbeddedBroker() as embedded:
        embedded.publish_address()
        _say_embedded(embedded)
        while True:
            time.sleep(1.0)


@cli.app.command(rich_help_panel=cli.RUN)
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
        run_demo(out, records, cli.console, stay=stay)


@alerts_app.command("run")
def alerts_run(config: cli.ConfigPath = cli.DEFAULT_CONFIG) -> None:
    """Send an alert for each new change.

    The command sends changes that pass the filter, until SIGTERM or Ctrl-C. `fluxplain up` does
    this too if `alerts.url` is set. The first start begins with new changes; later starts resume
    where the last one ended.
    """
    from fluxplain.alerts.forward import run  # noqa: PLC0415  the test needs no Kafka

    end_with_supervisor()
    with cli.status_for_supervisor():
        settings = cli.ready(_with_alerts(config))
        logging.config.dictConfig(logging_settings())
        asyncio.run(run(settings))


@alerts_app.command("test")
def alerts_test(config: cli.ConfigPath = cli.DEFAULT_CONFIG) -> None:
    """Send a test alert.

    The alert is about a made-up change, is signed like all others and has `"test": true`. The
    receiver's answer is printed. No broker is needed. The exit status is 0 if the receiver accepted
    the alert, otherwise 1.
    """
    settings = _with_alerts(config)
    name, answer = asyncio.run(_send_sample(settings))
    cli.say(f"{name} {answer.what}")
    if not settings.alerts.signing_secret():
        cli.say("Not signed: neither FLUXPLAIN_ALERTS__SECRET nor alerts.secret_file is set.")
    if not answer.delivered:
        raise typer.Exit(1)


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
        report=_say_if_possible,
    ) as supervisor:
        supervisor.start(workers)
        if settings.alerts.url is not None:
            supervisor.add_service("alerts", command_of("alerts", "run", config_path=config))
        if settings.dashboard.enabled:
            supervisor.add_service("dashboard", command_of("dashboard", config_path=config))
        pids = ", ".join(f"{name} ({pid})" for name, pid in supervisor.running().items())
        _say_if_possible(f"Running: {pids}. Ctrl-C stops them.")
        while True:
            supervisor.check()
            time.sleep(0.5)


def _say_if_possible(line: str) -> None:
    """Print a line; workers run on if nobody can read it, as after `up | head`."""
    with suppress(OSError):
        cli.say(line)


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
    cli.say(
        f"Embedded broker at {embedded.bootstrap_servers}, in memory. Commands in this directory "
        f'find it with kafka.bootstrap_servers = "embedded" (address in {ADDRESS_FILE}).'
    )


async def _send_sample(settings: Config) -> "tuple[str, Answer]":
    from fluxplain.alerts.webhook import Webhook  # noqa: PLC0415  other commands need no HTTP

    change = sample(stream_name(settings.topic(settings.source), 0), settings.explained[0])
    async with Webhook(settings.alerts) as webhook:
        return webhook.name, await webhook.send(
            change.id,
            content(settings.alerts, change, FeatureNames.configured(settings), is_test=True),
        )


def _with_alerts(config: Path) -> Config:
    settings = cli.load(config, "reader")
    if settings.alerts.url is None:
        raise ConfigError(
            f"alerts.url is not set, so there are no alerts: set it in {config}, or set the "
            "environment variable FLUXPLAIN_ALERTS__URL"
        )
    return settings
