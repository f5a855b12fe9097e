"""The command ``python -m tests.benchmarks``: one line a figure, and all of them as JSON."""

import json
import os
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from tests.benchmarks import library, pipeline
from tests.benchmarks.timing import Figure
from tests.command import say

PARTS: dict[str, Callable[[], Iterator[Figure]]] = {
    "pfi": library.pfi_and_training,
    "full": library.full_sets,
    "features": library.by_features,
    "pipeline": pipeline.throughput,
}

PACKAGES = ("fluxplain", "river", "numpy", "ixai", "confluent-kafka", "faust-streaming", "aiokafka")


def bench(
    parts: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(PARTS)}; all by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the figures as JSON.")
    ] = None,
) -> None:
    """Measure what explaining costs, beside learning and beside others."""
    unknown = sorted(set(parts or ()) - set(PARTS))
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(PARTS)}")
    machine = _machine()
    say(", ".join(f"{name} {value}" for name, value in machine.items()))
    figures: list[Figure] = []
    for part in parts or PARTS:
        for figure in PARTS[part]():
            figures.append(figure)
            say(figure.line())
    if out is not None:
        report = {"machine": machine, "figures": [figure.as_json() for figure in figures]}
        out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def _machine() -> dict[str, str]:
    """Return what the figures depend on."""
    found = {"python": platform.python_version(), "cores": str(os.cpu_count()), "cpu": _cpu()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "?")


if __name__ == "__main__":
    typer.run(bench)
