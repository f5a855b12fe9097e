"""The third stage: detectors watch the explanations and say when one has changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from pipeline.config import Config
from pipeline.detectors import Signal
from pipeline.stages.base import Message
from pipeline.stages.limits import (
    MAX_NUMBER,
    check_key,
    check_length,
    check_order,
    check_origin,
    is_moderate,
)
from pipeline.stages.watch import Watch
from schemas import BadRecordError, Change, Explanation, Record
from schemas.explanation import Method


class DriftStage:
    """One detector per (stream, feature, method) in one partition of ``explanations``.

    Drops explanations that it has already seen, and those of methods that are not watched.

    References
    ----------
    iPDP (Muschalik et al. 2023), Section 4.1; Bifet, Gavaldà (2007), "Learning from Time-Changing
    Data with Adaptive Windowing".
    """

    def __init__(self, config: Config) -> None:
        self._source = config.topic("features")
        self._explained = frozenset(config.explained)
        self._seed = config.seed
        self._detectors = {method: config.drift.of(method) for method in get_args(Method)}
        self._states: dict[tuple[str, str, str], _State] = {}

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
        check_origin(self._source, self._explained, explanation.stream, explanation.feature)
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
        settings = self._detectors[explanation.method]
        if settings is None:
            return []
        key = (explanation.stream, explanation.feature, explanation.method)
        state = self._states.get(key)
        if state is None or (explanation.previous_seq is None and explanation.seqs[0] > state.seq):
            # an explanation without a predecessor begins the stream, or begins it anew
            seed = f"{self._seed}/{'/'.join(key)}"
            state = self._states[key] = _State(Watch(settings, seed))
        if explanation.seq <= state.seq:
            return []
        changes: list[Record] = []
        if explanation.previous_seq is not None and explanation.previous_seq > state.seq:
            changes.append(_gap(explanation, state.seq))
        for seq, number in _signal(explanation, settings.signal, state.seq):
            shift = state.watch.update(number)
            if shift:
                changes.append(
                    state.watch.change(
                        shift,
                        stream=explanation.stream,
                        seq=seq,
                        ts=explanation.ts,
                        method=explanation.method,
                        feature=explanation.feature,
                        value=explanation.value,
                        std_error=explanation.std_error,
                    )
                )
        state.seq = explanation.seq
        return changes


@dataclass(slots=True)
class _State:
    """How one explanation is watched, and how far it was read."""

    watch: Watch
    seq: int = -1


def _signal(e: Explanation, signal: Signal, read: int) -> list[tuple[int, float]]:
    """Return what an explanation brings that is new, with its seqs."""
    if signal == "value":
        return [(e.seq, e.value)]
    # an explainer that began anew may group increments that were seen with new ones
    numbers = zip(e.seqs, e.increments, strict=True)
    return [(seq, increment) for seq, increment in numbers if seq > read]


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
