"""Commands that exchange models with a running pipeline."""

import pickle
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from fluxplain.cli.common import (
    DEFAULT_CONFIG,
    RUN,
    ConfigPath,
    OnePartition,
    group,
    load,
    ready,
    say,
    warn,
    write_file,
)
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.checkpoints import CheckpointStore, Slot, open_store, slots
from fluxplain.kafka.client import BrokerError, cluster, partitions_of
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.timeouts import COMMAND_DEADLINE_S
from fluxplain.kafka.topics.reader import read_to_end
from fluxplain.models.model_store import ModelFolder
from fluxplain.models.warm_start import unpickled, written
from fluxplain.schemas import BadRecordError, Change, Control, stream_name
from fluxplain.schemas.control import NewModel

if TYPE_CHECKING:
    from fluxplain.stages.estimates import FeatureState

T = TypeVar("T")

model_app = group("model", RUN, "Export the running model, or replace it.")


@model_app.command()
def export(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The pickled model.")],
    config: ConfigPath = DEFAULT_CONFIG,
    partition: Annotated[int, typer.Option(min=0, help="Of which stream.")] = 0,
    explanations: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What its explanations have learned, for explain.file."),
    ] = None,
) -> None:
    """Write the model as it is in the last checkpoint, to be unpickled in Python.

    With --explanations also what the explanations of the stream have learned: the stored
    observations, and the estimates. Another pipeline starts from both by model.file and
    explain.file.
    """
    settings = resolve(load(config))
    from fluxplain.models.scores import Scored  # noqa: PLC0415  loads River
    from fluxplain.stages.model_stage import ModelStage  # noqa: PLC0415  as above

    store = open_store(settings, cluster(settings))
    source = settings.topic(settings.source)
    shards = [
        _state(store, Slot.of(replica, source, partition), ModelStage)
        for replica in settings.replicas("model")
    ]
    place, (offset, stage) = stream_name(source, partition), shards[0]
    model = stage.model.detector if isinstance(stage.model, Scored) else stage.model
    if len({next_offset for next_offset, _ in shards}) > 1:
        raise ConfigError(
            f"the shards are at the offsets {', '.join(f'{each:,}' for each, _ in shards)}: stop "
            "the workers, or wait until they have taken all there is"
        )
    write_file(out, pickle.dumps(model))
    say(f"{out}: the {type(model).__name__} of {place}, before offset {offset:,}")
    if explanations is None:
        return
    states = _estimates(settings, store, place)
    through = max((state.chain.newest for state in states.values()), default=-1)
    learned = {"samples": [shard.samples for _, shard in shards], "estimates": states}
    write_file(explanations, written(learned, settings.of_stream(partition).learning()))
    known = f"what is known of {', '.join(states)}, up to seq {through:,}" if states else "samples"
    say(f"{explanations}: {known}")


@model_app.command()
def announce(
    file: Annotated[Path, typer.Argument(help="A pickled model.")],
    version: Annotated[str, typer.Option(help="Its name, in all that is published of it.")],
    config: ConfigPath = DEFAULT_CONFIG,
    partition: OnePartition = None,
) -> None:
    """Replace the model, from the next observation on.

    It is copied into `model.directory`, where the workers of the model role must find it: on other
    machines copy it there first. Streams whose worker does not find it wait; `fluxplain model
    withdraw` frees them. Needs control.topic = true.
    """
    settings = load(config)
    _check_announcing(settings, "--version", version)
    data = _checked(settings, partition, file)
    settings = ready(settings)
    partitions = _partitions(settings, partition)
    folder = ModelFolder(settings.model.directory)
    sha256 = folder.put(data)
    _send(settings, Control(model=NewModel(version, sha256)), partitions)
    say(f"{folder.path(sha256)}: announced as {version}")


@model_app.command()
def withdraw(
    version: Annotated[str, typer.Argument(help="Its name, as it was announced.")],
    config: ConfigPath = DEFAULT_CONFIG,
    partition: OnePartition = None,
) -> None:
    """Withdraw the announcement of a model that streams wait for.

    A stream whose worker does not find an announced model in `model.directory` predicts nothing
    until the file is there: `/readyz`, the log and the metric `fluxplain_waits_for` say so. Either
    copy the file there, or withdraw the announcement: then the stream keeps its model. A model that
    is in use cannot be withdrawn: announce another one instead.
    """
    settings = load(config)
    _check_announcing(settings, "VERSION", version)
    settings = ready(settings)
    partitions = _partitions(settings, partition)
    if used := _users(settings, version, partitions):
        raise ConfigError(
            f"model {version} is in use in {', '.join(used)} and cannot be withdrawn: announce "
            "another model instead (`fluxplain model announce`), or name a stream that waits by "
            "--partition"
        )
    _send(settings, Control(withdraw=version), partitions)
    say(f"{version}: withdrawn in {len(partitions)} partitions of {settings.topic(Control.TOPIC)}")


