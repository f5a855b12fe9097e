"""The third stage: detectors watch the explanations; a change becomes a record."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from fluxplain.config import Config
from fluxplain.drift.detectors import Signal
from fluxplain.drift.history import ThinnedHistory
from fluxplain.drift.incidents import Incidents
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.schemas import (
    BadRecordError,
    Change,
    Explanation,
    Incarnation,
    Record,
    is_newer,
)
from fluxplain.schemas.change import Curve
from fluxplain.schemas.methods import Method
from fluxplain.schemas.numbers import MAX_NUMBER, is_moderate
from fluxplain.stages.chain import Chain, Gap, Sight
from fluxplain.stages.limits import check_length, check_order
from fluxplain.stages.stage import Message
from fluxplain.stages.streams import KeyedStage

LIVES = 2
"""Number of incarnations of a stream's model that are followed: the newest and the one before."""


class DriftStage(KeyedStage[Explanation]):
    """One detector per (stream, feature, method) in one partition of ``explanations``.

    All explanations of a stream are in one partition. A change is published once all features have
    reached the seq at which one changed: then its rank and its incident are known, whatever the
    order in which the features arrived.

    Of several smoothing rates the first is watched: all share the same increments. Explanations
    taken before are ignored. Missing ones are published as a gap; if they arrive later, detection
    has continued without them, and they become dead letters.

    References
    ----------
    iPDP (Muschalik et al. 2023), Section 4.1; Bifet, Gavaldà (2007), "Learning from Time-Changing
    Data with Adaptive Windowing".
    """

    INPUT, RESUMES = Explanation, "detection resumes"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._alphas = config.explain.alphas
        self._seed = config.seed
        self._drift = config.drift
        self._detectors = {method: config.detector(method) for method in get_args(Method)}
        self._lives: dict[str, dict[int, _Stream]] = {}

    def check(self, record: Explanation) -> None:
        """Raise ``BadRecordError`` for another alpha, disorder, or a number or time too large."""
        if record.alpha not in self._alphas:
            raise BadRecordError(f"alpha {record.alpha} is not configured")
        check_length("ts", record.ts)
        check_order(record.previous_seq, record.seqs or [record.seq])
        if record.seqs and record.seqs[-1] > record.seq:
            raise BadRecordError(f"seqs must not go beyond seq ({record.seq})")
        numbers = (record.value, record.loss or 0.0, *record.increments)
        if not all(map(is_moderate, numbers)):
            raise BadRecordError(
                f"value, increments and loss must lie between -{MAX_NUMBER:g} and {MAX_NUMBER:g}"
            )

    def step(self, record: tuple[Message, Explanation]) -> Sequence[Record]:
        """Feed an explanation to its detector; return the changes that are now due."""
        message, e = record
        if e.alpha != self._alphas[0]:
            return []
        stream = self._stream(e)
        if stream is None or stream.is_over(e):
            return []
        records = self._watched(stream, message, e)
        return [*records, *stream.incidents.advance(e.feature, e.seq)]

    def _stream(self, e: Explanation) -> "_Stream | None":
        """Return the state of the stream for an explanation's model; None if that is outdated.

        The incarnation starts with the number of the model's state. After a restart from scratch,
        explanations of the old and of the new state arrive in any order.
        """
        lives = self._lives.setdefault(e.stream, {})
        number = int(e.incarnation.split("/")[0])
        if number not in lives:
            if len(lives) == LIVES and number < min(lives):
                return None
            window, least = self._drift.incident_window, self._drift.min_effect
            lives[number] = _Stream(Incidents(self._explained, window, least))
            if len(lives) > LIVES:
                del lives[min(lives)]
        return lives[number]

    def _watched(self, stream: "_Stream", message: Message, e: Explanation) -> Sequence[Record]:
        """Feed the detector; return the gap notice and the dead letter, if any."""
        state = self._state(stream, e)
        read, watch = state.chain.newest, state.watch
        is_late, gap = state.take(e)
        records: list[Record] = []
        if watch is not None:
            what = f"({e.method} of {e.feature})"
            if is_late:
                later = "came after later ones: detection has continued without it"
                records.append(message.dead_letter(f"an explanation {what} {later}"))
            if e.seq > read and gap is not None and e.previous_seq is not None:
                records.append(self.gap_notice(e, gap, e.seq, e.ts, f"explanations {what}"))
        if e.seq > read:
            stream.remember_curve(e)
            if watch is not None:
                _detect(stream, watch, e, read)
        return records

    def _state(self, stream: "_Stream", e: Explanation) -> "_State":
        """Return the detector; an explanation without a predecessor begins with a new one."""
        state = stream.states.get((e.feature, e.method))
        if state is None or (e.previous_seq is None and e.first_seq > state.chain.newest):
            settings = self._detectors[e.method]
            seed = f"{self._seed}/{e.stream}/{e.feature}/{e.method}"
            chain = Chain() if state is None else state.chain
            state = _State(SignalWatch(settings, seed) if settings else None, chain)
            stream.states[e.feature, e.method] = state
        return state


