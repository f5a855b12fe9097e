"""The third stage: detectors watch the explanations; a change becomes a record."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from fluxplain.config import Config
from fluxplain.drift.agreement import agreement
from fluxplain.drift.behind import with_what_is_behind
from fluxplain.drift.curve_history import CurveHistory
from fluxplain.drift.evidence import EARLIER
from fluxplain.drift.follow_up import Outcome
from fluxplain.drift.incidents import Followed, Incidents
from fluxplain.drift.noticed import noticed
from fluxplain.drift.recent_observations import Recent
from fluxplain.drift.regimes import Regimes
from fluxplain.drift.sentences import sentence
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.schemas import (
    BadRecordError,
    Change,
    Explanation,
    Incarnation,
    Record,
    is_newer,
)
from fluxplain.schemas.change import Curve, Signal
from fluxplain.schemas.methods import Method
from fluxplain.schemas.numbers import MAX_NUMBER, are_moderate
from fluxplain.schemas.record import MAX_RECORD_BYTES, Value, incarnation_key
from fluxplain.stages.chain import Chain, Gap, Sight
from fluxplain.stages.limits import check_contrasts, check_length, check_order
from fluxplain.stages.stage import Message
from fluxplain.stages.streams import KeyedStage

LIVES = 2
"""Number of incarnations of a stream's model that are followed: the newest and the one before."""


class DriftStage(KeyedStage[Explanation]):
    """One detector per (stream, feature, method) in one partition of ``explanations``.

    Of iPDP there is a second one, for the trends: it finds effects that reverse.

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
        self._anchored = config.explain.of("ipdp").grid_settings().is_anchored
        self._drift = config.drift
        self._detectors = {method: config.detector(method) for method in get_args(Method)}
        self._categorical = config.categorical
        self._emit_every = config.explain.emit_every
        self._n_series = sum(len(config.methods_of(name)) for name in config.explained)
        # a change is followed up for long, and compared with as many before it
        self._length = 3 * self._drift.follow_up + EARLIER
        self._lives: dict[str, dict[int, _Stream]] = {}

    def check(self, record: Explanation) -> None:
        """Raise ``BadRecordError`` for another alpha, disorder, or a number or time too large."""
        if record.alpha not in self._alphas:
            raise BadRecordError(f"alpha {record.alpha} is not configured")
        check_length("ts", record.ts)
        check_order(record.previous_seq, record.seqs or [record.seq])
        if record.seqs and record.seqs[-1] > record.seq:
            raise BadRecordError(f"seqs must not go beyond seq ({record.seq})")
        numbers = [record.value, record.loss or 0.0, *record.increments, *(record.trends or ())]
        values = record.values or ()
        texts = [each for each in (*values, *(record.ids or ())) if isinstance(each, str)]
        check_length("a value or an id", max(texts, key=len, default=""))
        if record.feature not in self._categorical:
            numbers += map(_as_number, values)
        check_contrasts(record.contrasts or (), record.seqs)
        if not are_moderate(numbers):
            raise BadRecordError(
                "value, increments, trends, values and loss must lie between "
                f"-{MAX_NUMBER:g} and {MAX_NUMBER:g}"
            )

    def step(self, record: tuple[Message, Explanation]) -> Sequence[Record]:
        """Feed an explanation to its detector; return the changes that are now due."""
        message, e = record
        if e.alpha != self._alphas[0]:
            return []
        stream = self._stream(e)
        if stream is None or stream.is_over(e, self._continues):
            return []
        records = self._watched(stream, message, e)
        changes = stream.incidents.advance(e.feature, e.seq)
        records += [self._finished(stream, change) for change in changes]
        stream.recent.forget(stream.incidents.oldest)
        return records

    def _finished(self, stream: "_Stream", change: Change) -> Change:
        """Return a change with what is behind it, and its sentence, as far as it fits."""
        change = with_what_is_behind(change, stream.recent, self._drift.follow_up, str(self._seed))
        change = stream.regimes.compared(change, stream.recent)
        change = replace(change, detail=sentence(change))
        if len(change.encode()) <= MAX_RECORD_BYTES:
            return change
        return replace(change, curve_before=None, curve_after=None)

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
            earlier = max((each for each in lives if each < number), default=None)
            if earlier is not None and self.continues_model(e.stream, e.incarnation, str(earlier)):
                lives[number] = lives[earlier]
            else:
                lives[number] = self._new_stream()
            if len(lives) > LIVES:
                del lives[min(lives)]
        return lives[number]

    def _continues(self, stream: str, incarnation: Incarnation, before: Incarnation) -> bool:
        """Return whether explanations have the states of ``before``, with other versions.

        The partition that their explainer read is not known here, so a cold start of any explainer
        in between counts.
        """
        now, then = incarnation_key(incarnation)[-1], incarnation_key(before)[-1]
        return (
            self.lives is not None
            and self.continues_model(stream, incarnation, before)
            and self.lives.continues(now, then, "explainer")
        )

    def _new_stream(self) -> "_Stream":
        window, least = self._drift.incident_window, self._drift.min_effect
        incidents = Incidents(self._explained, window, least)
        recent = Recent(self._categorical, self._n_series, self._emit_every, self._length)
        return _Stream(incidents, recent, self._anchored)

    def _watched(self, stream: "_Stream", message: Message, e: Explanation) -> list[Record]:
        """Feed the detector; return the gap notice and the dead letter, if any."""
        state = self._state(stream, e)
        read, watches = state.chain.newest, state.watches
        is_late, gap = state.take(e)
        records: list[Record] = []
        if watches:
            what = f"({e.method} of {e.feature})"
            if is_late:
                later = "came after later ones: detection has continued without it"
                records.append(message.dead_letter(f"an explanation {what} {later}"))
            if e.seq > read and gap is not None and e.previous_seq is not None:
                records.append(self.gap_notice(e, gap, e.seq, e.ts, f"explanations {what}"))
        if e.seq > read:
            stream.remember_curve(e)
            stream.recent.add(e, read)
            for watch in watches:
                _detect(stream, watch, e, read)
            if watches and e.seqs:
                stream.incidents.note(e.feature, e.method, e.seq, watches[0].mean)
        return records

    def _state(self, stream: "_Stream", e: Explanation) -> "_State":
        """Return the detector; an explanation without a predecessor begins with a new one."""
        state = stream.states.get((e.feature, e.method))
        if state is None or (e.previous_seq is None and e.first_seq > state.chain.newest):
            settings = self._detectors[e.method]
            seed = f"{self._seed}/{e.stream}/{e.feature}/{e.method}"
            chain = Chain() if state is None else state.chain
            each = [settings] if settings else []
            if settings and e.trends is not None:
                each.append(replace(settings, signal="trend"))
            watches = [SignalWatch(one, seed, self._drift.follow_up) for one in each]
            state = _State(watches, chain)
            stream.states[e.feature, e.method] = state
        return state


@dataclass(slots=True)
class _State:
    """The detectors of one explanation, none if it is not watched, and the seqs taken."""

    watches: list[SignalWatch]
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
    recent
        Its newest observations.
    regimes
        The periods that its changes ended.
    anchored
        Whether points of curves stay where they are.
    incarnations
        Feature or pair → newest incarnation of its explanations; a newer one resets its detectors.
        It may differ between features: an explainer that starts cold has only some of them.
    states
        (feature, method) → detector.
    curves
        Feature or pair → history of its iPDP.
    """

    incidents: Incidents
    recent: Recent
    anchored: bool
    regimes: Regimes = field(default_factory=Regimes)
    incarnations: dict[str, Incarnation] = field(default_factory=dict)
    states: dict[tuple[str, Method], _State] = field(default_factory=dict)
    curves: dict[str, CurveHistory] = field(default_factory=dict)

    def is_over(
        self, e: Explanation, continues: Callable[[str, Incarnation, Incarnation], bool]
    ) -> bool:
        """Return whether a newer incarnation has begun; begin the explanation's if it is new.

        Detectors start again, unless it ``continues`` the one before.
        """
        newest = self.incarnations.setdefault(e.feature, e.incarnation)
        if is_newer(newest, than=e.incarnation):
            return True
        if newest != e.incarnation:
            self.incarnations[e.feature] = e.incarnation
            if continues(e.stream, e.incarnation, newest):
                return False
            self.curves.pop(e.feature, None)
            for key in [key for key in self.states if key[0] == e.feature]:
                del self.states[key]
        return False

    def remember_curve(self, e: Explanation) -> None:
        """Keep an explanation's curve, if it has one."""
        if e.grid:
            self.curves.setdefault(e.feature, CurveHistory(e.alpha, anchored=self.anchored)).add(e)

    def curves_around(self, feature: str, seq: int) -> tuple[Curve | None, Curve | None]:
        """Return the curve of a feature at a seq, and that of the later observations alone."""
        history = self.curves.get(feature)
        return (None, None) if history is None else history.around(seq)