def _state(store: CheckpointStore, slot: Slot, kind: type[T]) -> tuple[int, T]:
    """Return the next offset and the state of a slot."""
    checkpoint = store.load(slot)
    if checkpoint is None:
        raise ConfigError(f"{slot} has no checkpoint: run this where its worker would run")
    if not isinstance(checkpoint.stage, kind):
        raise ConfigError(f"{slot} has the state of something else")
    return checkpoint.next_offset, checkpoint.stage


def _estimates(settings: Config, store: CheckpointStore, stream: str) -> "dict[str, FeatureState]":
    """Return the estimates of all features of a stream, whichever partitions they are in."""
    from fluxplain.stages.explainer_stage import ExplainerStage  # noqa: PLC0415  loads NumPy
    from fluxplain.stages.streams import ByStream  # noqa: PLC0415

    found: dict[str, FeatureState] = {}
    checkpoints = [store.load(slot) for slot in slots(settings, "explainer")]
    if not any(checkpoints):
        raise ConfigError("explainer has no checkpoint: run this where its workers would run")
    for checkpoint in filter(None, checkpoints):
        stage = checkpoint.stage
        of_stream = stage.of(stream) if isinstance(stage, ByStream) else stage
        if isinstance(of_stream, ExplainerStage):
            found |= of_stream.estimates(stream)
    return {name: found[name] for name in settings.explained if name in found}


def _check_announcing(settings: Config, name: str, version: str) -> None:
    from fluxplain.stages.intake.validation import check_version  # noqa: PLC0415  loads NumPy

    if not settings.control.topic:
        raise ConfigError(
            "control.topic is false, so this pipeline cannot be told of a model; with "
            "true, and another topics.prefix, it can: a warm start takes along what it has learned"
        )
    try:
        check_version(name, version)
    except BadRecordError as error:
        raise ConfigError(str(error)) from None


def _partitions(settings: Config, partition: int | None) -> list[int]:
    """Return one partition of ``control``, if it exists, or all of them."""
    topic = settings.topic(Control.TOPIC)
    partitions = partitions_of(settings, topic)
    if partition is None:
        return partitions
    if partition not in partitions:
        raise ConfigError(
            f"--partition is {partition}, but {topic} has {len(partitions)}, from 0 on"
        )
    return [partition]


def _send(settings: Config, control: Control, partitions: Collection[int]) -> None:
    producer = RecordProducer(settings, deadline_s=COMMAND_DEADLINE_S)
    for each in partitions:
        producer.send(settings.topic(Control.TOPIC), control.encode(), partition=each)
    producer.flush()


def _users(settings: Config, version: str, partitions: Collection[int]) -> list[str]:
    """Return the streams that use a model, according to the newest of ``changes``."""
    source = settings.topic(settings.source)
    newest = {
        stream_name(source, each): (-1, settings.of_stream(each).model.version)
        for each in partitions
    }
    try:
        for message in read_to_end(settings, Change.TOPIC):
            try:
                change = Change.decode(message.value())
            except BadRecordError:
                continue
            stream = change.stream
            if change.kind == "model" and stream in newest and change.seq > newest[stream][0]:
                newest[stream] = change.seq, change.model_version
    except BrokerError as error:  # freeing a pipeline is more urgent
        warn(f"cannot see which models are in use: {error}")
        return []
    return [stream for stream, (_, used) in newest.items() if used == version]


def _checked(settings: Config, partition: int | None, file: Path) -> bytes:
    """Return a file with a model that can replace that of a stream, or of all."""
    from fluxplain.evaluate import choose  # noqa: PLC0415  loads River
    from fluxplain.models.model_checks import taking_over  # noqa: PLC0415

    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    try:
        given = unpickled(data)
        everywhere = [settings, *settings.own_streams.values()]
        for each in everywhere if partition is None else [settings.of_stream(partition)]:
            model = taking_over(given, label=each.label.type, learns=each.model.learn)
            choose(model, each.model.evaluator)
    except Exception as error:  # whatever the model's own code raises
        raise ConfigError(f"{file} is no model that can take over: {error}") from None
    return data
