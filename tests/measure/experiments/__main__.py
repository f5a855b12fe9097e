"""The command ``python -m tests.measure.experiments``: the papers' figures, ours beside theirs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fluxplain.cli.interruption import until_interrupted
from tests.kit.command import say
from tests.measure.experiments import (
    drift,
    ipdp_agrawal,
    ipdp_batch,
    ipdp_elec2,
    ipdp_hyperplane,
    ipfi_table_1,
    ipfi_tables_2_and_3,
    isage_elec2,
    isage_imputers,
    isage_sensors,
    isage_table_2,
    label_free,
)
from tests.measure.experiments.experiment import Experiment
from tests.measure.experiments.page import PAGE, draw, section, write_page
from tests.measure.experiments.results import ResultsFile
from tests.measure.experiments.runner import run_missing

MODULES = (
    *(ipfi_table_1, ipfi_tables_2_and_3),
    *(isage_table_2, isage_imputers, isage_elec2, isage_sensors),
    *(ipdp_elec2, ipdp_hyperplane, ipdp_agrawal, ipdp_batch),
    *(drift, label_free),
)
"""In the order of the page."""

EXPERIMENTS = tuple(map(Experiment.of, MODULES))


def experiments(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, as listed by --list; by default all.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of each; by default as listed by --list.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 2,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of the results, existing and new.")
    ] = Path("tests/measure/experiments/results"),
    kept: Annotated[
        bool,
        typer.Option("--kept", help="Run nothing: report the results there are, of any code."),
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List names, sources, runs and titles, then exit.")
    ] = False,
) -> None:
    """Run the experiments without a result, and write tables and figures of all results.

    An interrupted run resumes. DATA names the folder of elec2.csv.gz and
    weather.csv.gz, by default ../shared/data.
    """
    if list_:
        for each in EXPERIMENTS:
            say(f"{each.name}  {each.source}, runs {each.runs}: {each.title}")
        return
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if unknown := [name for name in names or () if name not in known]:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    with until_interrupted() as interruption:
        failures = run_and_report(EXPERIMENTS, chosen, runs=runs, jobs=jobs, out=out, kept=kept)
        sys.exit(1 if failures else 0)
    say("interrupted: the results so far are kept, and the next run goes on with them")
    sys.exit(interruption.status)


def run_and_report(
    catalogue: Sequence[Experiment],
    chosen: Sequence[Experiment],
    *,
    runs: int | None,
    jobs: int,
    out: Path,
    kept: bool = False,
) -> list[str]:
    """Run the chosen experiments, update the page, print their tables, and return what failed.

    With ``kept`` nothing is run: the results there are count, also those of other code.
    """
    files = {each.name: ResultsFile(out, each, kept=kept) for each in chosen}
    asked = {each.name: runs or each.runs for each in chosen}
    failures = [] if kept else run_missing(files, runs=asked, jobs=jobs)
    sections = {}
    for each in chosen:
        # fewer runs than there are results of would make the page poorer
        if complete := files[each.name].complete_runs():
            results = files[each.name].of(complete)
            report = each.report({key: result.value for key, result in results.items()})
            draw(each, report, out)
            is_current = files[each.name].is_current or not kept
            sections[each.name] = section(each, report, results, complete, is_current=is_current)
            say(f"{each.name}: {report.sentence}\n{report.table}")
    write_page(out, [each.name for each in catalogue], sections)
    for failure in failures:
        say(f"failed: {failure}")
    say(f"tables and pictures: {out / PAGE}")
    return failures


if __name__ == "__main__":
    typer.run(experiments)
