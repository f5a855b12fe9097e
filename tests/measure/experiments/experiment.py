"""What an experiment is: independent tasks, and a report of their results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Self

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Task:
    """One run, in a process of its own.

    The key is unique within the experiment, such as ``"agrawal/order 3"``. The function is one of a
    module, so that it can be pickled; its keyword arguments are JSON. The report names ``seed``.
    """

    key: str
    function: Callable[..., Any]
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Report:
    """The results: a Markdown table beside the paper's, a verdict with its reason, a picture."""

    table: str
    sentence: str
    draw: Callable[[Figure], None]


Results = Mapping[str, Any]
"""Key of the task → what its function returned, after a round trip through JSON."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    ``name`` is the stem of its files, ``source`` its place in the paper (``iPFI, Table 1``).
    ``runs`` are as many as in the paper, or fewer to save time. The tasks of fewer runs are among
    those of more.
    """

    name: str
    title: str
    source: str
    runs: int
    tasks: Callable[[int], list[Task]]
    report: Callable[[Results], Report]

    @classmethod
    def of(cls, module: ModuleType) -> Self:
        """Return the experiment that a module defines by ``RUNS``, ``tasks`` and ``report``.

        The first line of its docstring is ``SOURCE: TITLE.``
        """
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        source, title = str(module.__doc__).partition(".\n")[0].split(": ", 1)
        return cls(name, title, source, module.RUNS, module.tasks, module.report)


def seeded(function: Callable[..., Any], **parameters: Any) -> Callable[[int], list[Task]]:
    """Return a function from the number of runs to their tasks, with the seeds from 1 on.

    Examples
    --------
    >>> [(task.key, task.arguments) for task in seeded(print, alpha=0.1)(2)]
    [('run 1', {'alpha': 0.1, 'seed': 1}), ('run 2', {'alpha': 0.1, 'seed': 2})]
    """

    def tasks(runs: int) -> list[Task]:
        seeds = range(1, runs + 1)
        return [Task(f"run {seed}", function, {**parameters, "seed": seed}) for seed in seeds]

    return tasks
