"""What an experiment is: independent tasks, and a report of their results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Task:
    """One run, in a process of its own.

    Attributes
    ----------
    key
        Unique within the experiment, such as ``"agrawal/geometric/run 3"``.
    function
        A function of a module, so that it can be pickled.
    arguments
        Its keyword arguments, as JSON. An argument ``seed`` is named in the report.
    """

    key: str
    function: Callable[..., Any]
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Line:
    """Figures that the paper prints, for the last lines of the command: few, and telling.

    Attributes
    ----------
    name, ours, paper
        What it is of, and both figures.
    """

    name: str
    ours: str
    paper: str

    def __str__(self) -> str:
        return f"{self.name}: ours {self.ours}; paper {self.paper}"


@dataclass(frozen=True)
class Report:
    """What the results say.

    Attributes
    ----------
    lines
        What matters most, one line for each of the paper's tables.
    table
        The whole table in Markdown, ours beside the paper's.
    sentence
        Whether ours is better than printed, equal or worse, and why.
    draw
        Draws the picture; None for none.
    """

    lines: list[Line]
    table: str
    sentence: str
    draw: Callable[[Figure], None] | None = None


class Experiment(Protocol):
    """An experiment of a paper."""

    @property
    def name(self) -> str:
        """The stem of its files, such as ``ipfi-table-1``."""
        ...

    @property
    def title(self) -> str:
        """What it shows, on one line."""
        ...

    @property
    def source(self) -> str:
        """Where the paper has it, such as ``iPFI, Table 1``."""
        ...

    @property
    def runs(self) -> int:
        """How often it is repeated: as often as in the paper, or fewer times to save time."""
        ...

    def tasks(self, runs: int) -> list[Task]:
        """Return the tasks of that many runs; those of fewer runs are among them."""
        ...

    def report(self, results: Mapping[str, Any]) -> Report:
        """Return what the results of all tasks of some runs say.

        Parameters
        ----------
        results
            Key of the task → what its function gave, after a turn through JSON.
        """
        ...
