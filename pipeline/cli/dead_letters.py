"""Commands about dead letters: list them by reason, show one, send their messages again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from fluxplain.cli import common as cli
from fluxplain.cli.interruption import until_interrupted
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.client import cluster
from fluxplain.kafka.embedded import is_embedded_cluster
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.topics.replay import FIRST_WINDOW
from fluxplain.monitor.terminal.letter_tables import render_groups, render_letter, value_lines
from fluxplain.results.letter_groups import LetterGroups
from fluxplain.results.letter_selection import LetterName, LetterSelection, selected, with_prefix
from fluxplain.schemas import stream_name
from fluxplain.schemas.wording import plural

if TYPE_CHECKING:
    from fluxplain.kafka.requeue.planner import Again, Planner
    from fluxplain.kafka.requeue.sender import Requeuer
    from fluxplain.kafka.requeue.sent_again import Place

TOGETHER = 1_000
"""Messages in one transaction: few, since readers wait for its end."""

letters_app = cli.group("dead-letters", cli.LOOK)


@dataclass(kw_only=True)
class Chosen:
    """Options that select dead letters."""

    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only with this text in the reason.")
    ] = None
    group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Only of this group of reasons.")
    ] = None
    topic: Annotated[
        str | None, typer.Option(help="Only of messages in this topic, such as labels.")
    ] = None
    stream: Annotated[
        str | None,
        typer.Option(metavar="TOPIC-PARTITION", help="Only of this stream, or partition."),
    ] = None
    from_offset: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="Only from this offset on.")
    ] = None
    to_offset: Annotated[
        int | None,
        typer.Option(metavar="OFFSET", min=0, help="Only up to this offset, included."),
    ] = None

    def selection(self, settings: Config, names: Sequence[str] = ()) -> LetterSelection:
        """Return the selection, of these dead letters if some are named."""
        first, last, prefix = self.from_offset, self.to_offset, settings.topics.prefix
        if first is not None and last is not None and last < first:
            raise ConfigError(f"--to-offset is {last}, but must be at least --from-offset, {first}")
        return LetterSelection(
            tuple(LetterName.parse(name, prefix) for name in names),
            self.reason,
            self.group,
            None if self.topic is None else with_prefix(self.topic, prefix),
            self.stream,
            first,
            last,
        )


@letters_app.callback(invoke_without_command=True)
@cli.dataclass_options
def dead_letters(
    ctx: typer.Context, chosen: Chosen, config: cli.ConfigPath = cli.DEFAULT_CONFIG
) -> None:
    """List dead letters, and send them again.

    Similar reasons form a group; `--group` selects one by its digits. For each partition, the list
    shows the number of dead letters and the first and last offset of their messages. Each group
    names one dead letter as an example.
    """
    if ctx.invoked_subcommand is not None:
        given = [ctx.get_parameter_source(name) for name in ctx.params]
        if any(source is not None and source.name == "COMMANDLINE" for source in given):
            raise ConfigError(f"write the options after `{ctx.invoked_subcommand}`")
        return
    settings = cli.load_reader(config)
    groups = LetterGroups()
    with _unless_interrupted():
        for letter, _ in selected(settings, chosen.selection(settings)):
            groups.add(letter)
    if not groups.count:
        cli.say("There are no such dead letters.")
        return
    listed = groups.largest_first()
    cli.console.print(render_groups(listed, ids=True))
    cli.say(f"{plural(groups.count, 'dead letter')} in {plural(len(listed), 'group')}")


@letters_app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A dead letter's id, or at least its first 4 digits; or a message as "
            "topic/partition/offset, such as features/0/7.",
        ),
    ],
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    as_json: cli.AsJson = False,
) -> None:
    """Show dead letters in full.

    A message can have several, such as one for each feature that could not be explained.
    """
    settings = cli.load_reader(config)
    selection = Chosen().selection(settings, [name])
    is_found = False
    with _unless_interrupted():
        for letter, _ in selected(settings, selection):
            is_found = True
            if as_json:
                print(letter.encode().decode())
                continue
            cli.console.print(render_letter(letter))
            for line in value_lines(letter):
                print(line)
    if not is_found:
        raise ConfigError(f"there is no dead letter {name}: `fluxplain dead-letters` lists them")


@letters_app.command()
@cli.dataclass_options
def requeue(
    chosen: Chosen,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Only these, as in `fluxplain dead-letters show`."),
    ] = None,
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be sent, and what not.")
    ] = False,
    yes: cli.Yes = False,
) -> None:
    """Send the messages of dead letters again.

    Do this after the cause is fixed. The command first lists what it will send, and asks; it also
    lists what it will not send, and why. Without options it goes through all dead letters.

    Each message goes to the end of its topic and partition, with its key, bytes and headers, and
    gets a seq of its own. The header `fluxplain-requeued-from` says where the original is. A
    message is sent only if the workers would accept it now, and only once, however often the
    command runs.
    """
    settings = cli.ready(cli.load(config, "reader"))
    selection = chosen.selection(settings, names or ())
    from fluxplain.kafka.requeue.sender import open_requeuer  # noqa: PLC0415  loads the stages

    with _unless_interrupted():
        planner = _planner(settings)
        # first: it ends what an interrupted run left open
        requeuer = None if dry_run else open_requeuer(settings)
        messages = _plan(planner, settings, selection)
    if not messages or requeuer is None:
        return
    if not yes:
        typer.confirm(f"Send {plural(len(messages), 'message')} again?", abort=True)
    with _unless_interrupted():
        _send(planner, requeuer, messages)


@contextmanager
def _unless_interrupted() -> Iterator[None]:
    """Run a block; end the command if it is interrupted."""
    with until_interrupted() as interruption:
        yield
    if interruption.by:
        raise typer.Exit(interruption.status)


def _planner(settings: Config) -> "Planner":
    """Return a planner; raise ``ConfigError`` if the workers have other settings."""
    from fluxplain.kafka.requeue import planner  # noqa: PLC0415  as above

    with closing(Register(settings)) as register:
        registered = register.read()
    planner.check_registered(settings, registered)
    is_embedded = is_embedded_cluster(cluster(settings))
    most = FIRST_WINDOW if is_embedded else planner.MOST_MESSAGES
    return planner.Planner(settings, registered, most)


def _plan(planner: "Planner", settings: Config, selection: LetterSelection) -> "list[Again]":
    """Print what will be sent, and what not; return the messages to send."""
    messages: list[Again] = []
    planned, refused, left = LetterGroups(), LetterGroups(), 0
    for letter, again, refusal, is_left in planner.verdicts(partial(selected, settings, selection)):
        left += is_left
        if again is not None:
            messages.append(again)
            planned.add(letter)
        elif not is_left:
            refused.add(letter, refusal)
    if refused.count:
        cli.say(f"{plural(refused.count, 'dead letter')} will not be sent:")
        cli.console.print(render_groups(refused.largest_first(), ids=False))
    if messages:
        cli.say(f"{plural(len(messages), 'message')} can be sent:")
        cli.console.print(render_groups(planned.largest_first(), ids=True))
    else:
        cli.say("There is nothing to send.")
    if left:
        cli.say(f"{plural(left, 'dead letter')} must wait for another run of this command.")
    return messages


def _send(planner: "Planner", requeuer: "Requeuer", messages: "list[Again]") -> None:
    sent = planner.sent
    for each in messages:
        sent.watch(each.place)  # a dead letter may have come while others were planned
    sent.read()  # the embedded broker keeps no other run from sending
    in_order = sorted(messages, key=lambda each: each.place)
    due = [each for each in in_order if each.place not in sent.offsets]
    done = 0
    try:
        for begin in range(0, len(due), TOGETHER):
            batch = due[begin : begin + TOGETHER]
            requeuer.send(batch)
            done += len(batch)
    finally:
        cli.say(f"Sent {plural(done, 'message')}.")
    sent.read()
    places = (each.place for each in due)
    for line in _where({place: sent.offsets[place] for place in places if place in sent.offsets}):
        cli.say(line)


def _where(offsets: "Mapping[Place, int]") -> Iterator[str]:
    """Yield for each partition where its copies are."""
    found: dict[str, list[int]] = {}
    for (topic, partition, _), offset in offsets.items():
        found.setdefault(stream_name(topic, partition), []).append(offset)
    for name, copies in found.items():
        yield f"  {name}: {len(copies):,}, at offsets {min(copies):,} to {max(copies):,}"
