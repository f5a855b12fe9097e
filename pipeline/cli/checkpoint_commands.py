"""Commands for the workers' state: list and remove it, and keep it under other versions."""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn

from fluxplain.cli import common as cli
from fluxplain.cli.setup import resumption
from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.checkpoints.checkpoint import CheckpointError, CheckpointStore, Slot
from fluxplain.kafka.checkpoints.configured import open_store, slots
from fluxplain.kafka.client import cluster
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.ownership.register import Register
from fluxplain.stages import Message

if TYPE_CHECKING:
    from fluxplain.kafka.checkpoints.adoption import Adoption
    from fluxplain.kafka.checkpoints.slot_replay import Proof


checkpoints_app = cli.group(
    "checkpoints",
    cli.PREPARE,
    "List, adopt and remove the workers' state.\n\nRun these commands where a worker would run.",
)


@checkpoints_app.command("list")
def checkpoints_list(config: cli.ConfigPath = cli.DEFAULT_CONFIG) -> None:
    """Show the offsets at which workers resume.

    For each role and input partition, this is an offset, or the reason why it cannot resume.
    """
    settings = resolve(cli.load(config))
    store = open_store(settings, cluster(settings))
    for slot in slots(settings):
        cli.say(_resumption_or_reason(store, slot))


@checkpoints_app.command("remove")
def checkpoints_remove(
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    role: Annotated[Role | None, typer.Option(help="Only of this role.")] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Only of this partition of the role's input.")
    ] = None,
    yes: cli.Yes = False,
) -> None:
    """Remove checkpoints to rebuild the state.

    **Stop all workers of the role first**: running workers do not notice the removal. The next
    start rebuilds the state from the beginning of the log, with the same results. If that has been
    deleted, the state starts cold, and the records that follow carry another `incarnation`.
    """
    settings = resolve(cli.load(config))
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
        cli.say(f"{slot}: {'removed' if store.remove(slot) else 'no checkpoint'}")


@checkpoints_app.command("adopt")
def checkpoints_adopt(
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    messages: Annotated[
        int, typer.Option(min=1, help="Replay at least this many messages of each partition.")
    ] = 1000,
    yes: cli.Yes = False,
) -> None:
    """Keep the state under other versions.

    After an upgrade of fluxplain, Python or a library, or on another processor, workers refuse to
    start, since their results may differ. **Stop all workers first**, then run this with the new
    versions.

    Each role replays its newest messages and compares. If all states are the same, bit for bit, the
    workers resume as if nothing had changed. Otherwise, or if too few messages can be replayed, the
    state is kept as well, but records that follow carry another `incarnation`, and a notice on
    `changes` names the versions. Earlier checkpoints of the model can then no longer be
    exported or rolled back to. Nothing is written before you confirm; a command that was
    interrupted before that can be run again.
    """
    from fluxplain.kafka.checkpoints.adoption import Adoption, are_same  # noqa: PLC0415  slow

    began_at, settings = time.monotonic(), cli.ready(cli.load(config))
    with closing(Register(settings)) as register:
        adoption = Adoption(settings, cluster(settings), register.read())
    changed = adoption.changed()
    if not changed:
        cli.say("These versions are the registered ones: nothing to adopt.")
        return
    for each in changed:
        cli.say(f"  differs: {each}")
    adoption.check_stopped()
    proofs = _proofs(adoption, settings, messages)
    cli.say(f"Replayed in {time.monotonic() - began_at:.0f} s.")
    if are_same(proofs):
        cli.say("These versions give the same bits: records keep their incarnation.")
    else:
        cli.say("These versions may give other bits: records get another incarnation.")
    if not yes:
        typer.confirm("Adopt these states? All workers must be stopped.", abort=True)
    number = adoption.register(proofs)
    cli.say(f"Registered versions: number {number}. Start the workers with these versions.")


def _proofs(adoption: "Adoption", settings: Config, messages: int) -> "list[Proof]":
    """Return what the replays show, and print it."""
    from fluxplain.agents import make_stage  # noqa: PLC0415  loads River

    proofs = []
    with cli.progress_bar(MofNCompleteColumn()) as progress:

        def track(messages: Iterable[Message], slot: Slot, total: int) -> Iterator[Message]:
            task = progress.add_task(f"replaying {slot}", total=total)
            yield from progress.track(messages, task_id=task)
            progress.remove_task(task)

        for proof in adoption.proofs(partial(make_stage, settings), messages, track):
            cli.say(f"{proof}")
            proofs.append(proof)
    return proofs


def _resumption_or_reason(store: CheckpointStore, slot: Slot) -> str:
    try:
        return resumption(store, slot)
    except CheckpointError as error:
        return str(error)
