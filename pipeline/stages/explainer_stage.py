"""The second stage: evaluations become increments, and increments become explanations."""

from bisect import bisect_right
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TypeVar

from fluxplain.config import Config
from fluxplain.explain.curve import IceCurves
from fluxplain.schemas import (
    BadRecordError,
    DeadLetter,
    Evaluation,
    Explanation,
    Record,
    is_newer,
    parse_stream,
)
from fluxplain.schemas.dead_letter import CANNOT_EXPLAIN
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.methods import Method
from fluxplain.schemas.numbers import is_moderate
from fluxplain.schemas.record import MAX_RECORD_BYTES
from fluxplain.stages.chain import Sight
from fluxplain.stages.estimates import FeatureState, Pending
from fluxplain.stages.limits import (
    MAX_RUN,
    NUMBER_BYTES,
    SHORT_TEXT,
    check_at_most,
    check_contrasts,
    check_length,
    check_order,
)
from fluxplain.stages.method_code import reach_of
from fluxplain.stages.stage import Message
from fluxplain.stages.streams import KeyedStage

T = TypeVar("T")

SILENCE = 1000
"""Observations after which a feature without an explanation gets one without news: ranks and
incidents wait for each feature."""


MOST_VALUES = 256
"""Most observations in an explanation that has their values and ids."""

TEXT_BYTES = 6 * SHORT_TEXT + 3
"""Longest value or id in JSON, in bytes, with its comma."""


