"""What was measured, as files, and as one table for people."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.experiments.tables import table
from tests.models.kinds import KINDS
from tests.models.run import Result

RESULTS = Path(__file__).parent / "results"

HEAD = """# Models through the pipeline

Written by `make models`, not by hand. Each kind learned its stream through all roles on Kafka, with
all three methods; what was published was compared with the reference, bit for bit. What a column
means is beneath the table.
"""

COLUMNS = (
    "model",
    "labels",
    "adapter",
    "evaluator",
    "predictions",
    "iPFI: first",
    "iSAGE: first",
    "records/s",
    "asking ÷ learning",
    "state",
    "records",
    "published",
    "differ",
    "broker",
)

SHORT = (*COLUMNS[:7], "differ")
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


def read(folder: Path) -> dict[str, tuple[Result, Mapping[str, str]]]:
    """Return kind → what was measured, and on which machine; in the order of the table."""
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
    rows = [_row(result) for result, _ in read(folder).values()]
    shown = [COLUMNS.index(column) for column in SHORT]
    return table(SHORT, [[row[place] for place in shown] for row in rows])


def _lines(folder: Path) -> Iterator[str]:
    results = read(folder)
    yield HEAD
    yield table(COLUMNS, [_row(result) for result, _ in results.values()])
    yield FEET
    machines = {json.dumps(machine): machine for _, machine in results.values()}
    for machine in machines.values():
        yield "Measured on: " + ", ".join(f"{key} {value}" for key, value in machine.items())


def _row(result: Result) -> list[str]:
    return [
        result.title,
        result.label,
        f"`{result.adapter}`" if ":" in result.adapter else result.adapter,
        result.evaluator,
        result.figure,
        result.ipfi,
        result.isage,
        f"{result.rate:.0f}",
        "–" if result.ratio is None else f"{result.ratio:,.{0 if result.ratio > 10 else 1}f}",
        f"{result.state / 1024:,.0f} KiB",
        f"{result.records:,}",
        f"{result.published:,}",
        f"{result.different:,}",
        result.broker,
    ]
