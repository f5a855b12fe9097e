"""The command ``python -m tests.measure.chaos``; its last line is the verdict.

An odd seed keeps the checkpoints in the topic, an even one in the directory, unless ``--store``
says where.
"""

import random
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from fluxplain.cli.common import dataclass_options
from tests.kit.command import Clock, execute
from tests.measure.chaos.run import Options, Run
from tests.measure.chaos.schedule import Store, Wanted, store_of


@dataclass_options
def chaos(
    seed: Annotated[
        int | None,
        typer.Option(envvar="SEED", help="Seed of the schedule, the stream and the store."),
    ] = None,
    records: Annotated[
        int, typer.Option(min=100, help="Total number of observations and late labels.")
    ] = 40_000,
    rate: Annotated[
        float, typer.Option(min=1, help="Records per second in each of two partitions.")
    ] = 100,
    most_delay: Annotated[
        int, typer.Option(min=1, help="Maximum delay of a label, in observations.")
    ] = 5_000,
    *,
    wanted: Wanted,
    joined: Annotated[
        bool, typer.Option(help="Whether labels arrive late, in their own topic.")
    ] = True,
    store: Annotated[
        Store | None,
        typer.Option(
            help="Checkpoint store; by default the topic if the seed is odd, otherwise the "
            "directory.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Kill workers and brokers while a stream runs; no record may be missing or different.

    A run of two minutes: --records 5000 --kills 6 --broker-kills 1 --rebalances 2 --pauses 1
    --outages 0 --all-kills 0 --partitions 0
    """
    seed = random.randrange(1_000_000) if seed is None else seed
    store = store or store_of(seed)
    options = Options(seed, records, rate, most_delay, wanted, store, joined)

    def work(folder: Path, clock: Clock) -> Sequence[str]:
        with ExitStack() as stack:
            return Run(options, folder, clock, stack).problems()

    execute(
        "chaos",
        work,
        passed="nothing missing, nothing different, every worker ended as it may",
        settings=f"seed {seed}, checkpoints in the {store}, "
        f"{'joined topics' if joined else 'labels in the observations'}",
    )


if __name__ == "__main__":
    typer.run(chaos)
