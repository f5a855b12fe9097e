"""The size of a change, compared with all that a model relies on; small ones are left out."""

from dataclasses import replace

from fluxplain.drift.follow_up import LEAST_REVERSED, Series, effect_of, is_reversal, series_of
from fluxplain.schemas import Change, Incarnation
from fluxplain.schemas.record import Value


class EffectGate:
    """Leaves out the small changes of one stream; the next one begins where they began.

    So the level before a change is that after the last change that was published, and small steps
    add up. A change of a trend counts only if the effect reverses; steps add up only while the
    trends agree on no sign.

    Examples
    --------
    >>> gate = EffectGate(min_effect=0.1)
    >>> step = Change.notice(kind="drift", stream="features-0", seq=7, detail="", feature="a")
    >>> gate.passed(replace(step, before=1.0, after=1.08), others=0.0) is None
    True
    >>> change = gate.passed(replace(step, seq=9, before=1.08, after=1.15), others=0.0)
    >>> change.before, change.after, round(change.effect_size, 2)
    (1.0, 1.15, 0.13)
    """

    def __init__(self, min_effect: float) -> None:
        self._least = min_effect
        # series → incarnation and seq of its last change, and the first small one since
        self._last: dict[Series, tuple[Incarnation, int]] = {}
        self._small: dict[Series, Change] = {}

    def passed(
        self, change: Change, others: float = 0.0, spread: float | None = None
    ) -> Change | None:
        """Return the change with its effect size and predecessor, or None if it is too small.

        ``others`` and ``spread`` are as in :func:`~fluxplain.drift.follow_up.effect_of`.
        """
        key = series_of(change)
        small = self._small.get(key)
        if small is not None and _origin(small) != _origin(change):
            small = None
        if small is not None:
            change = _since(small, change)
        change = replace(change, effect_size=effect_of(change, others, spread))
        if self._is_small(change):
            self._small[key] = change if small is None else small
            if _has_clear_sign(change):
                del self._small[key]
            return None
        self._small.pop(key, None)
        incarnation, previous_seq = self._last.get(key, (change.incarnation, None))
        self._last[key] = change.incarnation, change.seq
        is_same = incarnation == change.incarnation
        return replace(change, previous_seq=previous_seq if is_same else None)

    def _is_small(self, change: Change) -> bool:
        if change.signal == "trend" and not is_reversal(change):
            return True
        return change.effect_size is not None and change.effect_size < self._least


def _has_clear_sign(change: Change) -> bool:
    """Return whether most curves agree with the reference, or are opposite to it, afterwards."""
    least = LEAST_REVERSED * abs(change.before or 0.0)
    return change.signal == "trend" and abs(change.after or 0.0) > least


def _origin(change: Change) -> tuple[Incarnation, Value | None]:
    return change.incarnation, change.category


def _since(small: Change, change: Change) -> Change:
    """Return a change that begins where a smaller one before it began."""
    before, after = small.before or 0.0, change.after or 0.0
    longer = change.seq - small.seq
    return replace(
        change,
        before=small.before,
        before_std_error=small.before_std_error,
        direction="rose" if after > before else "fell",
        delay_bound=None if small.delay_bound is None else longer + small.delay_bound,
        replay_seq=small.replay_seq,
        loss_before=small.loss_before,
        curve_before=small.curve_before,
    )
