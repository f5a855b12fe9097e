"""The command that tells why the model gave an output."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn

from fluxplain.cli import common as cli
from fluxplain.cli.interruption import until_interrupted
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.checkpoints.checkpoint import Slot
from fluxplain.kafka.checkpoints.configured import open_store
from fluxplain.kafka.checkpoints.nearest import Nearest, nearest
from fluxplain.kafka.client import BrokerError, cluster
from fluxplain.kafka.topics.partition_log import PartitionLog
from fluxplain.monitor.terminal.reasons_story import render_reasons, sentence
from fluxplain.results.reasons_lookup import Found, Wanted, find_reasons
from fluxplain.schemas import Prediction, Reasons, stream_name
from fluxplain.stages import Message

PUBLISHED = "They were published when the output was."


@cli.app.command(rich_help_panel=cli.LOOK)
def why(  # noqa: PLR0917  options of a command
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="The observation's id.")] = None,
    seq: Annotated[
        int | None, typer.Option(min=0, help="The observation's seq, instead of an id.")
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC-PARTITION",
            help="The observation's stream; of --seq by default that of partition 0.",
        ),
    ] = None,
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    local: cli.Local = None,
    as_json: cli.AsJson = False,
) -> None:
    """Show the reasons for a single output.

    Reasons are what each feature added to the output, by the model of that moment. Of several
    observations with the id, the newest is meant: in several streams, that with the latest `ts`.
    If no reasons were published for it (see `[reasons]` in the settings), the model is rebuilt from
    the nearest checkpoint or from the beginning of the log. Its prediction is then compared with
    the published one. Run this where a worker would run, so that it finds the checkpoints.
    """
    if (id_ is None) == (seq is None):
        raise ConfigError("name one observation: its ID, or its seq with --seq")
    read, settings = cli.open_reader(local, config)
    wanted = Wanted(id_, _stream(settings, stream, seq), seq)
    records = (record for record, _ in read(Reasons.TOPIC, Prediction.TOPIC))
    found, note = find_reasons(records, wanted), PUBLISHED
    reasons = found.reasons
    if not reasons and settings is not None:
        reasons, note = _replayed(settings, found, wanted)
    if not reasons:
        _say_why_not(found, wanted, local)
    for each in reasons:
        if as_json:
            print(each.encode().decode())
        else:
            cli.console.print(render_reasons(each, note), crop=False)
            cli.say(f"In words: {sentence(each)}.")


def _stream(settings: Config | None, stream: str | None, seq: int | None) -> str | None:
    if stream is not None or settings is None or seq is None:
        return stream
    return stream_name(settings.topic(settings.source), 0)


def _say_why_not(found: Found, wanted: Wanted, local: Path | None) -> None:
    prediction = found.prediction
    if prediction is None:
        raise ConfigError(f"there is no prediction with {wanted}")
    asked = f"{wanted}{_which(prediction, found.earlier)}"
    if local is not None:
        raise ConfigError(
            f"{local} has no reasons for {asked}: run `fluxplain local` with [reasons] in the "
            "settings, for all observations or for this one (reasons.ids)"
        )
    raise ConfigError(
        f"there are no reasons for {asked}: too few observations came before it "
        "(reasons.warm_up), or the model had no output"
    )


def _which(prediction: Prediction, earlier: Reasons | None) -> str:
    """Return which observation was meant if an earlier one has reasons."""
    if earlier is None:
        return ""
    if earlier.seq == prediction.seq and earlier.stream == prediction.stream:
        return (
            f" in incarnation {prediction.incarnation}, the newest (those of incarnation "
            f"{earlier.incarnation} are about another model)"
        )
    return (
        f", the newest of which is seq {prediction.seq:,} of {prediction.stream} (for the one "
        f"before it: --seq {earlier.seq} --stream {earlier.stream})"
    )


def _replayed(settings: Config, found: Found, wanted: Wanted) -> tuple[list[Reasons], str]:
    """Return the reasons by the model of that moment, and how that was rebuilt."""
    prediction = found.prediction
    if prediction is None:
        raise ConfigError(f"there is no prediction with {wanted}")
    from fluxplain.local import replayed_reasons  # noqa: PLC0415  loads much of River

    seq, partition = prediction.seq, cli.partition_of(settings, prediction.stream)
    checkpoint, refusals = _nearest(settings, partition, prediction)
    begin = 0 if checkpoint is None else checkpoint.next_offset
    with (
        until_interrupted(),
        PartitionLog(settings, settings.source, partition, begin) as messages,
        cli.progress_bar(MofNCompleteColumn()) as progress,
    ):
        _check_reach(prediction, begin, messages.first, refusals)
        total, doing = seq + 1 - begin, "rebuilding the model"
        shown = progress.track(messages, total=total, description=doing)
        ahead = partial(_messages_from, settings, partition)
        again = replayed_reasons(settings, partition, seq, shown, checkpoint, ahead=ahead)
    rebuilt = f"The model was rebuilt from the log's first {seq:,} records"
    if checkpoint is not None:
        rebuilt = (
            f"The model was rebuilt from the checkpoint at seq {begin:,} and the {seq - begin:,} "
            "records after it"
        )
    if again.prediction is not None and _said(again.prediction) == _said(prediction):
        return again.reasons, f"{rebuilt}, and predicts the same as then."
    cli.warn(
        "The rebuilt model does not predict what was published: settings, packages or the log are "
        "no longer those of that time. These are the reasons of the rebuilt model."
    )
    return again.reasons, f"{rebuilt}."


def _messages_from(settings: Config, partition: int, begin: int) -> Iterator[Message]:
    with PartitionLog(settings, settings.source, partition, begin) as messages:
        yield from messages


def _nearest(settings: Config, partition: int, prediction: Prediction) -> Nearest:
    """Return the checkpoint to start from, if any; warn if a nearer one cannot be used."""
    from fluxplain.local import first_needed  # noqa: PLC0415  as above

    if settings.checkpoint.store == "topic":
        return Nearest(None, [])  # it has only the newest ones, in a log that may be long
    replica = settings.replicas("model")[0]
    slot = Slot.of(replica, settings.topic(settings.source), partition)
    needed = first_needed(settings, partition, prediction.seq)
    try:
        store = open_store(settings, cluster(settings))
        found = nearest(store, slot, needed, prediction.incarnation)
    except BrokerError as error:
        found = Nearest(None, [f"the checkpoints cannot be read: {error}"])
    for refusal in found.refusals[:1]:
        cli.warn(refusal)
    return found


def _check_reach(
    prediction: Prediction, begin: int, earliest: int, refusals: Sequence[str]
) -> None:
    """Raise ``ConfigError`` unless the log holds what a replay from an offset needs."""
    if earliest <= begin:
        return
    seq, stream = prediction.seq, prediction.stream
    gone = f"{stream} begins at seq {earliest:,}: what came before was deleted"
    if seq < earliest:
        raise ConfigError(f"{gone}, also the observation itself (topics.retention_hours)")
    last = f"the last usable checkpoint before seq {seq:,} is at seq {begin:,}"
    if begin == 0:
        last = f"no usable checkpoint is between it and seq {seq:,}"
    reasons = "; ".join([f"{gone} (topics.retention_hours), and {last}", *refusals[:1]])
    raise ConfigError(f"the model of that moment cannot be rebuilt: {reasons}")


def _said(prediction: Prediction) -> tuple[object, ...]:
    return prediction.prediction, prediction.classes, prediction.probabilities
