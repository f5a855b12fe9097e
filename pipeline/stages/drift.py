"""The third stage: detectors watch the explanations and say when one has changed, and how."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from pipeline.config import Config
from pipeline.detectors import Signal
from pipeline.stages.base import Message
from pipeline.stages.incidents import Incidents
from pipeline.stages.limits import check_key, check_length, check_order, check_origin
from pipeline.stages.thinned import Thinned
from pipeline.stages.watch import Watch
from schemas import BadRecordError, Change, Explanation, Record
from schemas.change import Curve
from schemas.explanation import Method
from schemas.numbers import MAX_NUMBER, is_moderate


class DriftStage:
    """One detector per (stream, feature, method) in one partition of ``explanations``.

    All explanations of a stream are in one partition. A change is published as soon as all features
    are as far as the one that changed: then its rank among them is known, and which changes belong
    to one incident, whatever the order in which the features came.

    Of several smoothing rates the first is watched: the increments are the same with all of them.
    Drops explanations that it has already seen, and those that are not watched.

    References
    ----------
    iPDP (Muschalik et al. 2023), Section 4.1; Bifet, Gavaldà (2007), "Learning from Time-Changing
    Data with Adaptive Windowing".
    """

    INPUT = Explanation

    def __init__(self, config: Config) -> None:
        self._source = config.topic(config.source)
        self._explained = config.explained
        self._alphas = config.explain.alphas
        self._seed = config.seed
        self._window = config.drift.incident_window
        self._detectors = {method: config.drift.of(method) for method in get_args(Method)}
        self._streams: dict[str, _Stream] = {}

    def decode(self, message: Message) -> Explanation:
        """Return the explanation.

        Raises
        ------
        BadRecordError
            If it is none, or of a stream, a feature or a smoothing rate that is not configured, or
            holds numbers that would spoil the window.
        """
        check_key(message)
        return self.accept(message, Explanation.of(message.fields()))

    def accept(self, _message: Message, explanation: Explanation) -> Explanation:
        """Return the explanation, once decoded; raises as :meth:`decode`."""
        check_origin(self._source, self._explained, explanation.stream, explanation.feature)
        if explanation.alpha not in self._alphas:
            raise BadRecordError(f"alpha {explanation.alpha} is not configured")
        check_length("ts", explanation.ts)
        check_order(explanation.previous_seq, explanation.seqs or [explanation.seq])
        if explanation.seqs and explanation.seqs[-1] > explanation.seq:
            raise BadRecordError(f"seqs must not go beyond seq ({explanation.seq})")
        numbers = (explanation.value, explanation.loss or 0.0, *explanation.increments)
        if not all(map(is_moderate, numbers)):
            raise BadRecordError(
                f"value, increments and loss must lie between -{MAX_NUMBER:g} and {MAX_NUMBER:g}"
            )
        return explanation

    def step(self, explanation: Explanation) -> Sequence[Record]:
        """Return the changes that this explanation shows, or that waited for it."""
        if explanation.alpha != self._alphas[0]:
            return []
        stream = self._streams.get(explanation.stream)
        if stream is None:
            stream = self._streams[explanation.stream] = _Stream(
                Incidents(self._explained, self._window)
            )
        records = self._watched(stream, explanation)
        return [*records, *stream.incidents.advance(explanation.feature, explanation.seq)]

    def _watched(self, stream: "_Stream", explanation: Explanation) -> list[Change]:
        """Feed the detector; return what is to be said at once."""
        feature, method, seq = explanation.feature, explanation.method, explanation.seq
        settings = self._detectors[method]
        state = stream.states.get((feature, method))
        if state is None or (
            explanation.previous_seq is None and explanation.first_seq > state.seq
        ):
            # an explanation without a predecessor begins the stream, or begins it anew
            seed = f"{self._seed}/{explanation.stream}/{feature}/{method}"
            state = _State(Watch(settings, seed) if settings else None)
            stream.states[feature, method] = state
        if seq <= state.seq:
            return []
        gaps = []
        before = explanation.previous_seq
        if state.watch is not None and before is not None and before > state.seq:
            gaps.append(_gap(explanation, state.seq))
        _remember_curve(stream, explanation)
        if state.watch is not None and settings is not None:
            for own_seq, number in _signal(explanation, settings.signal, state.seq):
                shift = state.watch.update(own_seq, number, explanation.loss)
                if shift:
                    change = state.watch.change(
                        shift,
                        stream=explanation.stream,
                        seq=own_seq,
                        ts=explanation.ts,
                        method=method,
                        feature=feature,
                        value=explanation.value,
                        std_error=explanation.std_error,
                    )
                    change = replace(change, model_version=explanation.model_version)
                    curves = stream.curves.get(feature)
                    stream.incidents.add(seq, _with_curves(change, curves, seq))
            if explanation.seqs:
                stream.incidents.note(feature, method, seq, state.watch.mean)
        state.seq = seq
        return gaps


@dataclass(slots=True)
class _State:
    """How one explanation is watched, and how far it was read."""

    watch: Watch | None
    seq: int = -1


@dataclass(slots=True)
class _Stream:
    """What is known of one stream.

    Attributes
    ----------
    incidents
        What brings its features together.
    states
        (feature, method) → how it is watched.
    curves
        Feature or pair → its iPDP at several times.
    """

    incidents: Incidents
    states: dict[tuple[str, Method], _State] = field(default_factory=dict)
    curves: dict[str, Thinned[Curve]] = field(default_factory=dict)


def _remember_curve(stream: _Stream, e: Explanation) -> None:
    if e.grid and e.effect:
        curve = Curve(e.seq, e.grid, e.effect, e.classes, e.second_grid)
        stream.curves.setdefault(e.feature, Thinned()).add(e.seq, curve)


def _with_curves(change: Change, curves: Thinned[Curve] | None, seq: int) -> Change:
    if curves is None or change.after_seq is None:
        return change
    return replace(change, curve_before=curves.at(change.after_seq), curve_after=curves.at(seq))


def _signal(e: Explanation, signal: Signal, read: int) -> list[tuple[int, float]]:
    """Return what an explanation brings that is new, with its seqs."""
    if signal == "value":
        return [(e.seq, e.value)] if e.seqs else []
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
