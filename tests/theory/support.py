"""Models and weights of which everything is known."""

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.evaluate import Observation, Table, Value
from pipeline.evaluate.inputs import Floats


class Sum:
    """Evaluator of a model that adds up all features."""

    def __call__(self, x: Observation, replacements: Sequence[Mapping[str, Value]]) -> list[float]:
        return [float(sum(map(float, {**x, **each}.values()))) for each in replacements]

    def evaluate_rows(self, x: Observation, rows: Floats) -> Table:
        return Table((None,), rows.sum(axis=1)[:, None])


def weights(alpha: float, n: int) -> Floats:
    """Return the weights of n increments in the debiased estimate, the oldest first."""
    w: Floats = alpha * (1.0 - alpha) ** np.arange(n - 1.0, -1.0, -1.0)
    w /= w.sum()
    return w
