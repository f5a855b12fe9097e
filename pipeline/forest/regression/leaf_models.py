"""The linear models of leaves: River's ``LinearRegression``, trained by gradient descent."""

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.state import Integers, Models, State


@borrowing
def dot(weight: Floats, intercept: float, x: Floats, features: Integers) -> float:
    """Return a model's prediction; ``features`` are those of ``x``, in its order."""
    total = 0.0
    for k in range(len(features)):
        total += x[k] * weight[features[k]]
    return total + intercept


@borrowing
def clamped(number: float, limit: float) -> float:
    """Return the number within ±limit, as Python's ``min`` and ``max`` do."""
    found = limit if limit < number else number
    return -limit if -limit > found else found


@compiled
def fit(state: State, leaf: int, x: Floats, features: Integers, y: float, w: float) -> None:
    """Let a leaf's model learn an observation."""
    models, settings = state.models, state.settings
    weight, known = models.weight[leaf], models.known[leaf]
    error = dot(weight, models.intercept[leaf], x, features) - y
    slope = clamped(2.0 * error * w, settings.clip)
    models.intercept[leaf] -= settings.intercept_rate * slope
    models.steps[leaf] += 1
    for k in range(len(features)):
        feature = features[k]
        known[feature] = True
        gradient = x[k] * slope
        if settings.l2 != 0.0:
            gradient += settings.l2 * weight[feature]
        weight[feature] -= settings.rate * gradient


@compiled
def copy_model(models: Models, source: int, to: int) -> None:
    """Copy a leaf's model."""
    models.weight[to], models.known[to] = models.weight[source], models.known[source]
    models.intercept[to], models.steps[to] = models.intercept[source], models.steps[source]
    models.errors[to] = models.errors[source]
