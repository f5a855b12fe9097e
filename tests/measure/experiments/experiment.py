"""What an experiment is: independent tasks, and a report of their results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
class Line:
    """Our figures and the paper's, for the last lines of the command: few, and telling."""

    name: str
    ours: str
    paper: str

    def __str__(self) -> str:
        return f"{self.name}: ours {self.ours}; paper {self.paper}"


@dataclass(frozen=True)
class Report:
    """What the results say.

    The lines are what matters most, one for each of the paper's tables; the table, in Markdown, is
    ours beside the paper's; the sentence says whether ours is better than printed, equal or worse,
    and why.
    """

    lines: list[Line]
    table: str
    sentence: str
    draw: Callable[[Figure], None]


Results = Mapping[str, Any]
"""Key of the task → what its function returned, after a turn through JSON."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Its name is the stem of its files, its source where the paper has it (``iPFI, Table 1``). It is
    repeated as often as in the paper, or fewer times to save time (``runs``). The tasks of fewer
    runs are among those of more.
    """

    name: str
    title: str
    source: str
    runs: int
    tasks: Callable[[int], list[Task]]
    report: Callable[[Results], Report]


def seeded(function: Callable[..., Any], **parameters: Any) -> Callable[[int], list[Task]]:
    """Return what makes a task for each of the seeds from 1 to the number of runs.

    Examples
    --------
    >>> [(task.key, task.arguments) for task in seeded(print, alpha=0.1)(2)]
    [('run 1', {'alpha': 0.1, 'seed': 1}), ('run 2', {'alpha': 0.1, 'seed': 2})]
    """

    def tasks(runs: int) -> list[Task]:
        seeds = range(1, runs + 1)
        return [Task(f"run {seed}", function, {**parameters, "seed": seed}) for seed in seeds]

    return tasks


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown.

    Examples
    --------
    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
