"""Proposes features with types, label, id and time for the columns of a file."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fluxplain.config import FeatureType, LabelType
from fluxplain.sources.dialect import MISSING
from fluxplain.sources.first_rows import Column
from fluxplain.sources.source import SourceError

MOST_CATEGORIES = 1_000
"""Most different texts of a categorical feature."""

MOST_CLASSES = 20
"""Most different whole numbers that are classes; a label with more of them is a number."""

MOST_TEXTS = 100
"""Most different texts of a label."""

LABELS = ("label", "target", "class", "y", "fraud", "is_fraud", "isfraud", "churn", "outcome")
"""Usual names of the label's column."""

TIMES = ("ts", "time", "timestamp", "datetime", "date", "event_time", "created_at")
IDS = ("id", "uuid", "key", "index", "row", "")

_ID = re.compile(r".*(_id|[a-z]Id|ID)")
_CODE = re.compile(r"0\d+|[1-9]\d{15,}")
"""A number that is written like a code: the zero of 0123, or the last of many digits, would get
lost."""

MIXED = 0.9
"""Share of numbers from which a few texts among them do not make them categories."""

_TRUTHS = ({"0", "1"}, {"0.0", "1.0"}, {"true", "false"}, {"yes", "no"})


class Named(NamedTuple):
    """Columns that the user names; None for those to be found."""

    label: str | None = None
    id: str | None = None
    ts: str | None = None


class Proposal(NamedTuple):
    """What the columns of a file are.

    ``features`` are name → type, ``left_out`` the other columns with the reason.
    """

    features: dict[str, FeatureType]
    left_out: dict[str, str]
    label: str | None
    label_type: LabelType
    id: str | None
    ts: str | None
    has_missing: bool


def label_among(columns: Sequence[Column]) -> str | None:
    """Return the column with a usual name of a label, if there is a single one."""
    found = [each.name for each in columns if each.name.lower() in LABELS]
    return found[0] if len(found) == 1 else None


def proposal_of(columns: Sequence[Column], named: Named) -> Proposal:
    """Return what the columns are; without ``named.label`` there is no label.

    Raises SourceError if a column is not there, the label is of no use, or no feature is left.
    """
    by_name = {each.name: each for each in columns}
    for use, name in named._asdict().items():
        if name is not None and name not in by_name:
            listed = ", ".join(by_name)
            raise SourceError(f"there is no column {name!r} for the {use}; the columns: {listed}")
    others = [each for each in columns if each.name not in named]
    ts = named.ts or next((each.name for each in others if _is_time(each)), None)
    found = (each.name for each in others if each.name != ts and _is_id(each))
    id_ = named.id or next(found, None)
    kinds = {each.name: _feature(each) for each in others if each.name not in {id_, ts}}
    if named.label is None:
        numbers_only: tuple[FeatureType | None, str] = None, "the anomaly detector takes numbers"
        kinds = {n: numbers_only if k[0] == "categorical" else k for n, k in kinds.items()}
    features = {name: kind for name, (kind, _) in kinds.items() if kind is not None}
    if not features:
        told = "; ".join(f"{name}: {reason}" for name, (_, reason) in [*kinds.items()][:5])
        raise SourceError("no column is of use as a feature" + (told and f" ({told})"))
    return Proposal(
        features,
        {name: reason for name, (kind, reason) in kinds.items() if kind is None},
        named.label,
        "none" if named.label is None else label_type(by_name[named.label]),
        id_,
        ts,
        any(by_name[name].missing for name in features),
    )


def label_type(column: Column) -> LabelType:
    """Return the type of the labels in a column; raise SourceError if they are of no use."""
    different = {*column.texts}
    if len(different) < 2:
        raise SourceError(
            f"the label {column.name!r} is {_always(column)} in the first records: "
            "there is nothing to learn"
        )
    if {text.lower() for text in different - MISSING} in _TRUTHS:
        return "boolean"
    if all(map(_is_date, different)):
        raise SourceError(f"the label {column.name!r} is a date or time, neither class nor number")
    if not _is_numeric(column):
        if len(different) > MOST_TEXTS:
            raise SourceError(
                f"the label {column.name!r} has {len(different)} different texts: "
                f"at most {MOST_TEXTS} can be classes"
            )
        return "string"
    is_whole = all(float(each).is_integer() for each in column.values)
    return "integer" if is_whole and len(different) <= MOST_CLASSES else "number"


def _feature(column: Column) -> tuple[FeatureType | None, str]:
    """Return the type of a feature; None for a column that is of no use, with the reason."""
    reason = _useless(column) if column.name else "it has no name"
    if reason is not None:
        return None, reason
    return "numeric" if _is_measured(column) else "categorical", ""


def _useless(column: Column) -> str | None:
    """Return why a column is of no use as a feature; None if it is."""
    different = len({*column.texts})
    if different < 2:
        return _always(column)
    if _is_measured(column):
        return None
    if all(map(_is_date, column.texts)):
        return "a date or time"
    if different > MOST_CLASSES and (odd := _text_among_numbers(column)) is not None:
        return f"numbers, but also {odd[:60]!r}"
    if different > MOST_CATEGORIES or different > max(20, len(column.texts) // 2):
        return f"{different:,} different texts, such as {column.texts[0][:60]!r}"
    return None


def _always(column: Column) -> str:
    return f"always {column.texts[0][:60]!r}" if column.texts else "always empty"


def _is_measured(column: Column) -> bool:
    """Return whether a column has numbers that do not just name something, such as a user."""
    if not _is_numeric(column):
        return False
    return not (_ID.fullmatch(column.name) and all(float(n).is_integer() for n in column.values))


def _text_among_numbers(column: Column) -> str | None:
    """Return a text, if nearly all other values are numbers."""
    texts = [each for each in column.values if isinstance(each, str)]
    return texts[0] if 0 < len(texts) < (1 - MIXED) * len(column.values) else None


def _are_numbers(column: Column) -> bool:
    return all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in column.values
    )


def _is_numeric(column: Column) -> bool:
    return _are_numbers(column) and not any(map(_CODE.fullmatch, column.texts))


def _is_time(column: Column) -> bool:
    if not column.texts or column.missing:
        return False
    is_named = column.name.lower() in TIMES
    if all(map(_is_date, column.texts)):
        return is_named or column.texts == sorted(column.texts)
    return is_named and _are_numbers(column) and column.values == sorted(column.values)


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return not text.isdigit()


def _is_id(column: Column) -> bool:
    is_named = column.name.lower() in IDS or _ID.fullmatch(column.name)
    return bool(is_named) and not column.missing and len({*column.texts}) == len(column.texts)
