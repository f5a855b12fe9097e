"""Which features are coloured, and how: the same in all panels of a figure."""

from pipeline.monitor.history import Point, StreamHistory
from pipeline.monitor.plots.style import BACKGROUND, LINE, LOOKS, TEXT_PT, Look
from schemas.explanation import Method

PANEL_IN = 1.95
"""Height of a panel of importances, in inches."""

IMPORTANT = 0.15
"""Share of the largest importance that a feature must reach, in one method, to be coloured."""

MAX_COLORED = int(PANEL_IN * 72 / (LINE * TEXT_PT)) - 1
"""Features whose labels fit beside a panel, above that of the others."""


def feature_looks(state: StreamHistory) -> dict[str, Look]:
    """Return how each feature looks, the same in all panels; the most important come first."""
    shares = dict.fromkeys(state.features, 0.0)
    for method in state.methods:
        peaks = {feature: _peak(state, feature, method) for feature in state.features}
        largest = max(peaks.values()) or 1.0
        for feature, peak in peaks.items():
            shares[feature] = max(shares[feature], peak / largest)
    ranked = sorted(shares, key=lambda f: -shares[f])
    colored = min(MAX_COLORED, len(LOOKS))
    return {
        feature: LOOKS[rank] if shares[feature] >= IMPORTANT and rank < colored else BACKGROUND
        for rank, feature in enumerate(ranked)
    }


def _peak(state: StreamHistory, feature: str, method: Method) -> float:
    """Return what the importance reaches for a tenth of the time, or at the end."""
    values = [abs(point.value) for point in settled(state, feature, method)]
    return max(sorted(values)[9 * len(values) // 10], values[-1]) if values else 0.0


def points_of(state: StreamHistory, feature: str, method: Method) -> list[Point]:
    """Return the course of an explanation; nothing if there is none."""
    series = state.series.get((feature, method))
    return series.points if series is not None else []


def settled(state: StreamHistory, feature: str, method: Method) -> list[Point]:
    """Return the points without the first ones, which are means of a few observations."""
    points = points_of(state, feature, method)
    return points[len(points) // 20 :]
