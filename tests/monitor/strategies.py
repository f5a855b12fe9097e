"""Hypothesis strategies for records with any values that their types allow."""

from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from tests.fuzz.strategies import EXTREME_TEXTS

TEXTS = st.text(max_size=12) | st.sampled_from(
    [
        *(text for text in EXTREME_TEXTS if text.isprintable() or len(text) < 3),
        *("a,b", 'say "a"', "a\nb", "a\r\nb", "\r", "\n", ";", "\t", "\x00", "\ufeff1", "NULL"),
        *("null", "true", "1", "1.0", "-0", "NaN", "Infinity", '"a"', "[1]", " 1", "=1+1", "'"),
    ]
).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [-0.0, 5e-324, 0.1 + 0.2, 1e16, 1 / 3, 1.7976931348623157e308]
)
SEQS = st.integers(0, 2**63 - 1)

_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: FLOATS,
    str: TEXTS,
    NoneType: st.none(),
}

_FIXED: dict[str, st.SearchStrategy[Any]] = {
    "seq": SEQS,
    "observation": st.none() | SEQS,
    "incarnation": st.just("1"),
}


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a type: a scalar, a list, a union or one of our dataclasses."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is list:
        return st.lists(anything(*get_args(hint)), max_size=3)
    if get_origin(hint) in {Union, UnionType}:
        return st.one_of(*map(anything, get_args(hint)))
    return any_record(hint)


def any_record(kind: type[Any], **chosen: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return records of a kind, with some fields chosen otherwise."""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    strategies = _FIXED | chosen
    return st.builds(kind, **{n: strategies.get(n, anything(hints[n])) for n in names})
