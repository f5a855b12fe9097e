"""What was measured, as files, and as one table for people."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deploy.docs.words import table
from tests.models.kinds import KINDS
from tests.models.run import Result

Results = dict[str, tuple[Result, Mapping[str, str]]]
"""Kind → what was measured, and on which machine."""

RESULTS = Path(__file__).parent / "results"

HEAD = """# Models through the pipeline

Written by `make models`, not by hand. Each kind learned its stream through all roles on Kafka, with
all three methods; what was published was compared with the reference, bit for bit. What a column
means is beneath the table.
"""

COLUMNS: dict[str, Callable[[Result], str]] = {
    "model": lambda result: result.title,
    "labels": lambda result: result.label,
    "adapter": lambda result: f"`{result.adapter}`" if ":" in result.adapter else result.adapter,
    "evaluator": lambda result: result.evaluator,
    "predictions": lambda result: result.figure,
    "iPFI: first": lambda result: result.ipfi,
    "iSAGE: first": lambda result: result.isage,
    "records/s": lambda result: f"{result.rate:.0f}",
    "asking ÷ learning": lambda result: _ratio(result.ratio),
    "state": lambda result: f"{result.state / 1024:,.0f} KiB",
    "records": lambda result: f"{result.records:,}",
    "published": lambda result: f"{result.published:,}",
    "differ": lambda result: f"{result.different:,}",
    "broker": lambda result: result.broker,
}

SHORT = (*list(COLUMNS)[:7], "differ")
"""Columns of the table in ``deploy/docs/models.md``."""

FEET = """
- **labels**: `label.type`. Classes: loan applications (`river:Agrawal?classification_function=1`,
  where salary and age decide). Numbers: Friedman's function (`x0` to `x4` count). `none`: pressures
  at eight sensors, of which `sensor_3` breaks after nine tenths; for classes of sensors whether it
  is broken.
- **predictions**: accuracy, mean absolute error, or the mean score before the fault and after.
- **first**: the most important feature at the end, and its value, in units of the loss (Brier, the
  absolute error, or minus the score).
- **records/s**: through all roles, on one machine, the broker too, and whatever else it did then.
- **asking ÷ learning**: seconds in which the model is asked, for the prediction and for all three
  methods, for each second of learning.
- **state**: of the model role after the last record: the model, and the reservoirs.
- **differ**: records that are not as in the reference.
"""


def write(folder: Path, name: str, result: Result, machine: Mapping[str, str]) -> None:
    """Write one result, in place of that kind's before, and the table of all."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": dict(machine), **asdict(result)}, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    (folder / "README.md").write_text("\n".join(_lines(folder)) + "\n", encoding="utf-8")


def read(folder: Path) -> Results:
    """Return all results, in the order of the table."""
    found = {}
    for name in KINDS:
        path = folder / f"{name}.json"
        if path.is_file():
            fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            machine = fields.pop("machine")
            found[name] = Result(**fields), machine
    return found


def short_table(folder: Path) -> str:
    """Return the table of ``deploy/docs/models.md``."""
    return _table(read(folder), SHORT)


def _lines(folder: Path) -> Iterator[str]:
    results = read(folder)
    yield HEAD
    yield _table(results, list(COLUMNS))
    yield FEET
    machines = {json.dumps(machine): machine for _, machine in results.values()}
    for machine in machines.values():
        yield "Measured on: " + ", ".join(f"{key} {value}" for key, value in machine.items())


def _table(results: Results, columns: Sequence[str]) -> str:
    rows = [[COLUMNS[column](result) for column in columns] for result, _ in results.values()]
    return table(columns, rows)


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:,.{0 if ratio > 10 else 1}f}"
