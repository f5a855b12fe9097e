"""How urgent a change is."""

from typing import get_args

from fluxplain.config.alert_settings import Severity
from fluxplain.schemas import Change

IMPORTANT = 0.1
"""Share of all importance from which on an explanation's change is important; of the loss, the
share by which it rises."""

BROKEN = 0.3
"""Distance of two distributions from which on inputs or predictions have changed altogether."""

_LEVELS: tuple[Severity, ...] = get_args(Severity)


def severity(change: Change) -> Severity:
    """Return how urgent a change is.

    ``"high"``: the loss rose by a tenth or more; or an explanation changed by a tenth of all
    importance or reversed, and the loss rose, too, or is not known; or values outside of all before
    are behind it; or inputs or predictions are distributed quite differently; or observations were
    lost, a role started cold, or fields are missing. ``"medium"``: an explanation changed as much,
    and the loss did not rise, or it changed less, and the loss rose; or the loss rose by less; or
    inputs or predictions changed somewhat.
    ``"low"``: all else.

    Examples
    --------
    >>> gap = Change.notice(kind="gap", stream="features-0", seq=7, detail="some were lost")
    >>> severity(gap)
    'high'
    """
    if change.is_notice:
        return "high" if change.kind in {"gap", "cold-start", "schema"} else "low"
    if change.is_of_distribution:
        return "high" if _is_large(change.effect_size, BROKEN) else "medium"
    if change.method == "loss":
        return _of_loss(change)
    important = change.signal == "trend" or _is_large(change.effect_size, IMPORTANT)
    rose = _rose(change.loss_before, change.loss_after)
    if any(each.feature is not None for each in change.evidence or ()):
        return "high"
    if important:
        return "medium" if rose is False else "high"
    return "medium" if rose else "low"


def _of_loss(change: Change) -> Severity:
    if _rose(change.before, change.after) is not False:
        return "high"
    return "medium" if change.direction == "rose" else "low"


def is_at_least(one: Severity, least: Severity) -> bool:
    """Return whether a severity is as high as another one.

    Examples
    --------
    >>> is_at_least("medium", "low"), is_at_least("medium", "high")
    (True, False)
    """
    return urgency(one) >= urgency(least)


def urgency(level: Severity) -> int:
    """Return a severity as a number, to compare it."""
    return _LEVELS.index(level)


def _is_large(effect: float | None, least: float) -> bool:
    return effect is None or effect >= least


def _rose(before: float | None, after: float | None) -> bool | None:
    """Return whether the loss rose by a tenth or more; None if it is not known."""
    if before is None or after is None:
        return None
    return after - before > IMPORTANT * abs(before)
