"""Tasks that are the same but for their seed."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.measure.experiments.experiment import Task


def runs_of(function: Callable[..., Any], parameters: Mapping[str, Any], runs: int) -> list[Task]:
    """Return a task for each of the seeds 1 to ``runs``.

    Examples
    --------
    >>> [(task.key, task.arguments) for task in runs_of(print, {"alpha": 0.1}, 2)]
    [('run 1', {'alpha': 0.1, 'seed': 1}), ('run 2', {'alpha': 0.1, 'seed': 2})]
    """
    return [
        Task(f"run {seed}", function, {**parameters, "seed": seed}) for seed in range(1, runs + 1)
    ]
