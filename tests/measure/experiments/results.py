"""The results of an experiment as a file of JSON lines, so that it can be interrupted."""

import hashlib
import json
import platform
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.measure.experiments.code import code_behind
from tests.measure.experiments.experiment import Experiment, Task

PACKAGES = ("river", "numpy", "scikit-learn")


@dataclass(frozen=True)
class Result:
    """What a task returned, and how long it took."""

    key: str
    arguments: dict[str, Any]
    value: Any
    seconds: float


def versions() -> dict[str, str]:
    """Return what results depend on, beside our code, the data and their arguments."""
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def fingerprint(experiment: Experiment) -> str:
    """Return what is the same for results that belong together: code and versions.

    The arguments are compared one by one, so that more runs go on with the results of fewer; of
    the data :func:`~tests.measure.experiments.streams.elec2` allows no other copy.
    """
    functions = {(t.function.__module__, t.function.__qualname__) for t in experiment.tasks(1)}
    code = sorted(set().union(*(code_behind(*function) for function in functions)))
    return hashlib.sha256(json.dumps([versions(), code]).encode()).hexdigest()


class ResultsFile:
    """The results of an experiment, each saved as soon as it is there.

    Results of other code, versions or arguments do not count; the first new one replaces them. With
    ``kept``, those of other code or versions count too, and ``is_current`` says whether they are of
    this one: such a file can be reported, but not added to.
    """

    def __init__(self, folder: Path, experiment: Experiment, *, kept: bool = False) -> None:
        self.path = folder / f"{experiment.name}.jsonl"
        self.is_current = True
        self._experiment = experiment
        self._kept = kept
        self._header = {"fingerprint": fingerprint(experiment), "versions": versions()}
        self._results = self._read()

    def _read(self) -> dict[str, Result]:
        try:
            header, *lines = self.path.read_text(encoding="utf-8").splitlines()
            if json.loads(header)["fingerprint"] != self._header["fingerprint"]:
                self.is_current = False
                if not self._kept:
                    return {}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return {}
        results = {}
        for line in lines:
            with suppress(ValueError, TypeError):  # a line that was cut off
                result = Result(**json.loads(line))
                results[result.key] = result
        return results

    def add(self, task: Task, value: Any, seconds: float) -> None:
        assert not self._kept
        value = json.loads(json.dumps(value))
        self._results[task.key] = Result(task.key, task.arguments, value, round(seconds, 1))
        lines = [json.dumps(each) for each in (self._header, *map(vars, self._results.values()))]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        new.replace(self.path)

    def missing(self, runs: int) -> list[Task]:
        """Return the tasks of that many runs that have no result yet."""
        return [task for task in self._experiment.tasks(runs) if not self._has(task)]

    def _has(self, task: Task) -> bool:
        result = self._results.get(task.key)
        return result is not None and result.arguments == task.arguments

    def complete_runs(self) -> int:
        """Return of how many runs all results are there, however many were asked for."""
        runs = 0
        while not self.missing(runs + 1):
            runs += 1
        return runs

    def of(self, runs: int) -> dict[str, Result]:
        """Return the results of that many runs, which must be there."""
        return {task.key: self._results[task.key] for task in self._experiment.tasks(runs)}
