"""Commands that prepare a pipeline: settings, topics, checkpoints."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, console, load, say, warn
from pipeline.config import Config, ConfigError
from pipeline.kafka.checkpoints import CheckpointError, CheckpointStore, Slot, open_store, slots
from pipeline.kafka.client import cluster, no_topics
from pipeline.kafka.embedded import resolve
from pipeline.kafka.progress import GroupOffsets
from pipeline.kafka.registry.opening import check_registry
from pipeline.kafka.topics import create_topics, missing_topics, topic_specs
from pipeline.parts import Role
from pipeline.stages.base import Message
from schemas import DeadLetter, stream_name

PANEL = "Prepare"

TEMPLATE = Path(__file__).parents[1] / "template.toml"

topics_app = typer.Typer(no_args_is_help=True, help="Create and describe the pipeline's topics.")

checkpoints_app = typer.Typer(
    no_args_is_help=True,
    help="See and remove the state of the workers. Run these where a worker would run.",
)
app.add_typer(topics_app, name="topics", rich_help_panel=PANEL)
app.add_typer(checkpoints_app, name="checkpoints", rich_help_panel=PANEL)


@app.command(rich_help_panel=PANEL)
def init(
    path: Annotated[Path, typer.Argument(help="File to write.")] = DEFAULT_CONFIG,
) -> None:
    """Write a commented configuration to start from."""
    try:
        with path.open("x") as file:
            file.write(TEMPLATE.read_text())
    except FileExistsError:
        raise ConfigError(f"{path} is there already: remove it, or give another name") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    say(f"Wrote {path}. Name your brokers, features, label and model there, then run")
    for command in ("topics create", "check"):
        say(f"  fluxplain {command} -c {path}")


@app.command(rich_help_panel=PANEL)
def check(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Validate a configuration, and say whether the broker answers.

    The model is asked about an observation that is made up; that it fails on it is a warning only.
    Whether workers can go on where they were is what `fluxplain checkpoints list` tells. The exit
    status is 0 only if settings and broker are well and all topics exist.
    """
    settings = load(config)
    say(f"{config}: valid")
    model, evaluator = _tried(settings)
    say(f"model: {model}")
    say(f"evaluator: {evaluator}")
    for name, own in settings.own_streams.items():
        model, evaluator = _tried(own)
        say(f"stream {name}: model {model}, evaluator {evaluator}")
    settings = resolve(settings)
    metadata = cluster(settings)
    console.print(
        f"broker: {len(metadata.brokers)} at {settings.kafka.bootstrap_servers}", highlight=False
    )
    missing = missing_topics(settings)
    if missing:
        raise no_topics(settings, missing)
    console.print(f"topics: all {len(topic_specs(settings))} exist", highlight=False)
    _check_streams(settings, len(metadata.topics[settings.topic(settings.source)].partitions))
    if settings.registry.url is not None:
        check_registry(settings)
        console.print(f"registry: at {settings.registry.url}", markup=False, highlight=False)


@topics_app.command("create")
def topics_create(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Create the topics that are missing; what exists stays as it is."""
    for name, result in create_topics(resolve(load(config))).items():
        console.print(f"{name}: {result}", markup=False, highlight=False)


@topics_app.command("describe")
def topics_describe(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Show the topics: what each is for, its partitions, messages, and how far behind a role is."""
    settings = resolve(load(config))
    existing = cluster(settings).topics
    readers = {name: part.role for part in settings.parts() for name in settings.inputs(part.role)}
    table = Table(box=None)
    table.add_column("topic", no_wrap=True)
    table.add_column("for")
    for name in ("partitions", "messages", "lag"):
        table.add_column(name, justify="right")
    table.add_column("of role")
    for spec in topic_specs(settings):
        if spec.name not in existing:
            table.add_row(spec.name, spec.purpose, "missing")
            continue
        topic = spec.name.removeprefix(settings.topics.prefix)
        role = readers.get(topic)
        lags = []
        for part in settings.parts(role) if role else settings.parts()[:1]:
            with closing(GroupOffsets(settings, part, topic)) as offsets:
                starts, ends = offsets.starts(), offsets.ends()
                lags.append(offsets.lag())
        lag = f"{max(lags):,}" if role else ""
        kept = sum(ends.values()) - sum(starts.values())
        table.add_row(spec.name, spec.purpose, str(len(ends)), f"{kept:,}", lag, role or "")
    console.print(table)


@checkpoints_app.command("list")
def checkpoints_list(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Show where each role goes on in each partition, or why it cannot."""
    settings = resolve(load(config))
    store = open_store(settings, cluster(settings))
    for slot in slots(settings):
        say(_standing(store, slot))


@checkpoints_app.command("remove")
def checkpoints_remove(
    config: ConfigPath = DEFAULT_CONFIG,
    role: Annotated[Role | None, typer.Option(help="Of one role only.")] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Of one partition of the role's input only.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove checkpoints, so that the state is rebuilt from the beginning of the log.

    **Stop all workers of the role first**: those that run know nothing of it. The results are the
    same again. Where the beginning of the log was deleted meanwhile, the state starts cold, and the
    records that follow carry another `incarnation`.
    """
    settings = resolve(load(config))
    store = open_store(settings, cluster(settings))
    chosen = slots(settings, role, partition)
    if not yes:
        of_partition = "all partitions" if partition is None else f"partition {partition}"
        typer.confirm(
            f"Remove the checkpoints of {role or 'all roles'}, {of_partition}? "
            "Their workers must be stopped.",
            abort=True,
        )
    for slot in chosen:
        say(f"{slot}: {'removed' if store.remove(slot) else 'nothing was there'}")


def _tried(settings: Config) -> tuple[str, str]:
    """Return which model there is, and how it is asked and why so.

    Warn if it fails on an observation that is made up: it may fail on every other.
    """
    from pipeline.evaluate import choose  # noqa: PLC0415  loads River
    from pipeline.models import title  # noqa: PLC0415
    from pipeline.stages import ModelStage, process  # noqa: PLC0415

    topic = settings.topic(settings.source)
    stage = ModelStage(settings, stream_name(topic, 0))
    model, evaluator = title(stage.model), choose(stage.model, settings.model.evaluator)
    x = {name: 0.0 if kind == "numeric" else "a" for name, kind in settings.features.items()}
    value = orjson.dumps({"x": x})
    for record in process(stage, Message(topic, 0, 0, None, value)):
        if isinstance(record, DeadLetter):
            warn(f"Of an observation that was made up, {value.decode()}: {record.reason}")
    frozen = "" if settings.model.learn else ", frozen: it never learns"
    return f"{model}{frozen}", f"{evaluator.kind} ({evaluator.reason})"


def _check_streams(settings: Config, partitions: int) -> None:
    """Raise ``ConfigError`` if streams that there are not have settings of their own."""
    missing = sorted(each for each in settings.streams if each >= partitions)
    if missing:
        raise ConfigError(
            f"streams has {', '.join(map(str, missing))}, but {settings.topic(settings.source)} "
            f"has {partitions} partitions, from 0 to {partitions - 1}"
        )


def _standing(store: CheckpointStore, slot: Slot) -> str:
    try:
        checkpoint = store.load(slot)
    except CheckpointError as error:
        return str(error)
    if checkpoint is None:
        return f"{slot}: no checkpoint"
    return f"{slot}: goes on at offset {checkpoint.next_offset:,}"
