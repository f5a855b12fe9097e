"""Exports published records to a Parquet or CSV file."""

import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from fluxplain.results.columns import columns_of, schema_of, table_of
from fluxplain.results.duplicates import Duplicates
from fluxplain.results.selection import Inventory, Selection
from fluxplain.schemas import BadRecordError, Record

BATCH_RECORDS = 10_000

BATCH_BYTES = 16 * 1024 * 1024
"""Bytes of the messages in a batch; in memory they take a few times as much."""

Values = Iterable[tuple[int, bytes | None]]
"""Partition and value of each message."""

Write = Callable[[list[Record]], None]


@dataclass(slots=True)
class Tally:
    """Counts of written and unusable messages, and an inventory of all records."""

    written: int = 0
    unusable: int = 0
    inventory: Inventory = field(default_factory=lambda: Inventory("stream", "feature", "method"))


def export(values: Values, kind: type[Record], path: Path, selection: Selection) -> Tally:
    """Write the selected records of a kind to a file, each once, in their order.

    The extension decides the format: ``.parquet``, ``.csv.gz``, otherwise CSV. The file appears
    once it is complete. Memory is bounded for a bounded number of streams and features.
    """
    tally = Tally()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _table_writer(temporary, path.name, kind) as write:
            for batch in batches(selected(values, kind, selection, Duplicates(), tally)):
                write_batch(batch, write, tally)
        if tally.written:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return tally


def selected(
    values: Values,
    kind: type[Record],
    selection: Selection,
    duplicates: Duplicates,
    tally: Tally,
) -> Iterator[tuple[Record, int]]:
    """Yield each selected record that is new, and the size of its message in bytes."""
    for partition, value in values:
        try:
            record = kind.decode(value)
        except BadRecordError:
            tally.unusable += 1
            continue
        tally.inventory.add(record)
        if selection.fits(record) and duplicates.is_new(record, partition):
            yield record, len(value or b"")


def batches(records: Iterable[tuple[Record, int]]) -> Iterator[list[Record]]:
    """Yield lists of records that together fit into memory."""
    batch: list[Record] = []
    size = 0
    for record, n in records:
        batch.append(record)
        size += n
        if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def write_batch(batch: list[Record], write: Write, tally: Tally) -> None:
    """Write records, and count them; those that fit no column are unusable."""
    try:
        write(batch)
        tally.written += len(batch)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        # a record that the pipeline would never publish: bisect to find it
        if len(batch) == 1:
            tally.unusable += 1
            return
        half = len(batch) // 2
        write_batch(batch[:half], write, tally)
        write_batch(batch[half:], write, tally)


@contextmanager
def _table_writer(path: Path, name: str, kind: type[Record]) -> Iterator[Write]:
    is_parquet = name.endswith(".parquet")
    columns, schema = columns_of(kind), schema_of(kind, nested=is_parquet)
    with ExitStack() as stack:
        file: IO[bytes] | gzip.GzipFile = stack.enter_context(path.open("xb"))
        if is_parquet:
            writer = pa.parquet.ParquetWriter(file, schema, compression="zstd")
        else:
            if name.endswith(".gz"):
                # without a timestamp, so that the same records give the same file
                zipped = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
                file = stack.enter_context(zipped)
            writer = pa.csv.CSVWriter(file, schema)
        stack.enter_context(writer)
        yield lambda records: writer.write_table(table_of(records, columns, schema))
