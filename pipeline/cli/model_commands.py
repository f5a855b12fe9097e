"""Commands that export, announce and withdraw models."""

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from fluxplain import evaluate, stages
from fluxplain.cli import common as cli
from fluxplain.cli.announcing import check_announcing, control_partitions, send, users
from fluxplain.cli.past_models import exported, model_slot, past_model
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.checkpoints.checkpoint import CheckpointStore, Slot
from fluxplain.kafka.checkpoints.configured import open_store, slots
from fluxplain.kafka.client import cluster
from fluxplain.kafka.embedded import resolve
from fluxplain.models.model_store import ModelFolder
from fluxplain.models.warm_start import unpickled, written
from fluxplain.schemas import Control, stream_name
from fluxplain.schemas.control import NewModel
from fluxplain.schemas.wording import plural

if TYPE_CHECKING:
    from fluxplain.stages.estimates import FeatureState

T = TypeVar("T")

model_app = cli.group("model", cli.RUN, "Export, replace or roll back the running model.")


@model_app.command()
def export(
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the pickled model.")],
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    partition: Annotated[int, typer.Option(min=0, help="The stream's partition.")] = 0,
    explanations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the learned explanations.")
    ] = None,
    checkpoint: Annotated[
        int | None,
        typer.Option(min=0, help="An older checkpoint; see `fluxplain model checkpoints`."),
    ] = None,
) -> None:
    """Export the model as a pickle file.

    The model is that of the last checkpoint, or of an older one. With `--explanations`, also export
    what the stream's explanations have learned: the stored observations and the estimates. Another
    pipeline can start from both files, by `model.file` and `explain.file`.
    """
    if checkpoint is not None and explanations is not None:
        raise ConfigError(
            "--explanations needs the last checkpoint: older explanations are not kept"
        )
    settings = resolve(cli.load(config))
    store = open_store(settings, cluster(settings))
    if checkpoint is not None:
        found = past_model(store, model_slot(settings, partition), checkpoint)
        _write(out, found.stage, checkpoint)
        return
    offset, shards = _last(settings, store, partition)
    _write(out, shards[0], offset)
    if explanations is not None:
        _write_explanations(explanations, settings, store, partition, shards)


@model_app.command()
def announce(
    file: Annotated[Path, typer.Argument(help="A pickled model.")],
    version: Annotated[str, typer.Option(help="The model's version in published records.")],
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    partition: cli.OnePartition = None,
) -> None:
    """Replace the model of a running pipeline.

    The new model takes over at the next observation. The file is copied into `model.directory`.
    Workers on other machines need it there too: copy it first. A stream whose worker does not find
    the model waits until it does; `fluxplain model withdraw` cancels the announcement. Needs
    `control.topic = true`.
    """
    settings = cli.load(config)
    check_announcing(settings, "--version", version)
    data = _checked(settings, partition, file)
    settings = cli.ready(settings)
    partitions = control_partitions(settings, partition)
    folder = ModelFolder(settings.model.directory)
    sha256 = folder.put(data)
    send(settings, Control(model=NewModel(version, sha256)), partitions)
    cli.say(f"{folder.path(sha256)}: announced as {version}")


@model_app.command()
def withdraw(
    version: Annotated[str, typer.Argument(help="The announced version.")],
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    partition: cli.OnePartition = None,
) -> None:
    """Withdraw an announced model.

    A stream whose worker does not find an announced model in `model.directory` waits and predicts
    nothing. `/readyz`, the log and the metric `fluxplain_waits_for` report that. Either copy the
    file there, or withdraw the announcement so that the stream keeps its model. A model in use
    cannot be withdrawn: announce another one instead.
    """
    settings = cli.load(config)
    check_announcing(settings, "VERSION", version)
    settings = cli.ready(settings)
    partitions = control_partitions(settings, partition)
    if used := users(settings, version, partitions):
        raise ConfigError(
            f"model {version} is in use in {', '.join(used)} and cannot be withdrawn: announce "
            "another model instead (`fluxplain model announce`), or select a waiting stream by "
            "--partition"
        )
    send(settings, Control(withdraw=version), partitions)
    topic = settings.topic(Control.TOPIC)
    cli.say(f"{version}: withdrawn in {plural(len(partitions), 'partition')} of {topic}")


def _last(
    settings: Config, store: CheckpointStore, partition: int
) -> "tuple[int, list[stages.ModelStage]]":
    """Return the offset of the last checkpoints, and the stage of each shard."""
    source = settings.topic(settings.source)
    found = [
        _state(store, Slot.of(replica, source, partition), stages.ModelStage)
        for replica in settings.replicas("model")
    ]
    if len({next_offset for next_offset, _ in found}) > 1:
        raise ConfigError(
            f"the shards are at the offsets {', '.join(f'{each:,}' for each, _ in found)}: stop "
            "the workers, or wait until they have processed all messages"
        )
    return found[0][0], [stage for _, stage in found]


def _write(out: Path, stage: "stages.ModelStage", offset: int) -> None:
    model = exported(stage)
    out.write_bytes(pickle.dumps(model))
    cli.say(f"{out}: the {type(model).__name__} of {stage.stream}, before offset {offset:,}")


def _write_explanations(
    out: Path,
    settings: Config,
    store: CheckpointStore,
    partition: int,
    shards: "list[stages.ModelStage]",
) -> None:
    states = _estimates(settings, store, stream_name(settings.topic(settings.source), partition))
    through = max((state.chain.newest for state in states.values()), default=-1)
    learned = {"samples": [shard.samples for shard in shards], "estimates": states}
    out.write_bytes(written(learned, settings.of_stream(partition).learning()))
    content = f"estimates of {', '.join(states)}, up to seq {through:,}" if states else "samples"
    cli.say(f"{out}: {content}")


def _state(store: CheckpointStore, slot: Slot, kind: type[T]) -> tuple[int, T]:
    """Return a slot's next offset and stage."""
    checkpoint = store.load(slot)
    if checkpoint is None:
        raise ConfigError(f"{slot} has no checkpoint: run this where its worker would run")
    if not isinstance(checkpoint.stage, kind):
        raise ConfigError(f"{slot} has the state of another role")
    return checkpoint.next_offset, checkpoint.stage


def _estimates(settings: Config, store: CheckpointStore, stream: str) -> "dict[str, FeatureState]":
    """Return the estimates of all features of a stream, from all partitions."""
    found: dict[str, FeatureState] = {}
    checkpoints = [store.load(slot) for slot in slots(settings, "explainer")]
    if not any(checkpoints):
        raise ConfigError("explainer has no checkpoint: run this where its workers would run")
    for checkpoint in filter(None, checkpoints):
        stage = checkpoint.stage
        of_stream = stage.of(stream) if isinstance(stage, stages.ByStream) else stage
        if isinstance(of_stream, stages.ExplainerStage):
            found |= of_stream.estimates(stream)
    return {name: found[name] for name in settings.explained if name in found}


def _checked(settings: Config, partition: int | None, file: Path) -> bytes:
    """Read a pickled model, and check that it can replace that of one or all streams."""
    from fluxplain.models.model_checks import taking_over  # noqa: PLC0415

    data = file.read_bytes()
    try:
        given = unpickled(data)
        everywhere = [settings, *settings.own_streams.values()]
        for each in everywhere if partition is None else [settings.of_stream(partition)]:
            model = taking_over(given, label=each.label.type, learns=each.model.learn)
            evaluate.choose(model, each.model.evaluator)
    except Exception as error:  # whatever the model's own code raises
        raise ConfigError(f"{file} holds no model that can take over: {error}") from None
    return data
