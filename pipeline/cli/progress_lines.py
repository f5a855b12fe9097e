"""Progress of long work: a bar in a terminal, else a line every few seconds."""

import time
from typing import Any

from rich.progress import Progress, TaskID

LINE_S = 10.0
"""Seconds between two lines."""


class ProgressLines(Progress):
    """A progress bar that prints lines where there is no terminal, as in a log."""

    _said_at: float | None = None

    def update(self, task_id: TaskID, *args: Any, **fields: Any) -> None:
        """Update a task."""
        super().update(task_id, *args, **fields)
        self._say_if_due(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """Advance a task."""
        super().advance(task_id, advance)
        self._say_if_due(task_id)

    def _say_if_due(self, task_id: TaskID) -> None:
        now = time.monotonic()
        if self.console.is_terminal or not self.live.is_started:
            return
        if self._said_at is None:
            self._said_at = now  # short work needs no line
        elif now - self._said_at >= LINE_S:
            self._said_at = now
            task = next(each for each in self.tasks if each.id == task_id)
            of = "" if task.total is None else f" of {task.total:,.0f}"
            text = f"{task.description}: {task.completed:,.0f}{of}"
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)
