"""The page of all results, and their pictures."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tests.measure.benchmarks.report import machine
from tests.measure.experiments.experiment import Experiment, Report
from tests.measure.experiments.results import Result, versions

PAGE = "README.md"

DPI = 150

HEAD = """# The papers' experiments

Written by `make experiments`, not by hand. Ours stands beside what the paper prints.
"""

SECTION = re.compile(r"^<!-- (\S+) -->\n(.*?)(?=^<!-- |\Z)", re.DOTALL | re.MULTILINE)
"""Name of the experiment, and what the page says of it."""


def write_page(folder: Path, names: Sequence[str], sections: Mapping[str, str]) -> None:
    """Write the page.

    The sections are by name of the experiment, and come in the order of the names. What the page
    has of others stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE
    texts = dict(SECTION.findall(page.read_text(encoding="utf-8"))) if page.exists() else {}
    texts |= sections
    parts = [HEAD]
    for name in names:
        missing = f"## {name}\n\nNot yet: `python -m tests.measure.experiments {name}`."
        parts.append(f"<!-- {name} -->\n{texts.get(name, missing).strip()}\n")
    page.write_text("\n".join(parts), encoding="utf-8")


def draw(experiment: Experiment, report: Report, folder: Path) -> None:
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    report.draw(figure)
    figure.savefig(folder / f"{experiment.name}.png", dpi=DPI)


def section(
    experiment: Experiment,
    report: Report,
    results: Mapping[str, Result],
    runs: int,
    *,
    is_current: bool = True,
) -> str:
    """Return what the page says of one experiment: the results of so many runs."""
    seeds = sorted({r.arguments["seed"] for r in results.values() if "seed" in r.arguments})
    ends = " to ".join(str(seed) for seed in dict.fromkeys((seeds[0], seeds[-1])))
    of_all = f" of {experiment.runs}" if runs < experiment.runs else ""
    minutes = sum(result.seconds for result in results.values()) / 60
    where = ", ".join(f"{k} {v}" for k, v in ({"cpu": machine()["cpu"]} | versions()).items())
    return "\n\n".join(
        [
            f"## {experiment.source}: {experiment.title}",
            report.sentence,
            report.table.strip(),
            f"![{experiment.title}]({experiment.name}.png)",
            f"`{experiment.name}`: runs {runs}{of_all}, seeds {ends}, "
            f"{minutes:.1f} minutes of computing on one core; {where}."
            + ("" if is_current else " The results are those of an earlier version of the code."),
        ]
    )
