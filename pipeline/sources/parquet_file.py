"""Reads observations from a Parquet file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from fluxplain.config import Config
from fluxplain.sources.source import (
    Columns,
    Observations,
    Source,
    SourceError,
    check_columns,
    check_unique,
    plain,
)

BATCH_RECORDS = 1_000
"""Records in memory at a time."""

BUFFER_BYTES = 64 * 1024
"""Bytes of a column to read at a time: all records may be in one row group."""


def open_parquet(source: str, config: Config, columns: Columns, limit: int | None) -> Source:
    """Return the observations of a Parquet file; see :func:`fluxplain.sources.open_source`.

    A null or NaN is a missing value, an empty text is not. Dates and times become text.
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


def first_columns(source: str, n: int) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield each column's name with the values of the first ``n`` rows; may raise SourceError.

    Of a column with nested values, a single empty list shows its kind.
    """
    with _opened(Path(source)) as file:
        schema = file.schema_arrow
        check_unique(source, schema.names)
        names = [name for name in schema.names if _is_single(schema.field(name).type)]
        for batch in islice(file.iter_batches(n, columns=names, use_threads=False), 1):
            for name in schema.names:
                yield name, _values(batch.column(name)) if name in names else [[]]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open the file; raise a SourceError of one line if it is damaged."""
    try:
        with path.open("rb") as handle:
            yield pa.parquet.ParquetFile(handle, buffer_size=BUFFER_BYTES, pre_buffer=False)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.strerror:  # Arrow's own errors have none
            raise SourceError(f"cannot read {path}: {error.strerror}") from None
        problem = " ".join(str(error).split())
        raise SourceError(f"{path} is not a whole Parquet file: {problem}") from None


def _check_type(source: str, name: str, kind: pa.DataType) -> None:
    if not _is_single(kind):
        raise SourceError(
            f"{source}: the column {name!r} holds values of type {kind}, but must hold numbers, "
            "booleans, texts, dates or times"
        )


def _is_single(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(getattr(pa.types, f"is_{each}")(kind) for each in _SINGLE)


_SINGLE = (
    *("null", "boolean", "integer", "floating", "decimal", "string", "large_string"),
    *("string_view", "date", "time", "timestamp"),
)


def _records(path: Path, config: Config, columns: Columns) -> Iterator[bytes]:
    # partial(plain): a textual id stays text
    observations = Observations(config, columns, partial(plain, kind="categorical"))
    names = list(dict.fromkeys([*config.features, *columns.names.values()]))
    with _opened(path) as file:
        for batch in file.iter_batches(BATCH_RECORDS, columns=names, use_threads=False):
            values = {name: _values(batch.column(name)) for name in names}
            for i in range(len(batch)):
                yield observations.encode({name: column[i] for name, column in values.items()})


def _values(column: pa.Array) -> Sequence[Any]:
    """Return the values; dates and times as text, in UTC if the column has a time zone."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if not pa.types.is_temporal(kind):
        # NaN differs from itself
        return [value if value == value else None for value in column.to_pylist()]  # noqa: PLR0124
    zone = "Z" if pa.types.is_timestamp(kind) and kind.tz else ""
    if zone:
        column = column.cast(pa.timestamp(kind.unit))
    texts = column.cast(pa.string()).to_pylist()
    return [text and text.replace(" ", "T") + zone for text in texts]
