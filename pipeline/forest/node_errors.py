"""The errors of an adaptive tree's nodes, and whether those of an alternate tree are smaller."""

import math

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.places import fill
from fluxplain.forest.regression import moments
from fluxplain.forest.state import ERROR, MEANS, SEEN, State

SMALLER, SIMILAR, LARGER, UNDEFINED = range(4)
"""How an alternate tree's errors compare with the main tree's; undefined where River would raise.
"""


@compiled
def is_regression(state: State) -> bool:
    """Return whether the trees predict numbers."""
    return state.settings.prediction >= MEANS


@compiled
def see_error(state: State, node: int, error: float) -> bool:
    """Update the errors of a node; return whether their mean has become smaller."""
    errors = state.adaptive.errors[node]
    before = errors[ERROR]
    moments.see(errors, error, 1.0)
    return bool(before > errors[ERROR])


@compiled
def forget_errors(state: State, node: int) -> None:
    """Start the errors of a node again."""
    fill(state.adaptive.errors[node], 0.0)


@compiled
def by_bound(main: Floats, other: Floats, significance: float) -> int:
    """Compare shares of wrong predictions by a bound on their difference.

    References
    ----------
    Bifet and Gavaldà (2009), Adaptive Learning from Evolving Data Streams.
    """
    share, logarithm = main[ERROR], math.log(2.0 / significance)
    part = 1.0 / other[SEEN] + 1.0 / main[SEEN]
    bound = math.sqrt(2.0 * share * (1.0 - share) * logarithm * part)
    if bound < share - other[ERROR]:
        return SMALLER
    return LARGER if bound < other[ERROR] - share else SIMILAR


@compiled
def by_z_test(main: Floats, other: Floats, significance: float) -> int:
    """Compare means of absolute errors by a z-test."""
    if main[SEEN] == 0.0 or other[SEEN] == 0.0:
        return UNDEFINED
    squared = moments.variance(other) / other[SEEN] + moments.variance(main) / main[SEEN]
    if squared == 0.0:
        return UNDEFINED
    z = (other[ERROR] - main[ERROR]) / math.sqrt(squared)
    if not 2.0 * (0.5 * (1.0 + math.erf(-abs(z) / math.sqrt(2.0)))) <= significance:
        return SIMILAR
    return SMALLER if other[ERROR] < main[ERROR] else LARGER


@compiled
def compared(state: State, node: int, alternate: int, least: float, significance: float) -> int:
    """Return how an alternate tree's errors compare with the main tree's.

    Until both have seen more than ``least`` errors, they are similar.
    """
    main, other = state.adaptive.errors[node], state.adaptive.errors[alternate]
    if not (other[SEEN] > least and main[SEEN] > least):
        return SIMILAR
    if is_regression(state):
        return by_z_test(main, other, significance)
    return by_bound(main, other, significance)
