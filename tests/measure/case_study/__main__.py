"""The command ``python -m tests.measure.case_study``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tests.kit.command import Clock, say
from tests.measure.case_study.payments import Fault
from tests.measure.case_study.report import FAULTS, tables
from tests.measure.case_study.study import Plan, run

RESULTS = Path(__file__).with_name("results.json")

FIRST_SEED = 611


def case_study(
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each stream.")] = 20,
    out: Annotated[Path, typer.Option(help="File of the results.")] = RESULTS,
    kept: Annotated[bool, typer.Option("--kept", help="Run nothing: print what is there.")] = False,
) -> None:
    """Run the model and all monitors with and without the fault, and print the tables."""
    if not kept:
        write(out, measured(Plan(), range(FIRST_SEED, FIRST_SEED + seeds)))
    say(tables(json.loads(out.read_text(encoding="utf-8"))))


def measured(plan: Plan, seeds: range) -> dict[str, Any]:
    """Return the results of all streams with these seeds."""
    clock, runs = Clock(), []
    for seed in seeds:
        for fault in FAULTS:
            runs.append(_result(plan, fault, seed))
        clock.say(f"seed {seed}")
    return {"plan": plan._asdict(), "seconds": round(clock.elapsed_s()), "runs": runs}


def _result(plan: Plan, fault: Fault, seed: int) -> dict[str, Any]:
    found = run(plan, fault, seed)
    alarms = {
        arm: there
        for arm, features in found.alarms.items()
        if (there := {feature: places for feature, places in features.items() if places})
    }
    return {"fault": fault, "seed": seed, "accuracy": found.accuracy, "alarms": alarms}


def write(path: Path, results: dict[str, Any]) -> None:
    """Write the results, one run a line."""
    head = json.dumps({key: value for key, value in results.items() if key != "runs"})
    lines = ",\n".join(map(json.dumps, results["runs"]))
    path.write_text(f'{head[:-1]}, "runs": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    typer.run(case_study)
