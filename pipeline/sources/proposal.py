"""Proposes features with types, label, id and time for the columns of a file or of messages."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from fluxplain.config import FeatureType, LabelType
from fluxplain.sources.dialect import MISSING
from fluxplain.sources.first_rows import Column
from fluxplain.sources.source import SourceError, closest

MOST_CATEGORIES = 1_000
"""Most different texts of a categorical feature."""

MOST_CLASSES = 20
"""Most different whole numbers that are classes; a label with more of them is a number."""

LONGEST_NAME = 249
"""Most characters of a feature's name in the settings."""

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

EPOCH_S = 10**9
"""Seconds since 1970 in 2001; later times, and those in smaller units, are larger."""

MIXED = 0.9
"""Share of numbers from which a few texts among them do not make them categories."""

_TRUTHS = ({"0", "1"}, {"0.0", "1.0"}, {"true", "false"}, {"yes", "no"})


class Named(NamedTuple):
    """Columns that the user names; None for those to be found."""

    label: str | None = None
    id: str | None = None
    ts: str | None = None


class Proposal(NamedTuple):
    """What the columns are.

    ``features`` are name → type, ``left_out`` the other columns with the reason. ``label``, ``id``
    and ``ts`` are None also where observations have fields of their own for these.
    """

    features: dict[str, FeatureType]
    left_out: dict[str, str]
    label_type: LabelType
    has_missing: bool
    label: str | None = None
    id: str | None = None
    ts: str | None = None


Kind = tuple[FeatureType | None, str]
"""The type of a feature; None for a column that is of no use, with the reason."""


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
            meant = closest(name, [*by_name])
            raise SourceError(
                f"there is no column {name!r} for the {use}; the columns: {listed}{meant}"
            )
    others = [each for each in columns if each.name not in named]
    ts = named.ts or next((each.name for each in others if _is_time(each)), None)
    found = (each.name for each in others if each.name != ts and _is_id(each))
    id_ = named.id or next(found, None)
    kinds = {each.name: _feature(each) for each in others if each.name not in {id_, ts}}
    label = None if named.label is None else by_name[named.label]
    return _proposal(by_name, kinds, label)._replace(label=named.label, id=id_, ts=ts)


def proposal_of_observations(columns: Sequence[Column], label: Column | None) -> Proposal:
    """Return what the columns of ``x`` are, and the type of the labels ``y``; None for no label.

    Raises SourceError as :func:`proposal_of` does.
    """
    kinds = {each.name: _feature(each) for each in columns}
    for each in columns:
        if _is_time(each) or _is_id(each):
            what = "a time: send it as ts" if _is_time(each) else "an id: send it as id"
            kinds[each.name] = None, f"{what}, beside x"
    return _proposal({each.name: each for each in columns}, kinds, label)


def _proposal(
    columns: Mapping[str, Column], kinds: Mapping[str, Kind], label: Column | None
) -> Proposal:
    if label is None:
        numbers_only: Kind = None, "the anomaly detector takes numbers"
        kinds = {n: numbers_only if k[0] == "categorical" else k for n, k in kinds.items()}
    features = {name: kind for name, (kind, _) in kinds.items() if kind is not None}
    if not features:
        told = "; ".join(f"{name}: {reason}" for name, (_, reason) in [*kinds.items()][:5])
        raise SourceError("no column is of use as a feature" + (told and f" ({told})"))
    return Proposal(
        features,
        left_out={name: reason for name, (kind, reason) in kinds.items() if kind is None},
        label_type="none" if label is None else label_type(label),
        has_missing=any(columns[name].missing for name in features),
    )


def label_type(column: Column) -> LabelType:
    """Return the type of the labels in a column; raise SourceError if they are of no use."""
    different = {*column.texts}
    if _is_nested(column):
        raise SourceError(
            f"the label {column.name!r} has lists or objects, but needs single values"
        )
    if len(different) < 2:
        raise SourceError(
            f"the label {column.name!r} is {_always(column)} in the records that were read: there "
            "is nothing to learn: name another column with --label, or give --no-label"
        )
    if _are_truths(column):
        return "boolean"
    if all(map(_is_date, different)):
        raise SourceError(f"the label {column.name!r} is a date or time, neither class nor number")
    if column.is_typed and not _are_texts(column) and not _are_numbers(column):
        raise SourceError(
            f"the label {column.name!r} has values of several types, such as "
            f"{', '.join(sorted(different)[:3])}: all must be booleans, or numbers, or texts"
        )
    if not (_are_numbers(column) if column.is_typed else _is_numeric(column)):
        if len(different) > MOST_TEXTS:
            raise SourceError(
                f"the label {column.name!r} has {len(different)} different texts: "
                f"at most {MOST_TEXTS} can be classes"
            )
        return "string"
    is_whole = all(
        isinstance(each, int) if column.is_typed else float(each).is_integer()
        for each in column.values
    )
    return "integer" if is_whole and len(different) <= MOST_CLASSES else "number"


def _are_truths(column: Column) -> bool:
    if column.is_typed:
        return all(isinstance(each, int) and each in {0, 1} for each in column.values)
    return {text.lower() for text in {*column.texts} - MISSING} in _TRUTHS


def _feature(column: Column) -> Kind:
    """Return the type of a feature; None for a column that is of no use, with the reason."""
    reason = _unusable(column) or _useless(column)
    if reason is not None:
        return None, reason
    return "numeric" if _is_measured(column) else "categorical", ""


def _unusable(column: Column) -> str | None:
    """Return why a column cannot be a feature, whatever its values tell; None if it can."""
    if not column.name:
        return "it has no name"
    if len(column.name) > LONGEST_NAME:
        return f"its name has {len(column.name)} characters, at most {LONGEST_NAME} are allowed"
    if _is_nested(column):
        return "lists or objects, but a feature has single values"
    return None


def _is_nested(column: Column) -> bool:
    return any(isinstance(each, list | dict) for each in column.values)


def _useless(column: Column) -> str | None:
    """Return why a column is of no use as a feature; None if it is."""
    different = len({*column.texts})
    if different < 2:
        return _always(column)
    if _is_measured(column):
        return None
    if all(map(_is_date, column.texts)):
        return "a date or time"
    odd = _text_among_numbers(column)
    if odd is not None and (different > MOST_CLASSES or column.is_typed):
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
    if column.is_typed and any(isinstance(each, float) for each in column.values):
        return True
    return not (_ID.fullmatch(column.name) and all(float(n).is_integer() for n in column.values))


def _text_among_numbers(column: Column) -> str | None:
    """Return a text, if nearly all other values are numbers, or no category in JSON."""
    texts = [each for each in column.values if isinstance(each, str)]
    has_floats = column.is_typed and any(isinstance(each, float) for each in column.values)
    most = len(column.values) if has_floats else (1 - MIXED) * len(column.values)
    return texts[0] if 0 < len(texts) < most else None


def _are_texts(column: Column) -> bool:
    return all(isinstance(each, str) for each in column.values)


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
    if not is_named or not _are_numbers(column):
        return False
    # messages of several partitions have no order
    is_epoch = column.is_typed and min(column.values) >= EPOCH_S
    return is_epoch or column.values == sorted(column.values)


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return not text.isdigit()


def _is_id(column: Column) -> bool:
    is_named = column.name.lower() in IDS or _ID.fullmatch(column.name)
    return bool(is_named) and not column.missing and len({*column.texts}) == len(column.texts)
