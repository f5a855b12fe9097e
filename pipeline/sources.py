"""Where recorded observations come from: a CSV file, or a River data set that needs no download.

Each observation is the JSON that a producer would send to the topic ``features``: ``x``, and ``y``
where there is a label. What cannot be read as configured is passed on as it is, so that the
pipeline's own validation says what is wrong with it.
"""

import csv
import gzip
import inspect
import io
import math
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import orjson

from pipeline.config import Config, FeatureType, LabelType
from schemas.late_label import LabelValue

RIVER = "river:"

COUNTED_BYTES = {".csv": 16 * 2**20, ".gz": 4 * 2**20}
"""Largest file that is read once more to count its records; about a second on a small machine."""


class SourceError(ValueError):
    """Observations that cannot be read. The message is one line, for people."""


def with_label_delay(values: Iterable[bytes], delay: int) -> Iterator[bytes | LabelValue]:
    """Yield observations without their labels, and these later, as records of their own.

    An observation without an ``id`` gets its number.

    Parameters
    ----------
    values
        Observations as JSON.
    delay
        How many observations later a label comes; at the end all that are left come.

    Examples
    --------
    >>> for value in with_label_delay([b'{"x":{"a":1},"y":2}', b'{"x":{"a":3},"y":4}'], 1):
    ...     print(value)
    b'{"x":{"a":1},"id":0}'
    b'{"x":{"a":3},"id":1}'
    LabelValue(value=b'{"id":0,"y":2}')
    LabelValue(value=b'{"id":1,"y":4}')
    """
    waiting: deque[tuple[int, LabelValue]] = deque()
    for i, value in enumerate(values):
        fields = orjson.loads(value)
        if "x" in fields and "y" in fields:
            label = {"id": fields.setdefault("id", i), "y": fields.pop("y")}
            waiting.append((i + delay, LabelValue(orjson.dumps(label))))
        yield orjson.dumps(fields)
        while waiting and waiting[0][0] <= i:
            yield waiting.popleft()[1]
    for _, label_value in waiting:
        yield label_value


@dataclass(frozen=True)
class Source:
    """Observations in order, as JSON; iterating again begins anew.

    Attributes
    ----------
    name
        What was asked for.
    total
        Number of observations; None if it is not known cheaply, or there is no end.
    read
        Begins to read.
    """

    name: str
    total: int | None
    read: Callable[[], Iterator[bytes]]

    def __iter__(self) -> Iterator[bytes]:
        """Yield each observation as it goes on the topic ``features``."""
        return self.read()


def open_source(
    source: str, config: Config, *, label: str | None = None, limit: int | None = None
) -> Source:
    """Return the observations of a CSV file or a River data set.

    Parameters
    ----------
    source
        Path of a ``.csv`` or ``.csv.gz`` file with a header row, UTF-8, commas; or
        ``river:NAME?parameter=value&…``. A synthetic data set without a seed gets ``config.seed``.
    config
        Its ``features`` are read, and the label as ``label.type``.
    label
        The column of a CSV file that holds the label; by default ``config.label.column``. Without
        either, observations have no label.
    limit
        Observations to read at most; None for all.

    Raises
    ------
    SourceError
        If there is no such source, or a feature or the label is not in it. Reading raises it too,
        when the source turns out to be damaged.

    Examples
    --------
    >>> from pipeline.config import Config
    >>> config = Config(
    ...     features={"age": "numeric", "car": "categorical"},
    ...     label={"type": "boolean"},
    ...     model={"factory": "river.dummy:NoChangeClassifier"},
    ... )
    >>> source = open_source("river:Agrawal?classification_function=1", config, limit=2)
    >>> source.total, *source
    (2, b'{"x":{"age":21,"car":8},"y":false}', b'{"x":{"age":25,"car":14},"y":false}')
    """
    if limit is not None and limit < 0:
        raise SourceError(f"limit is {limit}, but must be at least 0")
    if label is not None and config.label.type == "none":
        raise SourceError(f"the label is {label!r}, but label.type is 'none': there is no label")
    if source.startswith(RIVER):
        if label is not None:
            raise SourceError(f"{source}: a River data set has its own label, so give no label")
        return _open_river(source, config, limit)
    return _open_csv(source, config, label or config.label.column, limit)


