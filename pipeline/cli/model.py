"""Commands that exchange models with a pipeline that runs."""

import pickle
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, load, ready, say
from pipeline.config import Config, ConfigError
from pipeline.exchange import ModelFolder, unpickled
from pipeline.kafka.checkpoints import Slot, open_store
from pipeline.kafka.client import cluster, partitions_of
from pipeline.kafka.embedded import resolve
from pipeline.kafka.producer import RecordProducer
from schemas import Control, stream_name
from schemas.control import NewModel

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
) -> None:
    """Write the model as it is in the last checkpoint, to be unpickled in Python."""
    settings = resolve(load(config))
    from pipeline.models.scores import Scored  # noqa: PLC0415
    from pipeline.stages import ModelStage  # noqa: PLC0415  loads River

    part = settings.parts("model")[0]
    slot = Slot.of(part, settings.topic(settings.source), partition)
    checkpoint = open_store(settings, cluster(settings)).load(slot)
    if checkpoint is None:
        raise ConfigError(f"{slot} has no checkpoint: run this where its worker would run")
    stage = checkpoint.stage
    if not isinstance(stage, ModelStage):
        raise ConfigError(f"{slot} has the state of something else")
    model = stage.model.detector if isinstance(stage.model, Scored) else stage.model
    try:
        out.write_bytes(pickle.dumps(model))
    except OSError as error:
        raise ConfigError(f"cannot write {out}: {error.strerror}") from None
    place = stream_name(slot.topic, slot.partition)
    say(f"{out}: the {type(model).__name__} of {place}, before offset {checkpoint.next_offset:,}")


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
        raise ConfigError("control.topic is false: set it to true, so that models can be announced")
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
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{file} is no model that can take over: {error}") from None
    return data
