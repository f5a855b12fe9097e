"""Commands that list older models of a stream, and bring one back."""

import pickle
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Column, Table

from fluxplain.cli import common as cli
from fluxplain.cli.announcing import check_announcing, control_partitions, send, users
from fluxplain.cli.model_commands import model_app
from fluxplain.cli.past_models import (
    PastModel,
    UnusableModel,
    exported,
    model_slot,
    past_model,
    past_models,
    published_at,
)
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.checkpoints.configured import open_store
from fluxplain.kafka.client import cluster, partitions_of
from fluxplain.kafka.embedded import resolve
from fluxplain.models.model_store import ModelFolder
from fluxplain.results.note_making import in_utc
from fluxplain.schemas import Control, stream_name
from fluxplain.schemas.control import NewModel

OnlyPartition = Annotated[
    int | None, typer.Option(min=0, help="The stream's partition; needed if there are several.")
]


@model_app.command()
def checkpoints(
    config: cli.ConfigPath = cli.DEFAULT_CONFIG, partition: OnlyPartition = None
) -> None:
    """List the checkpoints of a stream's model.

    A checkpoint's name is its offset: it holds the model before the message there. The loss is the
    mean of the 500 labelled observations before, so it shows which model was still good. The store
    `"directory"` keeps the newest two and `checkpoint.history` older ones. After an upgrade to
    versions that may give other bits (`fluxplain checkpoints adopt`), earlier ones cannot be
    used. Run this where a worker would run.
    """
    settings = resolve(cli.load(config))
    slot = model_slot(settings, _only(settings, partition))
    store = open_store(settings, cluster(settings))
    rows: dict[int, tuple[str, str]] = {}
    for found in past_models(store, slot):
        if isinstance(found, UnusableModel):
            cli.warn(f"the checkpoint {found.name} cannot be used: {found.reason}")
        else:
            rows[found.offset] = found.version or "", _loss(found)
    if not rows:
        raise ConfigError(f"{slot} has no usable checkpoint: run this where its worker would run")
    times = published_at(settings, slot.tp, [*rows])
    right = [Column("checkpoint", justify="right", no_wrap=True)]
    table = Table(*right, "last message", "model", Column("loss", justify="right"), box=None)
    for offset, (version, loss) in rows.items():
        table.add_row(str(offset), _time(times, offset), version, loss)
    cli.console.print(table)


@model_app.command()
def rollback(
    checkpoint: Annotated[int, typer.Argument(min=0, help="The name of the checkpoint.")],
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    partition: OnlyPartition = None,
    version: Annotated[
        str | None,
        typer.Option(help="The version in published records.", show_default="checkpoint-OFFSET"),
    ] = None,
    yes: cli.Yes = False,
) -> None:
    """Bring back the model of a checkpoint.

    For a model that has learned wrong labels. `fluxplain model checkpoints` lists what there is.
    The older model takes over at the next observation, as `fluxplain model announce` describes. It
    learns from there on, so stop the wrong labels first. Needs `control.topic = true`. Run this
    where a worker would run.
    """
    settings = cli.load(config)
    version = version or f"checkpoint-{checkpoint}"
    check_announcing(settings, "--version", version, export=f"--checkpoint {checkpoint}")
    settings = cli.ready(settings)
    number = _only(settings, partition)
    found = _chosen(settings, number, checkpoint)
    if users(settings, version, control_partitions(settings, number)):
        raise ConfigError(
            f"the model in use is {version} already; to bring it back once more, give it another "
            "name with --version"
        )
    stream = stream_name(settings.topic(settings.source), number)
    if not yes:
        typer.confirm(f"Replace the model of {stream} by this one, as {version}?", abort=True)
    folder = ModelFolder(settings.model.directory)
    sha256 = folder.put(pickle.dumps(exported(found.stage)))
    send(settings, Control(model=NewModel(version, sha256)), [number])
    cli.say(f"{folder.path(sha256)}: announced as {version}")


def _chosen(settings: Config, partition: int, offset: int) -> PastModel:
    """Return the checkpoint to bring back, shown next to the newest one."""
    slot = model_slot(settings, partition)
    store = open_store(settings, cluster(settings))
    found = past_model(store, slot, offset)
    usable = (each for each in past_models(store, slot) if isinstance(each, PastModel))
    newest = next(usable, found)
    times = published_at(settings, slot.tp, [found.offset, newest.offset])
    for title, each in {"chosen": found, "newest": newest}.items():
        name = "" if each.version is None else f"model {each.version}, "
        cli.say(
            f"{title} checkpoint {each.offset}: {name}last message {_time(times, each.offset)}, "
            f"loss {_loss(each)}"
        )
    return found


def _only(settings: Config, partition: int | None) -> int:
    """Return the partition, or the only one; raise ConfigError if there are several, or not it."""
    topic = settings.topic(settings.source)
    known = partitions_of(settings, topic)
    if partition in known:
        return partition
    if partition is None and len(known) == 1:
        return known[0]
    given = "missing" if partition is None else str(partition)
    raise ConfigError(f"--partition is {given}, but {topic} has {len(known)}, from 0 on")


def _time(times: Mapping[int, float], offset: int) -> str:
    time_s = times.get(offset)
    return "deleted" if time_s is None else in_utc(datetime.fromtimestamp(time_s, UTC))


def _loss(found: PastModel) -> str:
    return "unknown" if found.loss is None else f"{found.loss:.4g}"
