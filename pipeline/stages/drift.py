"""The third stage: ADWIN watches the explanations and says when one has changed."""

from collections.abc import Sequence

from river.drift import ADWIN

from pipeline.config import Config
from pipeline.stages.base import Message
from pipeline.stages.limits import (
    MAX_NUMBER,
    check_key,
    check_length,
    check_order,
    check_origin,
    is_moderate,
)
from schemas import BadRecordError, Change, Explanation, Record


class DriftStage:
    """One ADWIN per (stream, feature, method) in one partition of ``explanations``.

    Drops explanations that it has already seen.

    References
    ----------
    iPDP (Muschalik et al. 2023), Section 4.1; Bifet, Gavaldà (2007), "Learning from Time-Changing
    Data with Adaptive Windowing".
    """

    def __init__(self, config: Config) -> None:
        self._source = config.topic("features")
        self._features = frozenset(config.explained)
        self._settings = config.drift
        self._states: dict[tuple[str, str, str], _Watch] = {}

    def decode(self, message: Message) -> Explanation:
        """Return the explanation.

        Raises
        ------
        BadRecordError
            If it is none, or of a stream or a feature that is not configured, or holds numbers
            that would spoil the window.
        """
        check_key(message)
        explanation = Explanation.decode(message.value)
        check_origin(self._source, self._features, explanation.stream, explanation.feature)
        check_length("ts", explanation.ts)
        check_order(explanation.previous_seq, explanation.seqs)
        if explanation.seqs[-1] != explanation.seq:
            raise BadRecordError(f"seqs must end with seq ({explanation.seq})")
        if not all(map(is_moderate, (explanation.value, *explanation.increments))):
            raise BadRecordError(
                f"value and increments must lie between -{MAX_NUMBER:g} and {MAX_NUMBER:g}"
            )
        return explanation

    def step(self, explanation: Explanation) -> Sequence[Record]:
        """Return the changes that this explanation shows."""
        key = (explanation.stream, explanation.feature, explanation.method)
        watch = self._states.get(key)
        if watch is None or (explanation.previous_seq is None and explanation.seqs[0] > watch.seq):
            # an explanation without a predecessor begins the stream, or begins it anew
            adwin = ADWIN(delta=self._settings.delta, grace_period=self._settings.grace_period)
            watch = self._states[key] = _Watch(adwin)
        if explanation.seq <= watch.seq:
            return []
        changes: list[Record] = []
        if explanation.previous_seq is not None and explanation.previous_seq > watch.seq:
            changes.append(_gap(explanation, watch.seq))
        signal = (
            # an explainer that began anew may group increments that were seen with new ones
            [
                (seq, increment)
                for seq, increment in zip(explanation.seqs, explanation.increments, strict=True)
                if seq > watch.seq
            ]
            if self._settings.signal == "increment"
            else [(explanation.seq, explanation.value)]
        )
        for seq, value in signal:
            before = watch.update(value)
            if before is not None:
                changes.append(self._change(explanation, watch, seq, before))
                watch.last_change = seq
        watch.seq = explanation.seq
        return changes

    def _change(self, e: Explanation, watch: "_Watch", seq: int, before: float) -> Change:
        after, window = watch.adwin.estimation, int(watch.adwin.width)
        direction = "rose" if after > before else "fell"
        return Change(
            stream=e.stream,
            kind="drift",
            seq=seq,
            previous_seq=watch.last_change,
            ts=e.ts,
            feature=e.feature,
            method=e.method,
            signal=self._settings.signal,
            before=before,
            after=after,
            window=window,
            value=e.value,
            std_error=e.std_error,
            detail=f"{e.method} of {e.feature} {direction} from {before:.4g} to {after:.4g}",
        )


class _Watch:
    """ADWIN of one signal, and how far it has read."""

    def __init__(self, adwin: ADWIN) -> None:
        self.adwin = adwin
        self.seq = -1
        self.last_change: int | None = None

    def update(self, value: float) -> float | None:
        """Return the mean of what ADWIN dropped from its window; None if it saw no change."""
        adwin = self.adwin
        total, width = adwin.total + value, adwin.width + 1
        adwin.update(value)
        # ADWIN forgets its detection at the next update: read it now
        if not adwin.drift_detected:
            return None
        return float((total - adwin.total) / (width - adwin.width))


def _gap(e: Explanation, seq: int) -> Change:
    missing = "its beginning" if seq < 0 else f"what follows seq {seq}"
    return Change.notice(
        kind="gap",
        stream=e.stream,
        seq=e.seq,
        previous_seq=None if seq < 0 else seq,
        ts=e.ts,
        feature=e.feature,
        method=e.method,
        detail=(
            f"explanations ({e.method} of {e.feature}) are lost: {missing}, "
            f"up to seq {e.previous_seq}; detection goes on at seq {e.seq}"
        ),
    )
