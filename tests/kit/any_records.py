"""Any record that may be published: Hypothesis strategies of what its types allow."""

from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from fluxplain.schemas import (
    RECORDS,
    Control,
    DeadLetter,
    Evaluation,
    Explanation,
    Note,
    Reasons,
    Record,
)
from fluxplain.schemas.note import MAX_BY
from fluxplain.schemas.record import Timestamp, Value
from tests.fuzz.strategies import EXTREME_TEXTS

# what JSON can hold: finite numbers, integers of 64 bits, text without half characters
INTEGERS = st.integers(-(2**63), 2**64 - 1)
SEQS = st.integers(0, 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [-0.0, 5e-324, 0.1 + 0.2, 1e16, 1 / 3, 1.7976931348623157e308]
)
_TRICKY_TEXTS = [
    *(text for text in EXTREME_TEXTS if text.isprintable() or len(text) < 3),
    *("a,b", 'say "a"', "a\nb", "a\r\nb", "\r", "\n", ";", "\t", "\x00", "\ufeff1", "NULL"),
    *("null", "true", "1", "1.0", "-0", "NaN", "Infinity", '"a"', "[1]", " 1", "=1+1", "'"),
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    [text for text in _TRICKY_TEXTS if not any("\ud800" <= c <= "\udfff" for c in text)]
)
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: SEQS,
    float: FLOATS,
    str: TEXT,
    NoneType: st.none(),
}


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a type: a scalar, a list, a dictionary, a union or one of our dataclasses.

    An integer counts something, except where a text may stand for it: then it is the user's.
    """
    if hint in _SCALARS:
        return _SCALARS[hint]
    of = get_args(hint)
    if get_origin(hint) is Literal:
        return st.sampled_from(of)
    if get_origin(hint) is list:
        return st.lists(anything(*of), max_size=3)
    if get_origin(hint) is dict:
        return st.dictionaries(*map(anything, of), max_size=4)
    if get_origin(hint) in {Union, UnionType}:
        users = str in of
        return st.one_of([INTEGERS if users and each is int else anything(each) for each in of])
    return any_record(hint)


def any_record(kind: type[Any], **chosen: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return records of a kind, with some fields chosen otherwise."""
    hints = get_type_hints(kind)
    strategies = {"incarnation": st.sampled_from(["1", "12", "3/4", "3/4/5"]), **chosen}
    names = [field.name for field in fields(kind)]
    return st.builds(
        kind, **{n: strategies[n] if n in strategies else anything(hints[n]) for n in names}
    )


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def _of_equal_length(kind: type[Any], *names: str) -> st.SearchStrategy[Any]:
    """Return records of a kind whose lists of these names are all of the same length."""
    hints = get_type_hints(kind)

    def of_length(n: int) -> st.SearchStrategy[Any]:
        def column(hint: Any) -> st.SearchStrategy[Any]:
            if get_origin(hint) is dict:
                method, values = get_args(hint)
                return st.dictionaries(anything(method), column(values))
            if get_origin(hint) is UnionType:
                return st.one_of(
                    [st.none() if h is NoneType else column(h) for h in get_args(hint)]
                )
            return st.lists(anything(*get_args(hint)), min_size=n, max_size=n)

        return any_record(kind, **{name: column(hints[name]) for name in names})

    return st.integers(1, 3).flatmap(of_length)


VALUES = anything(Value)
TIMES = maybe(anything(Timestamp))
NAMES = TEXT.filter(lambda text: 0 < len(text) <= MAX_BY)
MOMENTS = st.datetimes().map(lambda time: time.isoformat())
EVALUATION_LISTS = (
    *("ts", "y", "loss", "prediction", "coverage", "skipped"),
    *("outputs", "points", "values", "ids"),
)
ANY: dict[type[Record], st.SearchStrategy[Any]] = {
    **{kind: any_record(kind) for kind in RECORDS},
    Control: st.one_of(  # not both: a command about one model only
        any_record(Control, every=SEQS, withdraw=st.none()),
        any_record(Control, every=SEQS, model=st.none()),
    ),
    Evaluation: _of_equal_length(Evaluation, "seqs", *EVALUATION_LISTS),
    Explanation: _of_equal_length(Explanation, "seqs", "increments", "trends", "values", "ids"),
    Reasons: _of_equal_length(Reasons, "names", "contributions", "std_errors", "values"),
    Note: st.one_of(
        any_record(
            Note,
            state=st.sampled_from(["acknowledged", "open"]),
            change=st.text("0123456789abcdef", min_size=12, max_size=12),
            stream=NAMES,
            **dict.fromkeys(("feature", "until"), st.none()),
            **dict.fromkeys(("text", "by"), maybe(NAMES)),
            at=MOMENTS,
        ),
        any_record(
            Note,
            state=st.sampled_from(["muted", "unmuted"]),
            change=st.none(),
            feature=NAMES,
            **dict.fromkeys(("stream", "text", "by"), maybe(NAMES)),
            at=MOMENTS,
            until=maybe(MOMENTS),
        ),
    ),
    DeadLetter: st.builds(
        DeadLetter.wrapping,
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
