"""What is published around a drift, for the figures' tests."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from fluxplain.schemas import Change, Explanation, Record
from fluxplain.schemas.change import Curve
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.methods import Method
from fluxplain.schemas.record import Value
from tests.kit.records import STREAM, change, error_change, explanation, loss_change, prediction

DRIFT, LENGTH, EVERY = 1500, 3000, 20

POINTS = [0.0, 1.0, 2.0, 3.0]

GRID: list[Value] = [*POINTS]

LONG = "transactions_of_the_last_seven_days_by_customers_of_segment_{}"


def value_of(i: int, seq: int) -> float:
    """Return an importance: that of feature 0 gives way to that of feature 1."""
    base = 0.3 if i == (0 if seq < DRIFT else 1) else 0.02 / (1 + i)
    return base + 0.01 * math.sin(seq * 0.7 + i)


def explained(
    names: Sequence[str], methods: Sequence[Method] = ("ipfi", "isage", "ipdp")
) -> list[Record]:
    """Return predictions and explanations of 3,000 observations."""
    records: list[Record] = [prediction(seq, loss=0.5 + 0.2 * (seq % 2)) for seq in range(LENGTH)]
    every = EVERY if len(names) < 10 else 10 * EVERY
    for seq in range(every - 1, LENGTH, every):
        seqs = list(range(seq - every + 1, seq + 1))
        for i, name in enumerate(names):
            for method in methods:
                record = replace(
                    explanation(name, seq, value_of(i, seq), method=method),
                    seqs=seqs,
                    increments=[value_of(i, s) for s in seqs],
                )
                records.append(with_curve(record) if method == "ipdp" else record)
    return records


def with_curve(record: Explanation) -> Explanation:
    slope = record.value
    ice = [Ice(seq, GRID, [slope * v + seq / LENGTH for v in POINTS]) for seq in record.seqs[-3:]]
    return replace(record, grid=[*GRID], effect=[slope * v for v in POINTS], ice=ice)


def drift_of(feature: str, method: Method = "isage") -> Change:
    """Return the change of a feature, with all that can be said of one."""
    return replace(
        change(feature, DRIFT + 200, method=method, before=0.3, after=0.02),
        before_std_error=0.01,
        after_std_error=0.02,
        direction="fell",
        window=200,
        after_seq=DRIFT,
        delay_bound=200,
        replay_seq=DRIFT - 200,
        rank_before=1,
        rank_after=4,
        ranked=6,
        loss_before=0.6,
        loss_after=0.61,
        curve_before=Curve(DRIFT - 1, GRID, [0.1, 0.2, 0.4, 0.8]),
        curve_after=Curve(DRIFT + 199, GRID, [0.1, 0.1, 0.1, 0.2]),
        incident=f"{STREAM}@{DRIFT + 150}",
    )


def drift_of_loss() -> Change:
    return replace(
        loss_change(DRIFT + 64), after_seq=DRIFT, replay_seq=DRIFT - 64, before_std_error=0.01
    )


def drift_of_errors() -> Change:
    return replace(
        error_change(DRIFT + 64), after_seq=DRIFT, replay_seq=DRIFT - 64, before_std_error=0.01
    )


@cache
def names(n: int, *, long: bool = False) -> tuple[str, ...]:
    return tuple((LONG if long else "f{}").format(i) for i in range(n))


@cache
def stream_of(n: int, *, long: bool = False) -> tuple[Record, ...]:
    """Return all that is published of a stream with so many features."""
    features = names(n, long=long)
    return (*explained(features), *changes_of(n, long=long))


def changes_of(n: int, *, long: bool = False) -> list[Change]:
    first, second, *_ = names(n, long=long)
    return [drift_of(first), drift_of(second, "ipdp"), drift_of_loss()]
