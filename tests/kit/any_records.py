"""Any record that may be published, for property tests."""

from typing import Any

from hypothesis import strategies as st

from fluxplain.schemas import (
    Change,
    Control,
    DeadLetter,
    Evaluation,
    Explanation,
    LateLabel,
    Observation,
    Prediction,
    Record,
)
from fluxplain.schemas.change import Curve
from fluxplain.schemas.control import NewModel
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.methods import METHODS as INFO
from fluxplain.schemas.prediction import LabelCounts

# what JSON can hold: finite numbers, integers of 64 bits, text without half characters
INTEGERS = st.integers(-(2**63), 2**64 - 1)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


LABELS = st.booleans() | INTEGERS | TEXT


VALUES = LABELS | FLOATS


SEQS = st.integers(0, 2**63 - 1)


TIMES = st.none() | INTEGERS | FLOATS | TEXT


ROWS = FLOATS | st.lists(FLOATS, max_size=3)


METHODS: st.SearchStrategy[Any] = st.sampled_from([*INFO])


SOME: st.SearchStrategy[Any] = st.lists(METHODS, unique=True)


SURFACES = st.lists(st.lists(FLOATS, max_size=3), min_size=1, max_size=3)


EFFECTS: st.SearchStrategy[Any] = st.lists(FLOATS, max_size=3) | SURFACES


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    n = draw(st.integers(1, 3))

    def column(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(strategy, min_size=n, max_size=n))

    return Evaluation(
        stream=draw(TEXT),
        feature=draw(TEXT),
        previous_seq=draw(maybe(SEQS)),
        seqs=column(SEQS),
        ts=column(TIMES),
        y=column(maybe(VALUES)),
        loss=column(maybe(FLOATS)),
        classes=draw(maybe(st.lists(LABELS, max_size=3))),
        prediction=column(ROWS),
        coverage=column(FLOATS),
        skipped=column(SEQS),
        outputs={method: column(maybe(st.lists(ROWS, max_size=2))) for method in draw(SOME)},
        points={method: column(maybe(st.lists(VALUES, max_size=2))) for method in draw(SOME)},
    )


@st.composite
def explanations(draw: st.DrawFn) -> Explanation:
    seqs = draw(st.lists(SEQS, max_size=3))
    return Explanation(
        stream=draw(TEXT),
        feature=draw(TEXT),
        method=draw(METHODS),
        seq=draw(SEQS),
        previous_seq=draw(maybe(SEQS)),
        ts=draw(TIMES),
        alpha=draw(FLOATS),
        updates=draw(SEQS),
        value=draw(FLOATS),
        std_error=draw(FLOATS),
        seqs=seqs,
        increments=draw(st.lists(FLOATS, min_size=len(seqs), max_size=len(seqs))),
        loss=draw(maybe(FLOATS)),
        coverage=draw(FLOATS),
        skipped=draw(SEQS),
        grid=draw(maybe(st.lists(VALUES, max_size=3))),
        effect=draw(maybe(EFFECTS | st.lists(SURFACES, min_size=1, max_size=2))),
        classes=draw(maybe(st.lists(LABELS, max_size=3))),
        second_grid=draw(maybe(st.lists(VALUES, max_size=3))),
        ice=draw(
            maybe(st.lists(st.builds(Ice, SEQS, st.lists(VALUES, max_size=2), EFFECTS), max_size=2))
        ),
    )


NUMBERS = (
    "before",
    "before_std_error",
    "after",
    "after_std_error",
    "value",
    "std_error",
    "loss_before",
    "loss_after",
)


COUNTS = (
    "window",
    "after_seq",
    "delay_bound",
    "replay_seq",
    "rank_before",
    "rank_after",
    "ranked",
)


CURVES = st.builds(
    Curve,
    seq=SEQS,
    grid=st.lists(VALUES, max_size=3),
    effect=EFFECTS | st.lists(SURFACES, min_size=1, max_size=2),
    classes=maybe(st.lists(LABELS, max_size=3)),
    second_grid=maybe(st.lists(VALUES, max_size=3)),
)


ANY: dict[type[Record], st.SearchStrategy[Any]] = {
    Observation: st.builds(
        Observation,
        x=st.dictionaries(TEXT, maybe(VALUES), max_size=4),
        y=maybe(VALUES),
        id=maybe(INTEGERS | FLOATS | TEXT),
        ts=TIMES,
    ),
    Prediction: st.builds(
        Prediction,
        stream=TEXT,
        seq=SEQS,
        previous_seq=maybe(SEQS),
        id=maybe(INTEGERS | FLOATS | TEXT),
        ts=TIMES,
        prediction=maybe(VALUES),
        classes=maybe(st.lists(LABELS, max_size=3)),
        probabilities=maybe(st.lists(FLOATS, max_size=3)),
        y=maybe(VALUES),
        loss=maybe(FLOATS),
        missing=maybe(st.lists(TEXT, max_size=2)),
        observation=maybe(SEQS),
        first_prediction=maybe(VALUES),
        labels=maybe(st.builds(LabelCounts, *[SEQS] * 5)),
    ),
    Control: st.builds(
        Control,
        every=INTEGERS,
        model=maybe(st.builds(NewModel, version=TEXT, sha256=TEXT)),
    ),
    LateLabel: st.builds(LateLabel, id=INTEGERS | FLOATS | TEXT, y=VALUES, ts=TIMES),
    Evaluation: evaluations(),
    Explanation: explanations(),
    Change: st.builds(
        Change,
        id=TEXT,
        stream=TEXT,
        kind=st.sampled_from(["drift", "cold-start", "gap", "schema", "model"]),
        seq=SEQS,
        previous_seq=maybe(SEQS),
        ts=TIMES,
        feature=maybe(TEXT),
        method=maybe(METHODS | st.just("loss")),
        detail=TEXT,
        signal=maybe(st.sampled_from(["increment", "value"])),
        direction=maybe(st.sampled_from(["rose", "fell"])),
        **{name: maybe(FLOATS) for name in NUMBERS},
        **{name: maybe(SEQS) for name in COUNTS},
        curve_before=maybe(CURVES),
        curve_after=maybe(CURVES),
        incident=maybe(TEXT),
    ),
    DeadLetter: st.builds(
        DeadLetter.of,
        stream=TEXT,
        seq=SEQS,
        topic=TEXT,
        partition=st.integers(0, 999),
        offset=SEQS,
        key=maybe(st.binary(max_size=20)),
        value=maybe(st.binary(max_size=60)),
        reason=TEXT,
    ),
}


def types(value: object) -> object:
    """The types of all numbers and labels in a record: True == 1 == 1.0 to Python."""
    if isinstance(value, list | tuple):
        return [types(item) for item in value]
    if isinstance(value, dict):
        return {key: types(item) for key, item in value.items()}
    return type(value)


JSON = st.recursive(
    st.none() | VALUES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
