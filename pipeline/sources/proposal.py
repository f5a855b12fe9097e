"""Proposes features with types, label, id and time for the columns of a file or of messages."""

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from fluxplain.config import FeatureType, LabelType
from fluxplain.sources.dialect import MISSING
from fluxplain.sources.first_rows import NEARLY_ALL, Column
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

_DAYS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_FORMS = tuple(day + clock for day in _DAYS for clock in _CLOCKS)
"""Dates and times as spreadsheets write them, beside ISO 8601."""

_AFFIXED = re.compile(
    r"([$€£¥]|[A-Z]{3}(?= ))?\s*[+-]?\d[\d.,']*\s*([%$€£¥‰°]|(?<= )[A-Za-z]{1,3})?"
)
"""A number with a currency, percent sign or unit, or with commas or points that may be either."""

MOST_SHOWN, LONGEST_SHOWN = 3, 60
"""Texts that a reason shows, and the characters of each."""

EPOCH_S = 10**9
"""Seconds since 1970 in 2001; later times, and those in smaller units, are larger."""

MIXED = 0.9
"""Share of numbers from which a few texts among them do not make them categories."""

_TRUTHS = ({"0", "1"}, {"0.0", "1.0"}, {"true", "false"}, {"yes", "no"})


_WRITTEN_TRUTHS = frozenset(text for pair in _TRUTHS for text in pair)

MIXED_TRUTHS = (
    "true and false are written in several ways, which are different classes; "
    'label.type = "boolean" takes those of a file as two'
)
"""Doubt about labels such as yes, no, 1 and 0."""


class Named(NamedTuple):
    """Columns that the user names; None for those to be found."""

    label: str | None = None
    id: str | None = None
    ts: str | None = None


class Proposal(NamedTuple):
    """What the columns are.

    ``features`` are name → type, ``left_out`` the other columns with the reason, ``doubts`` columns
    with what the user should look at. ``label``, ``id`` and ``ts`` are None also where observations
    have fields of their own for these.
    """

    features: dict[str, FeatureType]
    left_out: dict[str, str]
    label_type: LabelType
    has_missing: bool
    label: str | None = None
    id: str | None = None
    ts: str | None = None
    doubts: Mapping[str, str] = MappingProxyType({})