@dataclass(slots=True)
class _State:
    """The detector of one explanation, and the seqs taken."""

    watch: SignalWatch | None
    chain: Chain = field(default_factory=Chain)

    def take(self, e: Explanation) -> tuple[bool, Gap | None]:
        """Take an explanation's seqs; return whether a new one was late, and the gap before it."""
        seqs = e.seqs if e.seqs and e.seqs[-1] == e.seq else [*e.seqs, e.seq]
        read, previous, is_late, left = self.chain.next, e.previous_seq, False, None
        for seq in seqs:
            # a restarted explainer may regroup seqs
            is_late |= seq < read and self.chain.see(seq) is not Sight.SEEN
            gap = self.chain.take(seq, previous)
            left, previous = left or gap, seq
        return is_late, left


@dataclass(slots=True)
class _Stream:
    """The detectors of one stream and one state of its model.

    Attributes
    ----------
    incidents
        Ranks and groups its changes.
    incarnations
        Feature or pair → newest incarnation of its explanations; a newer one resets its detectors.
        It may differ between features: an explainer that starts cold has only some of them.
    states
        (feature, method) → detector.
    curves
        Feature or pair → history of its iPDP.
    """

    incidents: Incidents
    incarnations: dict[str, Incarnation] = field(default_factory=dict)
    states: dict[tuple[str, Method], _State] = field(default_factory=dict)
    curves: dict[str, ThinnedHistory[Curve]] = field(default_factory=dict)

    def is_over(self, e: Explanation) -> bool:
        """Return whether a newer incarnation has begun; begin the explanation's if it is new."""
        newest = self.incarnations.setdefault(e.feature, e.incarnation)
        if is_newer(newest, than=e.incarnation):
            return True
        if newest != e.incarnation:
            self.incarnations[e.feature] = e.incarnation
            self.curves.pop(e.feature, None)
            for key in [key for key in self.states if key[0] == e.feature]:
                del self.states[key]
        return False

    def remember_curve(self, e: Explanation) -> None:
        if e.grid and e.effect:
            errors = e.effect_std_error
            curve = Curve(e.seq, e.grid, e.effect, e.classes, e.second_grid, errors)
            self.curves.setdefault(e.feature, ThinnedHistory()).add(e.seq, curve)

    def with_curves(self, change: Change, seq: int) -> Change:
        curves = self.curves.get(change.feature or "")
        if curves is None or change.after_seq is None:
            return change
        before, after = curves.at(change.after_seq), curves.at(seq)
        return replace(change, curve_before=before, curve_after=after)


def _detect(stream: _Stream, watch: SignalWatch, e: Explanation, read: int) -> None:
    """Feed the numbers after seq ``read``; add the changes to the stream's incidents."""
    for seq, number in _numbers(e, watch.signal, read):
        shift = watch.update(seq, number, e.loss)
        if shift:
            change = watch.change(
                shift,
                stream=e.stream,
                seq=seq,
                ts=e.ts,
                method=e.method,
                feature=e.feature,
                value=e.value,
                std_error=e.std_error,
                model_version=e.model_version,
                incarnation=e.incarnation,
            )
            stream.incidents.add(e.seq, stream.with_curves(change, e.seq))
    if e.seqs:
        stream.incidents.note(e.feature, e.method, e.seq, watch.mean)


def _numbers(e: Explanation, signal: Signal, read: int) -> list[tuple[int, float]]:
    """Return the new numbers of an explanation, as (seq, number)."""
    if signal == "value":
        return [(e.seq, e.value)] if e.seqs else []
    # a restarted explainer may group known increments with new ones
    numbers = zip(e.seqs, e.increments, strict=True)
    return [(seq, increment) for seq, increment in numbers if seq > read]
