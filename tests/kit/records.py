"""Records for the monitor's tests, with only what matters spelled out."""

from collections.abc import Iterable
from dataclasses import replace

from fluxplain.results.store import Store
from fluxplain.schemas import Change, DeadLetter, Explanation, Prediction, Reasons, Record
from fluxplain.schemas.change import change_id
from fluxplain.schemas.methods import Method
from fluxplain.schemas.record import Label
from fluxplain.stages import Message

METHODS: tuple[Method, ...] = ("ipfi", "isage", "ipdp")
"""Those in the streams of tests: how many there are shapes tables and pages."""

STREAM = "features-0"


def prediction(
    seq: int,
    *,
    loss: float | None = 0.5,
    correct: bool = True,
    stream: str = STREAM,
    regression: bool = False,
) -> Prediction:
    return Prediction(
        stream=stream,
        seq=seq,
        previous_seq=seq - 1 if seq else None,
        id=None,
        ts=None,
        prediction=1 if correct else 0,
        classes=None if regression else [0, 1],
        probabilities=None if regression else [0.5, 0.5],
        y=None if loss is None else 1,
        loss=loss,
    )


def reasons(
    seq: int,
    *,
    label: Label | None = True,
    prediction: Label = True,
    output: float = 0.9,
    stream: str = STREAM,
) -> Reasons:
    """Return reasons whose contributions sum to the output."""
    return Reasons(
        stream=stream,
        seq=seq,
        previous_seq=None,
        skipped=0,
        id=f"tx-{seq}",
        ts=None,
        prediction=prediction,
        label=label,
        output=output,
        base=0.25,
        names=["amount", "hour"],
        contributions=[output - 0.15, -0.125],
        std_errors=[0.03, 0.01],
        values=[950.5, 3],
        rest=0.025,
        way="permutations",
        model_version="7",
    )


def explanation(
    feature: str,
    seq: int,
    value: float,
    *,
    method: Method = "ipfi",
    std_error: float = 0.01,
    stream: str = STREAM,
) -> Explanation:
    return Explanation(
        stream=stream,
        feature=feature,
        method=method,
        seq=seq,
        previous_seq=None,
        ts=None,
        alpha=0.001,
        updates=seq + 1,
        value=value,
        std_error=std_error,
        seqs=[seq],
        increments=[value],
    )


def change(
    feature: str,
    seq: int,
    *,
    method: Method = "ipfi",
    before: float = 0.1,
    after: float = 0.4,
    stream: str = STREAM,
) -> Change:
    return Change(
        id=change_id(stream, "drift", feature, method, seq),
        stream=stream,
        kind="drift",
        seq=seq,
        previous_seq=None,
        ts=None,
        feature=feature,
        method=method,
        signal="increment",
        before=before,
        after=after,
        window=32,
        value=after,
        std_error=0.01,
        detail=f"{method} of {feature} rose from {before:.4g} to {after:.4g}",
    )


def loss_change(seq: int) -> Change:
    return replace(
        change("", seq, method="ipfi", before=0.2, after=0.9),
        id=change_id(STREAM, "drift", None, "loss", seq),
        feature=None,
        method="loss",
        window=64,
        value=None,
        std_error=None,
        detail="loss rose from 0.2 to 0.9",
    )


def error_change(seq: int) -> Change:
    return replace(
        loss_change(seq),
        id=change_id(STREAM, "drift", None, "loss", seq, signal="error"),
        signal="error",
        before=0.05,
        after=0.3,
        detail="the share of wrong predictions rose from 0.05 to 0.3",
        loss_before=0.2,
        loss_after=0.9,
    )


def letter(
    offset: int, reason: str = "x.age is missing", *, partition: int = 0, topic: str = "features"
) -> DeadLetter:
    return Message(topic, partition, offset, None, b"{}").dead_letter(reason)


def store_of(records: Iterable[Record]) -> Store:
    """Return a store with the given records of one partition."""
    store = Store()
    for record in records:
        store.add(record)
    return store


def drifting_store(*, features: int = 9) -> Store:
    """Return a store in which f0 gives way to f1 at seq 1000, and the others do not matter."""
    store = Store()
    for seq in range(0, 2000, 10):
        store.add(prediction(seq))
        for method in METHODS:
            for i in range(features):
                important = i == (0 if seq < 1000 else 1)
                value = 0.3 if important else 0.001 * i
                store.add(explanation(f"f{i}", seq, value, method=method))
    store.add(change("f1", 500))
    store.add(change("f0", 1120))
    store.add(change("f1", 1070, method="isage", before=0.0, after=0.3))
    store.add(change("f1", 1300, method="isage"))
    return store
