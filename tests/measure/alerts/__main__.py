"""The command ``python -m tests.measure.alerts``; its last line is the verdict."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from fluxplain.cli.interruption import until_interrupted
from tests.kit.command import Clock, say
from tests.measure.alerts.prometheus import Fired
from tests.measure.alerts.scenarios import SCENARIOS, Scenario
from tests.measure.alerts.site import Site
from tests.measure.alerts.table import problems, written

RESULTS = Path(__file__).parent / "results" / "README.md"


def alerts(
    names: Annotated[list[str] | None, typer.Argument(help="Scenarios; by default all.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the results; scenarios that it has are not run again.")
    ] = Path("build/alerts"),
    jobs: Annotated[int, typer.Option(min=1, help="Scenarios that run at the same time.")] = 4,
) -> None:
    """Run scenarios, compare what fired with what should, and write the table."""
    out.mkdir(parents=True, exist_ok=True)
    chosen = names or [*SCENARIOS]
    _run([name for name in chosen if not (out / f"{name}.json").exists()], out, jobs)
    results = {name: json.loads(file.read_text()) for name, file in _files(out)}
    RESULTS.write_text(written(results))
    wrong = [f"{name}: {each}" for name, found in results.items() for each in problems(name, found)]
    wrong += [f"{name}: no result" for name in chosen if name not in results]
    for each in wrong:
        say(each)
    say(f"FAIL: {len(wrong)} wrong" if wrong else "PASS: all fired as they should, and no other")
    sys.exit(bool(wrong))


def _run(waiting: list[str], out: Path, jobs: int) -> None:
    """Run scenarios as processes, so many at the same time."""
    clock, running = Clock(), dict[str, subprocess.Popen[bytes]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                clock.say(f"{name} begins")
                running[name] = _started(name, out)
            for name, process in [*running.items()]:
                if process.poll() is not None:
                    clock.say(f"{name} ends with status {process.returncode}")
                    del running[name]
            time.sleep(1.0)
    finally:
        for process in running.values():
            process.terminate()


def _started(name: str, out: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.measure.alerts", "--one", name, "--out", str(out)]
    with (out / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def one(name: str, out: Path) -> None:
    """Run one scenario and write what fired."""
    scenario: Scenario = SCENARIOS[name]
    with (
        tempfile.TemporaryDirectory(prefix=f"fluxplain-alerts-{name}-") as folder,
        Site(Path(folder), **scenario.tables) as site,
    ):
        site.start()
        site.pass_time(30.0)
        scenario.act(site)
        found = {
            "seconds": round(site.end_at - site.begin_at),
            "fired": [_relative(each, site) for each in site.prometheus.fired()],
            "now": sorted(site.prometheus.firing()),
        }
    (out / f"{name}.json").write_text(json.dumps(found))


def _relative(fired: Fired, site: Site) -> dict[str, str | int]:
    """Return an alert with its times since the begin and since the end of what was wrong."""
    times = {"after": fired.begin - site.begin_at, "until": fired.end - site.end_at}
    rounded = {name: round(seconds) for name, seconds in times.items()}
    return {"alert": fired.alert, "about": fired.about, **rounded}


def _files(out: Path) -> Iterator[tuple[str, Path]]:
    for name in SCENARIOS:
        if (file := out / f"{name}.json").exists():
            yield name, file


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        with until_interrupted():
            one(sys.argv[2], Path(sys.argv[4]))
    else:
        typer.run(alerts)
