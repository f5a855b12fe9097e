"""The figures as files: JSON of each part, and from all of them one table for people."""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from pydantic import TypeAdapter

from deploy.docs.words import table
from deploy.kafka.java import kafka_version
from tests.measure.benchmarks.timing import Figure

PACKAGES = ("fluxplain", "river", "numpy", "numba", "ixai", "confluent-kafka", "faust-streaming")

TABLE = "README.md"


@dataclass(frozen=True, slots=True)
class Part:
    """What one part has measured, how (``about``), and what the figures depend on (``machine``)."""

    name: str
    about: str
    machine: Mapping[str, str]
    figures: Sequence[Figure]

    def write(self, folder: Path) -> None:
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> Part:
    return TypeAdapter(Part).validate_json(path.read_bytes())


def write_table(folder: Path, order: Sequence[str]) -> None:
    """Write the table of the parts that are in a folder, in the given order of their names."""
    parts = [read(path) for name in order if (path := folder / f"{name}.json").is_file()]
    (folder / TABLE).write_text("\n".join(_lines(parts)) + "\n", encoding="utf-8")


def _lines(parts: Sequence[Part]) -> Iterator[str]:
    yield "# Figures"
    yield ""
    yield "Written by `make bench`, not by hand. The ratio is ours ÷ the other, or how many times"
    yield "we are faster if the line says so; in brackets its quartiles."
    machine: Mapping[str, str] = {}
    for part in parts:
        if part.machine != machine:
            machine = part.machine
            yield from ("", "Measured on: " + ", ".join(f"{k} {v}" for k, v in machine.items()))
        yield from ("", f"## {part.name}", "", part.about, "")
        rows = [(f.name, f.ours, f.other, f.ratio_text, f.bar or "") for f in part.figures]
        yield table(("what", "ours", "other", "ratio", "bar"), rows)


def machine() -> dict[str, str]:
    """Return what the figures depend on."""
    found = {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "kafka": kafka_version()}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "?")
