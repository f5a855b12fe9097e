"""The first record of a change."""

from fluxplain.drift.follow_up import Shift, std_error_of
from fluxplain.schemas import FIRST_INCARNATION, Change, Incarnation
from fluxplain.schemas.change import ChangeKind, Signal, change_id
from fluxplain.schemas.methods import Watched
from fluxplain.schemas.record import Timestamp, Value


def noticed(
    shift: Shift,
    *,
    stream: str,
    seq: int,
    ts: Timestamp | None,
    signal: Signal,
    kind: ChangeKind = "drift",
    method: Watched | None = None,
    feature: str | None = None,
    category: Value | None = None,
    value: float | None = None,
    std_error: float | None = None,
    model_version: str | None = None,
    incarnation: Incarnation = FIRST_INCARNATION,
) -> Change:
    """Return the record of a shift, without its sentence and the fields that need other records."""
    before, after = shift.before, shift.after
    return Change(
        id=change_id(stream, kind, feature, method, seq, incarnation, signal),
        stream=stream,
        kind=kind,
        seq=seq,
        previous_seq=None,
        ts=ts,
        feature=feature,
        method=method,
        detail="",
        signal=signal,
        category=category,
        status="noticed",
        status_seq=seq,
        learning=shift.learning,
        before=before and before.mean,
        before_std_error=std_error_of(before, shift.inflation),
        after=after.mean,
        after_std_error=std_error_of(after, shift.inflation),
        direction=before and ("rose" if after.mean > before.mean else "fell"),
        window=after.n,
        after_seq=shift.after_seq,
        delay_bound=seq - shift.earliest_seq,
        replay_seq=shift.replay_seq,
        value=value,
        std_error=std_error,
        loss_before=shift.loss_before,
        loss_after=shift.loss_after,
        model_version=model_version,
        incarnation=incarnation,
    )
