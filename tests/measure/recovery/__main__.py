"""The command ``python -m tests.measure.recovery``; its last line is the verdict."""

import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated

import typer

from fluxplain.cli.supervisor import ROLES
from fluxplain.config.replica import Role
from tests.kit.command import Clock, execute, say
from tests.measure.recovery.all_killed import BACK_S, Back, all_killed
from tests.measure.recovery.bench import Bench, Gone, Outputs, Stopped
from tests.measure.recovery.load import Load

TAKEOVER_S = 15.0
"""Promised: the session timeout, and what joining, loading and catching up need."""

SHUTDOWN_S = 10.0
"""Promised: Kubernetes and systemd wait longer before they kill."""

Measure = Callable[[Role], Gone | Stopped]


def recovery(
    repetitions: Annotated[
        int, typer.Option(min=1, help="Repetitions of each event, for each role.")
    ] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the moments at which events happen.")] = 1,
    single: Annotated[
        bool, typer.Option(help="Kill, stop and restart single workers of each role.")
    ] = True,
    all_at_once: Annotated[
        int, typer.Option(min=0, help="Number of times to kill all brokers and workers at once.")
    ] = 5,
) -> None:
    """Kill, stop and restart workers under load; all must resume within the promised time."""

    def work(folder: Path, clock: Clock) -> Sequence[str]:
        problems: list[str] = []
        if single:
            with ExitStack() as stack:
                load = Load(stack, folder, clock, 1)
                load.workers.start(2)
                outputs = stack.enter_context(closing(Outputs(load.config)))
                problems.extend(_measure(Bench(load, outputs, seed), clock, repetitions))
        if all_at_once:
            problems.extend(_all_at_once(all_killed(folder, clock, all_at_once, seed)))
        # every worker of an overloaded machine is slow
        averages = " ".join(f"{each:.1f}" for each in os.getloadavg())
        say(f"load average of the {os.cpu_count()} cores: {averages}")
        return problems

    execute(
        "recovery",
        work,
        passed=f"every takeover took less than {TAKEOVER_S:.0f} s, "
        f"every shutdown less than {SHUTDOWN_S:.0f} s",
    )


def _measure(bench: Bench, clock: Clock, repetitions: int) -> Sequence[str]:
    """Do everything, and return what is not as promised."""
    lines: list[str] = []
    problems: list[str] = []

    def measure(what: str, times: Measure, promised_s: float | None = None) -> None:
        for role in ROLES:
            measured = []
            for i in range(repetitions):
                measured.append(times(role))
                clock.say(f"{what} {role}, {i + 1} of {repetitions}: {measured[-1]}")
            lines.append(_line(f"{what} {role}", measured, promised_s))
            problems.extend(_broken(f"{what} {role}", measured, promised_s))

    measure("takeover", bench.takeover, TAKEOVER_S)
    for role in ROLES:
        bench.remove(role)
    measure("shutdown", bench.shutdown, SHUTDOWN_S)
    measure("restart", bench.restart)
    bench.start_anew_as_static_members()
    measure("restart of a static member,", bench.restart)
    say("")
    for line in lines:
        say(line)
    return problems


def _all_at_once(measured: Sequence[Back]) -> list[str]:
    """Print how long everything took to resume, and return what took too long."""
    what = "all brokers and workers killed at once: committed again after the cluster answers"
    say("")
    say(
        f"{what}, every role: {_spread([each.seconds for each in measured])}, "
        f"promised < {BACK_S:.0f} s"
    )
    ended = [status for each in measured for _, status in each.deaths]
    say(f"workers that ended by themselves meanwhile: {len(ended)}")
    return [
        f"after all was killed it took {each.seconds:.1f} s until every role committed"
        for each in measured
        if each.seconds >= BACK_S
    ]


def _spread(seconds: Sequence[float]) -> str:
    return f"median {statistics.median(seconds):.1f} s ({min(seconds):.1f} – {max(seconds):.1f})"


def _line(what: str, measured: Sequence[Gone | Stopped], promised_s: float | None) -> str:
    line = f"{what}: {_spread([each.seconds for each in measured])}"
    if promised_s is not None:
        line += f", promised < {promised_s:.0f} s"
    stops = [each for each in measured if isinstance(each, Stopped)]
    if stops:
        line += (
            f"; exit status {', '.join(map(str, sorted({stop.status for stop in stops})))}, "
            f"{sum(stop.uncommitted for stop in stops):,} left uncommitted, "
            f"{sum(stop.repeated for stop in stops):,} published again"
        )
    return line


def _broken(what: str, measured: Sequence[Gone | Stopped], promised_s: float | None) -> list[str]:
    """Return the promises that were not kept."""
    problems = []
    for each in measured:
        if promised_s is not None and each.seconds >= promised_s:
            problems.append(f"{what} took {each.seconds:.1f} s")
        if isinstance(each, Stopped) and (each.status or each.uncommitted or each.repeated):
            problems.append(f"{what}: {each}")
    return problems


if __name__ == "__main__":
    typer.run(recovery)
