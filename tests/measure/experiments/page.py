"""The page of all results, and their pictures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tests.measure.benchmarks.report import machine
from tests.measure.experiments.experiment import Experiment, Report
from tests.measure.experiments.results import ResultsFile, versions

PAGE = "README.md"

DPI = 150

HEAD = """# The papers' experiments

Written by `make experiments`, not by hand. Ours stands beside what the paper prints.
"""

SECTION = re.compile(r"^<!-- (\S+) -->\n(.*?)(?=^<!-- |\Z)", re.DOTALL | re.MULTILINE)
"""Name of the experiment, and what the page says of it."""


@dataclass(frozen=True)
class Section:
    """What the page says of one experiment.

    Attributes
    ----------
    experiment, report
        Which, and what it says.
    runs
        How many runs that is of.
    seconds
        How long all tasks took together.
    seeds
        Theirs.
    """

    experiment: Experiment
    report: Report
    runs: int
    seconds: float
    seeds: Sequence[int]

    @classmethod
    def of(cls, experiment: Experiment, file: ResultsFile, runs: int) -> "Section":
        """Return what the results of some runs say."""
        results = file.of(runs)
        arguments = [task.arguments for task in experiment.tasks(runs)]
        return cls(
            experiment,
            experiment.report({key: result.value for key, result in results.items()}),
            runs,
            sum(result.seconds for result in results.values()),
            sorted({each["seed"] for each in arguments if "seed" in each}),
        )


def write_page(folder: Path, names: Sequence[str], sections: Mapping[str, Section]) -> None:
    """Write the page and the pictures.

    Parameters
    ----------
    folder
        Where.
    names
        Of all experiments, in the order of the page.
    sections
        Name of the experiment → what to say of it now. What the page has of others stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE
    texts = dict(SECTION.findall(page.read_text(encoding="utf-8"))) if page.exists() else {}
    for name, section in sections.items():
        texts[name] = "\n".join(_section(section))
        if section.report.draw:
            figure = Figure(layout="constrained")
            FigureCanvasAgg(figure)
            section.report.draw(figure)
            figure.savefig(folder / _picture(section), dpi=DPI)
    parts = [HEAD]
    for name in names:
        text = texts.get(
            name, f"## {name}\n\nNot yet: `python -m tests.measure.experiments {name}`."
        )
        parts.append(f"<!-- {name} -->\n{text.strip()}\n")
    page.write_text("\n".join(parts), encoding="utf-8")


def _section(section: Section) -> Iterator[str]:
    experiment, report = section.experiment, section.report
    yield from (f"## {experiment.source}: {experiment.title}", "")
    yield from (report.sentence, "", report.table.strip(), "")
    if report.draw:
        yield from (f"![{experiment.title}]({_picture(section)})", "")
    runs = (
        f"{section.runs} of {experiment.runs}" if section.runs < experiment.runs else section.runs
    )
    where = ", ".join(f"{k} {v}" for k, v in ({"cpu": machine()["cpu"]} | versions()).items())
    yield (
        f"`{experiment.name}`: runs {runs}, {_seeds(section.seeds)}"
        f"{section.seconds / 60:.1f} minutes of computing on one core; {where}."
    )


def _seeds(seeds: Sequence[int]) -> str:
    if not seeds:
        return ""
    if list(seeds) == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 1:
        return f"seeds {seeds[0]} to {seeds[-1]}, "
    return f"seeds {', '.join(map(str, seeds))}, "


def _picture(section: Section) -> str:
    return f"{section.experiment.name}.png"
