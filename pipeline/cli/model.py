"""Commands that exchange models with a pipeline that runs."""

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, load, ready, say
from pipeline.config import MAX_VERSION, Config, ConfigError
from pipeline.exchange import ModelFolder, unpickled
from pipeline.kafka.checkpoints import CheckpointStore, Slot, open_store, slots
from pipeline.kafka.client import cluster, partitions_of
from pipeline.kafka.embedded import resolve
from pipeline.kafka.producer import RecordProducer
from pipeline.warm_start import written
from schemas import Control, stream_name
from schemas.control import NewModel

if TYPE_CHECKING:
    from pipeline.stages.estimates import FeatureState

PANEL = "Run"

model_app = typer.Typer(
    no_args_is_help=True, help="Take the model of a pipeline that runs, or give it another one."
)
app.add_typer(model_app, name="model", rich_help_panel=PANEL)


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

    With --explanations also what the explanations of the stream have learned: what they have stored
    of its observations, and the estimates. Another pipeline starts from both by model.file and
    explain.file.
    """
    settings = resolve(load(config))
    from pipeline.models.scores import Scored  # noqa: PLC0415  loads River
    from pipeline.stages.model import ModelStage  # noqa: PLC0415  as above

    store = open_store(settings, cluster(settings))
    source = settings.topic(settings.source)
    shards = [
        _state(store, Slot.of(part, source, partition), ModelStage)
        for part in settings.parts("model")
    ]
    place, (offset, stage) = stream_name(source, partition), shards[0]
    model = stage.model.detector if isinstance(stage.model, Scored) else stage.model
    if len({next_offset for next_offset, _ in shards}) > 1:
        raise ConfigError(
            f"the shards are at the offsets {', '.join(f'{each:,}' for each, _ in shards)}: stop "
            "the workers, or wait until they have taken all there is"
        )
    _write(out, pickle.dumps(model))
    say(f"{out}: the {type(model).__name__} of {place}, before offset {offset:,}")
    if explanations is None:
        return
    states = _estimates(settings, store, place)
    through = max((state.seq for state in states.values()), default=-1)
    parts = {"samples": [shard.samples for _, shard in shards], "estimates": states}
    _write(explanations, written(parts, settings.of_stream(partition).learning()))
    known = f"what is known of {', '.join(states)}, up to seq {through:,}" if states else "samples"
    say(f"{explanations}: {known}")


T = TypeVar("T")


def _state(store: CheckpointStore, slot: Slot, kind: type[T]) -> tuple[int, T]:
    """Return the offset that is next, and the state of a slot."""
    checkpoint = store.load(slot)
    if checkpoint is None:
        raise ConfigError(f"{slot} has no checkpoint: run this where its worker would run")
    if not isinstance(checkpoint.stage, kind):
        raise ConfigError(f"{slot} has the state of something else")
    return checkpoint.next_offset, checkpoint.stage


def _estimates(settings: Config, store: CheckpointStore, stream: str) -> "dict[str, FeatureState]":
    """Return those of all features of a stream, whichever partitions they are in."""
    from pipeline.stages.explainer import ExplainerStage  # noqa: PLC0415  loads NumPy
    from pipeline.stages.streams import ByStream  # noqa: PLC0415

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


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None


@model_app.command()
def announce(
    file: Annotated[Path, typer.Argument(help="A pickled model.")],
    version: Annotated[str, typer.Option(help="Its name, told in all that is published of it.")],
    config: ConfigPath = DEFAULT_CONFIG,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Of which stream; by default of all.")
    ] = None,
) -> None:
    """Let another model take over, from the next observation on.

    It is copied into `model.directory`, where the workers of the model role must find it: on other
    machines copy it there first. Needs control.topic = true.
    """
    settings = load(config)
    if not settings.control.topic:
        raise ConfigError(
            "control.topic is false, so this pipeline cannot be told of a model; with "
            "true, and another topics.prefix, it can: a warm start takes along what it has learned"
        )
    if not 1 <= len(version) <= MAX_VERSION:
        raise ConfigError(
            f"--version has {len(version)} characters, but must have 1 to {MAX_VERSION}"
        )
    data = _checked(settings, partition, file)
    settings = ready(settings)
    topic = settings.topic(Control.TOPIC)
    partitions = partitions_of(settings, topic)
    if partition is not None and partition not in partitions:
        raise ConfigError(
            f"--partition is {partition}, but {topic} has {len(partitions)}, from 0 on"
        )
    folder = ModelFolder(settings.model.directory)
    sha256 = folder.put(data)
    record = Control(model=NewModel(version, sha256)).encode()
    producer = RecordProducer(settings)
    for each in partitions if partition is None else [partition]:
        producer.send(topic, record, place=each)
    producer.flush()
    say(f"{folder.path(sha256)}: announced as {version}")


def _checked(settings: Config, partition: int | None, file: Path) -> bytes:
    """Return a file with a model that can take over in a stream, or in all."""
    from pipeline.evaluate import choose  # noqa: PLC0415  loads River
    from pipeline.models.takeover import taking_over  # noqa: PLC0415

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
