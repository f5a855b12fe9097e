"""Observations of a Parquet file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet

from pipeline.config import Config, FeatureType, LabelType
from pipeline.sources.base import (
    FIELDS,
    Columns,
    Source,
    SourceError,
    check_columns,
    finite,
    label_of_text,
    label_of_value,
    plain,
)

BATCH_RECORDS = 1_000
"""Records that are in memory at a time."""

BUFFER_BYTES = 64 * 1024
"""What is read of a column at a time: all records may be in one row group."""

MOST_WHOLE = 2**63
"""Decimals from here on have no integer in JSON for all who read it."""


def open_parquet(source: str, config: Config, columns: Columns, limit: int | None) -> Source:
    """Return the observations of a Parquet file; see :func:`pipeline.sources.open_source`.

    A null is no value. Texts are read as in a CSV file, but an empty one is a value. Dates and
    times become text.
    """
    path = Path(source)
    with _opened(path) as file:
        schema, count = file.schema_arrow, file.metadata.num_rows
    check_columns(source, schema.names, config, columns)
    for name in (*config.features, *columns.names.values()):
        _check_type(source, name, schema.field(name).type)
    if not count:
        raise SourceError(f"{source} has columns, but no records")
    total = count if limit is None else min(count, limit)
    return Source(source, total, lambda: islice(_records(path, config, columns), limit))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open the file; whatever goes wrong with it is one line, for people."""
    try:
        with path.open("rb") as handle:
            yield pa.parquet.ParquetFile(handle, buffer_size=BUFFER_BYTES, pre_buffer=False)
    except OSError as error:
        if error.strerror is None:  # Arrow's own, of what is in the file
            raise SourceError(f"{path} is not a whole Parquet file: {_line(error)}") from None
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except pa.ArrowException as error:
        raise SourceError(f"{path} is not a whole Parquet file: {_line(error)}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _check_type(source: str, name: str, kind: pa.DataType) -> None:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not any(is_one(kind) for is_one in _SINGLE):
        raise SourceError(
            f"{source}: the column {name!r} holds values of type {kind}, but must hold numbers, "
            "booleans, texts, dates or times"
        )


_SINGLE = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)


def _records(path: Path, config: Config, columns: Columns) -> Iterator[bytes]:
    features = [(name, _of_feature(kind)) for name, kind in config.features.items()]
    read = {"label": _of_label(config.label.type), "id": _as_written, "ts": _as_written}
    named = [(FIELDS[use], name, read[use]) for use, name in columns.names.items()]
    names = list(dict.fromkeys([*config.features, *columns.names.values()]))
    with _opened(path) as file:
        for batch in file.iter_batches(BATCH_RECORDS, columns=names, use_threads=False):
            values = {name: _values(batch.column(name)) for name in names}
            of_x = [(name, values[name], of) for name, of in features]
            others = [(field, values[name], of) for field, name, of in named]
            for i in range(len(batch)):
                yield orjson.dumps({"x": _row(of_x, i), **_row(others, i)})


def _row(columns: Sequence[tuple[str, Sequence[Any], Callable[[Any], Any]]], i: int) -> Any:
    return {name: of(values[i]) for name, values, of in columns if values[i] is not None}


def _as_written(value: Any) -> Any:
    return value if isinstance(value, str) else plain(_number(value), "categorical")


def _values(column: pa.Array) -> Sequence[Any]:
    """Return the values; dates and times as text, in UTC where they name a zone."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if not pa.types.is_temporal(kind):
        values: Sequence[Any] = column.to_pylist()
        return values
    zone = "Z" if pa.types.is_timestamp(kind) and kind.tz else ""
    if zone:
        column = column.cast(pa.timestamp(kind.unit))
    texts = column.cast(pa.string()).to_pylist()
    return [text and text.replace(" ", "T") + zone for text in texts]


def _of_feature(kind: FeatureType) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, str):
            return finite(value) if kind == "numeric" else value
        return plain(_number(value), kind)

    return convert


def _of_label(kind: LabelType) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, str):
            return label_of_text(value, kind)
        return label_of_value(plain(_number(value)), kind)

    return convert


def _number(value: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    is_whole = abs(value) < MOST_WHOLE and value == value.to_integral_value()
    return int(value) if is_whole else float(value)