def _as_number(value: Value | None) -> float:
    """Return a number, 0 for a missing one; NaN for a text."""
    return math.nan if isinstance(value, str) else value or 0.0


def _detect(stream: _Stream, watch: SignalWatch, e: Explanation, read: int) -> None:
    """Feed the numbers after seq ``read``; add the changes to the stream's incidents."""
    seqs, numbers = _numbers(e, watch.signal, read)
    # a change of the loss was noticed before the last of these
    loss_changed_seq = e.loss_changed_seq if seqs[-1:] == [e.seq] else None
    for seq, found in watch.update_run(seqs, numbers, e.loss, e.model_version, loss_changed_seq):
        before, after = stream.curves_around(e.feature, found.after_seq)
        if isinstance(found, Outcome):
            series = e.feature, e.method, watch.signal
            stream.incidents.add(e.seq, Followed(series, e.incarnation, found, after))
            continue
        change = noticed(
            found,
            signal=watch.signal,
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
        curves = replace(change, curve_before=before, curve_after=after)
        stream.incidents.add(e.seq, curves)


def _numbers(e: Explanation, signal: Signal | None, read: int) -> tuple[list[int], list[float]]:
    """Return the new numbers of an explanation, with their seqs."""
    if signal == "value":
        return ([e.seq], [e.value]) if e.seqs else ([], [])
    # a restarted explainer may group known observations with new ones
    first = bisect_right(e.seqs, read)
    if signal == "trend":
        trends = (e.trends or [])[first:]
        return (e.seqs[first:] if trends else []), [*map(agreement, trends)]
    return e.seqs[first:], e.increments[first:]
