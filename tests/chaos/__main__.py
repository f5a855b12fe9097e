"""The command ``python -m tests.chaos``; its last line is the verdict."""

import random
import signal
import sys
from typing import Annotated, NoReturn

import typer

from tests.chaos.run import Options, Run, Store
from tests.chaos.schedule import Wanted

DEFAULTS = Wanted()

Times = Annotated[int, typer.Option(min=0)]


def chaos(
    seed: Annotated[
        int | None, typer.Option(envvar="SEED", help="Of the schedule and the stream.")
    ] = None,
    records: Annotated[int, typer.Option(min=100, help="Observations in all.")] = 20_000,
    rate: Annotated[float, typer.Option(min=1, help="Of each of two partitions, a second.")] = 50,
    kills: Times = DEFAULTS.kills,
    broker_kills: Times = DEFAULTS.broker_kills,
    rebalances: Times = DEFAULTS.rebalances,
    pauses: Times = DEFAULTS.pauses,
    store: Annotated[Store, typer.Option(help="Where the checkpoints are.")] = "directory",
) -> None:
    """Kill workers and brokers while a stream runs; nothing may be missing, nothing different.

    In two minutes: --records 5000 --kills 6 --broker-kills 1 --rebalances 2 --pauses 1
    """
    seed = random.randrange(1_000_000) if seed is None else seed
    wanted = Wanted(kills, broker_kills, rebalances, pauses)
    print(f"seed {seed}", flush=True)
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _interrupt)
    try:
        problems = Run(Options(seed, records, rate, wanted, store), _say).problems()
    except KeyboardInterrupt:
        _say(f"INTERRUPTED (seed {seed})")
        sys.exit(130)
    if problems:
        _say(f"FAIL: {'; '.join(problems)} (seed {seed})")
        sys.exit(1)
    _say(f"PASS: nothing missing, nothing different (seed {seed})")


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    # once is enough: a second one must not interrupt the cleaning up
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    typer.run(chaos)