# CSV files


def _open_csv(source: str, config: Config, label: str | None, limit: int | None) -> Source:
    path = Path(source)
    if path.suffix not in COUNTED_BYTES or not source.endswith((".csv", ".csv.gz")):
        raise SourceError(f"{source} is not a source: give a .csv or .csv.gz file, or {RIVER}NAME")
    header, first = [*islice(_rows(path), 2), None, None][:2]
    if header is None:
        raise SourceError(f"{source} is empty")
    if first is None:
        raise SourceError(f"{source} has a header, but no records")
    _check_columns(source, header[1], config, label)
    parse = _CSVParser(header[1], config, label)

    def records() -> Iterator[tuple[int, list[str]]]:
        return islice(_rows(path), 1, None if limit is None else limit + 1)

    total = None
    if path.stat().st_size <= COUNTED_BYTES[path.suffix]:
        total = sum(1 for _ in records())
    return Source(source, total, lambda: map(parse, records()))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the number of the line it ends on."""
    line = 0
    try:
        # utf-8-sig: spreadsheets write a byte order mark, which would become part of a name
        with _open_text(path) as file:
            rows = csv.reader(file)
            for row in rows:
                line = rows.line_num
                if row:
                    yield line, row
    except UnicodeDecodeError:
        raise SourceError(f"{path} is not UTF-8 text (after line {line})") from None
    except csv.Error as error:
        raise SourceError(f"{path} is not CSV: {error} (after line {line})") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SourceError(f"{path} is not a whole gzip file: {error} (after line {line})") from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None


def _open_text(path: Path) -> io.TextIOBase:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _check_columns(source: str, columns: list[str], config: Config, label: str | None) -> None:
    listed = f"its columns, separated by commas, are {', '.join(columns)}"
    for feature in config.features:
        if feature not in columns:
            raise SourceError(f"{source} has no column for the feature {feature!r}: {listed}")
    if label is not None and label not in columns:
        raise SourceError(f"{source} has no column {label!r} for the label: {listed}")
    if label in config.features:
        raise SourceError(f"{source}: the column {label!r} cannot be both a feature and the label")
    for name in (*config.features, label):
        if name is not None and columns.count(name) > 1:
            raise SourceError(f"{source} has more than one column {name!r}: {listed}")


class _CSVParser:
    """Turns a row into an observation."""

    def __init__(self, columns: list[str], config: Config, label: str | None) -> None:
        self._width = len(columns)
        self._features = [
            (feature, columns.index(feature), kind) for feature, kind in config.features.items()
        ]
        self._label = None if label is None else columns.index(label)
        self._type = config.label.type

    def __call__(self, row: tuple[int, list[str]]) -> bytes:
        line, cells = row
        if len(cells) != self._width:
            # cells in the wrong columns are no observation: a dead letter, with all of them
            return orjson.dumps({"line": line, "cells": cells})
        x = {
            feature: _finite(cells[i]) if kind == "numeric" else cells[i]
            for feature, i, kind in self._features
            if cells[i] != ""
        }
        if self._label is None or cells[self._label] == "":
            return orjson.dumps({"x": x})
        return orjson.dumps({"x": x, "y": _label_of_text(cells[self._label], self._type)})


def _finite(text: str) -> float | str:
    """Return the number that the text is; the text if it is none."""
    try:
        number = float(text)
    except ValueError:
        return text
    # Python reads 1_000, but other programs do not write it
    return number if math.isfinite(number) and "_" not in text else text


_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _label_of_text(text: str, kind: LabelType) -> bool | int | float | str:
    if kind == "string":
        return text
    number = _finite(text)
    if kind == "number":
        return number
    # programs that know only floating-point columns write the class 1 as 1.0
    whole = int(number) if isinstance(number, float) and _is_whole(number) else None
    if kind == "integer":
        return text if whole is None else whole
    return _BOOLEANS.get((text if whole is None else str(whole)).strip().lower(), text)


def _is_whole(number: float) -> bool:
    """Return whether an integer says the same; beyond 2⁵³ a float is no longer exact."""
    return number.is_integer() and abs(number) <= 2**53


# River data sets


def _open_river(source: str, config: Config, limit: int | None) -> Source:
    from river.datasets import base  # noqa: PLC0415  slow, and CSV files need none of it

    name, _, query = source.removeprefix(RIVER).partition("?")
    params = _parameters(source, query)
    factory = _river_class(source, name)
    known = inspect.signature(factory).parameters
    for param in params:
        if param not in known:
            allowed = ", ".join(known) or "none"
            raise SourceError(f"{source}: {name} has no parameter {param!r}; it has: {allowed}")
    seeds = [param for param in known if param.split("_")[0] == "seed"]
    params = dict.fromkeys(seeds, config.seed) | params

    def samples() -> Generator[tuple[dict[Any, Any], Any], None, None]:
        # the parameters are the user's, so whatever the data set raises is about them
        try:
            data = iter(factory(**params))
            try:
                yield from islice(data, limit)
            finally:
                if issubclass(factory, base.FileDataset):
                    # River closes the file only at its end; none has more than 50,000 records
                    deque(data, maxlen=0)
        except Exception as error:
            raise _failed(source, error) from error

    try:
        size = factory(**params).n_samples
    except Exception as error:
        raise _failed(source, error) from error
    with closing(samples()) as first:
        _check_sample(source, next(first, None), config)
    total = limit if size is None else size if limit is None else min(size, limit)
    return Source(source, total, lambda: _encode(samples(), config))


def _failed(source: str, error: Exception) -> SourceError:
    reason = " ".join(str(error).split())
    return SourceError(f"{source} failed: {type(error).__name__}: {reason}")


def _parameters(source: str, query: str) -> dict[str, bool | int | float | str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise SourceError(f"{source}: write parameters as ?name=value&name=value") from None
    params = {name: _literal(text) for name, text in pairs}
    if len(params) != len(pairs):
        raise SourceError(f"{source} gives a parameter twice")
    return params


def _literal(text: str) -> bool | int | float | str:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        return _finite(text)


def _river_class(source: str, name: str) -> Any:
    from river import datasets  # noqa: PLC0415  as above
    from river.datasets import base, synth  # noqa: PLC0415

    found = {
        each: value
        for module in (datasets, synth)
        for each, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base.Dataset)
    }
    if name not in found:
        local = sorted(n for n, each in found.items() if not issubclass(each, base.RemoteDataset))
        raise SourceError(f"{source}: River has no data set {name!r}; it has: {', '.join(local)}")
    if issubclass(found[name], base.RemoteDataset):
        raise SourceError(f"{source} would be downloaded: download it, and give it as a CSV file")
    return found[name]


def _check_sample(source: str, sample: tuple[dict[Any, Any], Any] | None, config: Config) -> None:
    if sample is None:
        return
    names = [str(name) for name in sample[0]]
    for feature in config.features:
        if feature not in names:
            listed = ", ".join(names)
            raise SourceError(f"{source} has no feature {feature!r}; it has: {listed}")
    if isinstance(sample[1], dict):
        raise SourceError(f"{source} has several labels ({', '.join(sample[1])}): one is needed")


def _encode(samples: Iterable[tuple[dict[Any, Any], Any]], config: Config) -> Iterator[bytes]:
    features, kind = config.features, config.label.type
    for x, y in samples:
        values = {str(name): value for name, value in x.items()}
        record: dict[str, Any] = {
            "x": {f: _plain(values[f], k) for f, k in features.items() if f in values}
        }
        if y is not None and kind != "none":
            record["y"] = _label_of_value(_plain(y), kind)
        yield orjson.dumps(record)


def _plain(value: Any, kind: FeatureType = "numeric") -> Any:
    """Return a value that JSON has: Python's own in place of NumPy's, dates as text."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        if kind == "categorical" and _is_whole(value):
            return int(value)
    return value


def _label_of_value(y: Any, kind: LabelType) -> Any:
    """Return the label in the configured type, where it says the same; else as it is."""
    if kind == "string":
        return str(y)
    if isinstance(y, str):
        return y
    if kind == "boolean":
        return bool(y) if y in {0, 1} else y
    if kind == "integer":
        return int(y) if isinstance(y, bool) or _is_whole(float(y)) else y
    return float(y) if not isinstance(y, bool) else y