class ExplainerStage(KeyedStage[Evaluation]):
    """Keeps the explanations of every (stream, feature) in one partition of ``evaluations``.

    iPFI and iSAGE explain a group of features like a single one. Each smoothing rate has its own
    explanation, of the same increments.

    Evaluations taken before are ignored, so a run published again after a crash counts once.
    Missing ones are published as a gap; if they arrive later, the estimates have continued without
    them, and they become dead letters.
    """

    INPUT, RESUMES = Evaluation, "explanations resume"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._categorical = config.are_categorical
        self._players = config.players.names
        ipdp = config.explain.of("ipdp")
        self._ice, self._anchored = ipdp.ice, ipdp.grid_settings().is_anchored
        self._loss = config.loss()
        self._alphas = config.explain.alphas
        self._reaches = {method: reach_of(method, config) for method in config.explain.methods}
        self._emit_every = config.explain.emit_every
        self._silence = max(SILENCE, self._emit_every)
        self._methods = {name: config.methods_of(name) for name in config.explained}
        self._has_values = self._emit_every <= MOST_VALUES
        size = NUMBER_BYTES * 3 + self._has_values * 2 * TEXT_BYTES
        self._room = MAX_RECORD_BYTES - size * self._emit_every
        self._states: dict[tuple[str, str], FeatureState] = {}
        # kept in checkpoints: a stream that restarts begins with it again
        self._learned: dict[str, FeatureState] = config.learned("estimates") or {}

    def check(self, record: Evaluation) -> None:
        """Raise ``BadRecordError`` if a run is too long, disordered, or has too long a time."""
        n = len(record.seqs)
        if n > MAX_RUN:
            raise BadRecordError(f"seqs has {n:,} items, but at most {MAX_RUN} may be")
        check_order(record.previous_seq, record.seqs)
        for contrasts in (record.contrasts or {}).values():
            check_contrasts(contrasts, record.seqs)
        for ts in record.ts:
            check_length("ts", ts)
        if self._categorical[record.feature] == (False,):
            for each in record.values or ():
                if isinstance(each, str) or not is_moderate(each or 0.0):
                    raise BadRecordError(f"values of {record.feature} must be moderate numbers")
        for name in ("values", "ids"):
            for each in getattr(record, name) or ():
                if isinstance(each, str):
                    check_at_most(f"an item of {name}", len(each), "characters", SHORT_TEXT)

    def step(self, record: tuple[Message, Evaluation]) -> Sequence[Record]:
        """Return the explanations that are due, in the order of their seq.

        An observation with an increment that is not finite becomes a dead letter and changes no
        estimate.
        """
        message, run = record
        state = self._state_of(run)
        if state is None:
            return []  # of an earlier incarnation
        first = bisect_right(run.seqs, state.chain.newest)  # repeated ones come first
        records: list[Record] = [*self._late(state, message, run, first)] if first else []
        if first == len(run.seqs):
            return records
        state.set_model(run.model_version)
        gap = state.take(run, first)
        if gap is not None and run.previous_seq is not None:
            lost = f"evaluations of {run.feature}"
            records.append(self.gap_notice(run, gap, run.seqs[0], run.ts[0], lost))
        reading = state.read(run, first, self._loss, self._room)
        for i in range(first, len(run.seqs)):
            due: list[Explanation] = []
            if i in reading.errors:
                records.append(_unusable(message, run.single(i), reading.errors[i]))
            else:
                for method in state.queue(reading, run, i):
                    if len(state.pending[method].seqs) >= self._emit_every:
                        due += self._explanations(state, run, i, method)
            state.silent = 0 if due else state.silent + 1
            if state.silent >= self._silence:
                due = self._after_silence(state, run, i)
            records += due
        for method in state.pending:
            state.smooth(method)
        return records

    def _state_of(self, run: Evaluation) -> FeatureState | None:
        """Return the state of a run's feature; None if the run is of an earlier incarnation."""
        key = (run.stream, run.feature)
        state = self._states.get(key)
        if state is not None and self._resumes(state, run):
            state.incarnation = run.incarnation
        if state is None or is_newer(run.incarnation, than=state.incarnation):
            state = self._states[key] = self._new_state(run.feature)
            state.incarnation = run.incarnation
        elif run.incarnation != state.incarnation:
            return None
        elif run.previous_seq is None and run.seqs[0] > state.chain.newest:
            # a run without a predecessor restarts the stream
            chain = state.chain
            state = self._states[key] = self._new_state(run.feature)
            state.chain, state.incarnation = chain, run.incarnation
        return state

    def _resumes(self, state: FeatureState, run: Evaluation) -> bool:
        """Return whether a run is the first of the same model state with other versions."""
        return is_newer(run.incarnation, than=state.incarnation) and self.continues_model(
            run.stream, run.incarnation, state.incarnation
        )

    def _late(
        self, state: FeatureState, message: Message, run: Evaluation, end: int
    ) -> list[DeadLetter]:
        """Return a dead letter for each evaluation before ``end`` that lies in a gap."""
        letters: list[DeadLetter] = []
        for i in range(end):
            if state.chain.see(run.seqs[i]) is not Sight.SEEN:
                single = run.single(i)
                state.chain.take(run.seqs[i], single.previous_seq)
                reason = "it came after later ones, and the estimates have continued without it"
                letters.append(_unusable(message, single, reason))
        return letters

    def _fitting(self, column: list[T]) -> list[T] | None:
        """Return a column; None if it has nothing, or does not fit."""
        has_any = self._has_values and any(each is not None for each in column)
        return column if has_any else None

    def _new_state(self, feature: str) -> FeatureState:
        if feature in self._learned:
            state = deepcopy(self._learned[feature])
            state.restart(self._methods[feature])
            return state
        return FeatureState(
            feature,
            self._methods[feature],
            self._alphas,
            reaches=self._reaches,
            categorical=self._categorical[feature],
            ice=self._ice,
            players=self._players,
            anchored=self._anchored,
        )

    def estimates(self, stream: str) -> dict[str, FeatureState]:
        """Return the estimates of a stream, by feature."""
        return {name: state for (of, name), state in self._states.items() if of == stream}

    def _after_silence(self, state: FeatureState, run: Evaluation, i: int) -> list[Explanation]:
        """Return an explanation of a feature that had none for long: the latest estimates."""
        state.silent = 0
        methods = [method for method, pending in state.pending.items() if pending.seqs]
        methods = methods or self._methods[run.feature][:1]
        return [each for method in methods for each in self._explanations(state, run, i, method)]

    def _explanations(
        self, state: FeatureState, run: Evaluation, i: int, method: Method
    ) -> list[Explanation]:
        """Return one explanation per smoothing rate."""
        state.smooth(method)
        pending = state.pending[method]
        ice = None if state.ice is None or method in state.means else _ice(state.ice)
        records = [
            Explanation(
                stream=run.stream,
                feature=run.feature,
                method=method,
                seq=run.seqs[i],
                previous_seq=pending.previous_seq,
                ts=run.ts[i],
                alpha=alpha,
                seqs=pending.seqs,
                increments=pending.increments,
                trends=state.trends(method),
                values=self._fitting(pending.values),
                ids=self._fitting(pending.ids),
                contrasts=self._fitting(pending.contrasts),
                loss=pending.loss,
                coverage=run.coverage[i],
                skipped=run.skipped[i],
                model_version=run.model_version,
                loss_changed_seq=run.loss_changed_seq,
                **state.estimate(method, place),
                ice=ice,
                incarnation=run.incarnation,
            )
            for place, alpha in enumerate(self._alphas)
        ]
        state.pending[method] = Pending(previous_seq=run.seqs[i])
        return records


def _ice(ice: IceCurves) -> list[Ice]:
    return [
        Ice(seq, grid, list(each.values()) if isinstance(each, dict) else each)
        for seq, grid, each in ice.curves
    ]


def _unusable(message: Message, run: Evaluation, error: Exception | str) -> DeadLetter:
    # the observation's own position: independent of the run that it came in
    topic, partition = parse_stream(run.stream)
    source = replace(
        message,
        topic=topic,
        partition=partition,
        offset=run.seqs[0],
        key=run.feature.encode(),
        value=run.encode(),
    )
    letter = source.dead_letter(f"{CANNOT_EXPLAIN}{run.feature}: {error}")
    return replace(letter, incarnation=run.incarnation)
