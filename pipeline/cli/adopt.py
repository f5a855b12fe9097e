"""The command that keeps the state under other versions."""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn

from fluxplain.cli import common as cli
from fluxplain.cli.setup import checkpoints_app
from fluxplain.config import Config
from fluxplain.kafka.client import cluster
from fluxplain.kafka.ownership.register import Register
from fluxplain.stages import Message

if TYPE_CHECKING:
    from fluxplain.kafka.checkpoints.adoption import Adoption
    from fluxplain.kafka.checkpoints.checkpoint import Slot
    from fluxplain.kafka.checkpoints.slot_replay import Proof


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
    `changes` names the versions. Nothing is written before you confirm; an interrupted command can
    be run again.
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

        def track(messages: Iterable[Message], slot: "Slot", total: int) -> Iterator[Message]:
            task = progress.add_task(f"replaying {slot}", total=total)
            yield from progress.track(messages, task_id=task)
            progress.remove_task(task)

        for proof in adoption.proofs(partial(make_stage, settings), messages, track):
            cli.say(f"{proof}")
            proofs.append(proof)
    return proofs