Kind = tuple[FeatureType | None, str]
"""The type of a feature, with a doubt if any; None for a column of no use, with the reason."""


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
    doubts = {name: doubt for name, (kind, doubt) in kinds.items() if kind is not None and doubt}
    if label is not None and (doubt := _doubt_about_classes(label)):
        doubts[label.name] = doubt
    return Proposal(
        features,
        left_out={name: reason for name, (kind, reason) in kinds.items() if kind is None},
        label_type="none" if label is None else label_type(label),
        has_missing=any(columns[name].missing for name in features),
        doubts=doubts,
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
    if _moments([*different]) is not None:
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
    return {text.strip().lower() for text in {*column.texts} - MISSING} in _TRUTHS


def _doubt_about_classes(label: Column) -> str:
    """Return which texts may be one class that is written in several ways; empty if none may."""
    if _are_truths(label) or _is_numeric(label):
        return ""
    classes: dict[str, set[str]] = {}
    for text in label.texts:
        classes.setdefault(text.strip().lower(), set()).add(text)
    if classes.keys() <= _WRITTEN_TRUTHS and {*classes} not in _TRUTHS:
        return MIXED_TRUTHS
    alike = [sorted(texts) for texts in classes.values() if len(texts) > 1]
    listed = " and ".join(
        ", ".join(repr(each[:LONGEST_SHOWN]) for each in texts) for texts in alike[:MOST_SHOWN]
    )
    return f"{listed} differ by case or blanks only, but are different classes" if alike else ""


def _feature(column: Column) -> Kind:
    """Return the type of a feature; None for a column that is of no use, with the reason."""
    odd = _odd_among_numbers(column)
    if odd:
        return "numeric", odd_cells(odd, len(column.values))
    reason = _unusable(column) or _useless(column)
    if reason is not None:
        return None, reason
    if _is_measured(column):
        return "numeric", ""
    is_doubtful = len({*column.texts}) > MOST_CLASSES
    return "categorical", (_written_numbers(column) or "") if is_doubtful else ""


def _odd_among_numbers(column: Column) -> list[str]:
    """Return the few texts of a column, if nearly all of its values are numbers; else none."""
    odd = [each for each in column.values if isinstance(each, str)]
    if not 0 < len(odd) <= (1 - NEARLY_ALL) * len(column.values) or _unusable(column):
        return []
    kept = [
        (value, text)
        for value, text in zip(column.values, column.texts, strict=True)
        if not isinstance(value, str)
    ]
    values, texts = [value for value, _ in kept], [text for _, text in kept]
    numbers = column._replace(values=values, texts=texts)
    is_numeric = len({*texts}) > MOST_CLASSES and _is_measured(numbers)
    return odd if is_numeric else []


def odd_cells(odd: Sequence[str], count: int) -> str:
    """Return the doubt about a column of numbers with a few texts.

    Examples
    --------
    >>> odd_cells(["oops"], 3_004)
    "1 of 3,004 values is no number, such as 'oops': it becomes a dead letter"
    """
    shown = ", ".join(repr(each[:LONGEST_SHOWN]) for each in [*dict.fromkeys(odd)][:MOST_SHOWN])
    verbs = ("is", "it becomes a dead letter")
    if len(odd) > 1:
        verbs = ("are", "they become dead letters")
    what = f"{len(odd):,} of {count:,} values {verbs[0]} no number"
    return f"{what}, such as {shown}: {verbs[1]}"


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
    if _moments(column.texts) is not None:
        return f"a date or time, which can be the observations' (--ts {shlex.quote(column.name)})"
    odd = _text_among_numbers(column)
    if odd is not None and (different > MOST_CLASSES or column.is_typed):
        return f"numbers, but also {odd[:60]!r}"
    if different > MOST_CATEGORIES or different > max(20, len(column.texts) // 2):
        return _written_numbers(column) or (
            f"{different:,} different texts, such as {column.texts[0][:LONGEST_SHOWN]!r}"
        )
    return None


def _written_numbers(column: Column) -> str | None:
    """Return how to write texts that are numbers with signs around them; None if they are not."""
    found = [match for text in column.texts if (match := _AFFIXED.fullmatch(text.strip()))]
    signs = sorted({sign for match in found for sign in match.groups() if sign})
    if not signs and any("," in match[0] for match in found):
        signs = ["commas"]
    if not signs or len(found) < MIXED * len(column.texts):
        return None
    example = column.texts[0][:LONGEST_SHOWN]
    return f"numbers with {', '.join(signs)}, such as {example!r}: write them as plain numbers"


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
    moments = _moments(column.texts)
    if moments is not None:
        return is_named or moments == sorted(moments)
    if not is_named or not _are_numbers(column):
        return False
    # messages of several partitions have no order
    is_epoch = column.is_typed and min(column.values) >= EPOCH_S
    return is_epoch or column.values == sorted(column.values)


def _moments(texts: Sequence[str]) -> Sequence[Any] | None:
    """Return sort keys of dates or times that are all written alike; None if they are none.

    Day and month of 01/02/2026 may be either: where both orders fit, that of the month first.
    """
    if all(map(_is_date, texts)):
        return texts  # as these are sorted, but for zones
    for form in _FORMS:
        with suppress(ValueError):
            return [datetime.strptime(text, form) for text in texts]
    return None


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return not text.isdigit()


def _is_id(column: Column) -> bool:
    is_named = column.name.lower() in IDS or _ID.fullmatch(column.name)
    return bool(is_named) and not column.missing and len({*column.texts}) == len(column.texts)
