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

from tests.kit.command import Clock, execute
from tests.measure.chaos.run import Options, Run
from tests.measure.chaos.schedule import Store, Wanted, store_of

DEFAULTS = Wanted()

Times = Annotated[int, typer.Option(min=0)]


def chaos(
    seed: Annotated[
        int | None,
        typer.Option(envvar="SEED", help="Of the schedule, the stream, and the store."),
    ] = None,
    records: Annotated[
        int, typer.Option(min=100, help="Observations, and labels that come later, in all.")
    ] = 40_000,
    rate: Annotated[float, typer.Option(min=1, help="Of each of two partitions, a second.")] = 100,
    most_delay: Annotated[
        int, typer.Option(min=1, help="How many observations later a label comes, at most.")
    ] = 5_000,
    kills: Times = DEFAULTS.kills,
    broker_kills: Times = DEFAULTS.broker_kills,
    rebalances: Times = DEFAULTS.rebalances,
    pauses: Times = DEFAULTS.pauses,
    outages: Annotated[
        int, typer.Option(min=0, help="Times in which all writes to a topic are refused.")
    ] = DEFAULTS.outages,
    outage_most: Annotated[
        float, typer.Option(min=10, max=150, help="Seconds that such an outage lasts, at most.")
    ] = DEFAULTS.outage_most,
    frozen: Annotated[
        int, typer.Option(min=0, help="Of these, those across which a writer is frozen.")
    ] = DEFAULTS.frozen,
    all_kills: Annotated[
        int, typer.Option(min=0, help="Of all brokers and all workers at once.")
    ] = DEFAULTS.all_kills,
    partitions: Annotated[
        int, typer.Option(min=0, help="How often the topics get one more partition.")
    ] = DEFAULTS.partitions,
    poisons: Annotated[
        int, typer.Option(min=0, help="Records of any bytes, in any topic.")
    ] = DEFAULTS.poisons,
    bombs: Annotated[
        int, typer.Option(min=0, help="Small batches that unpack to hundreds of megabytes.")
    ] = DEFAULTS.bombs,
    foreign: Annotated[
        int, typer.Option(min=0, help="Workers with another seed and model.")
    ] = DEFAULTS.foreign,
    joined: Annotated[
        bool, typer.Option(help="Whether labels come later, in a topic of their own.")
    ] = True,
    store: Annotated[
        Store | None,
        typer.Option(
            help="Where the checkpoints are; by default in the topic if the seed is odd, in the "
            "directory if it is even.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Kill workers and brokers while a stream runs; nothing may be missing, nothing different.

    In two minutes: --records 5000 --kills 6 --broker-kills 1 --rebalances 2 --pauses 1 --outages 0
    --all-kills 0 --partitions 0
    """
    seed = random.randrange(1_000_000) if seed is None else seed
    store = store or store_of(seed)
    wanted = Wanted(
        *(kills, broker_kills, rebalances, pauses, outages, outage_most, frozen, all_kills),
        *(partitions, poisons, bombs, foreign),
    )
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
