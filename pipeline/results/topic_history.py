"""Appends a topic's records to a folder of Parquet files by day, each once."""

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import count, groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet

from fluxplain.errors import UserError
from fluxplain.results.columns import columns_of, schema_of, table_of
from fluxplain.results.duplicates import Duplicates
from fluxplain.results.export_file import Tally, batches, selected, write_batch
from fluxplain.results.selection import EVERYTHING
from fluxplain.schemas import Record

MAX_MESSAGES = 1_000_000
"""Messages in a file: after a kill, at most so many are read again."""

LATEST_MS = 253_402_300_799_999
"""The end of the year 9999, in ms since 1970; producers may write any time."""

SEEN = b"fluxplain.seen"
"""Name in a file's metadata of what is needed to recognize later duplicates."""


class HistoryError(UserError):
    """A folder has files that no history has."""


class Message(NamedTuple):
    """A message of a partition, with the time of its publication in ms since 1970."""

    offset: int
    published_ms: int
    value: bytes | None


class History:
    """The files of one partition: ``day=2026-11-30/PARTITION-FIRST-LAST.parquet``.

    A file has the messages of a day from one offset to another, and appears once it is complete.
    It never changes. So the names tell where to continue, and a kill at any moment neither loses
    nor repeats records. Only one process at a time may append.

    Parameters
    ----------
    folder
        The folder of the topic.
    kind
        The kind of record.
    partition
        The number of the partition.

    Raises
    ------
    HistoryError
        If a file's name has no offsets, or its metadata lack what this class writes.
    """

    def __init__(self, folder: Path, kind: type[Record], partition: int) -> None:
        self._folder = folder
        self._kind = kind
        self._partition = partition
        self._columns, self._schema = columns_of(kind), schema_of(kind, nested=True)
        self._duplicates = Duplicates(incarnations=True)
        newest = max(folder.glob(f"day=*/{partition}-*.parquet"), key=_last_offset, default=None)
        self.next_offset = None if newest is None else _last_offset(newest) + 1
        """Offset of the first message that is in no file; None without files."""
        if newest is not None:
            self._duplicates.load(_seen_in(newest))

    def append(self, messages: Iterable[Message]) -> Tally:
        """Write the next messages, in their order; a new day begins a new file."""
        tally, number = Tally(), count()

        def file_of(message: Message) -> tuple[str, int]:
            return _day_of(message), next(number) // MAX_MESSAGES

        for (day, _), those in groupby(messages, key=file_of):
            self._write_file(self._folder / f"day={day}", those, tally)
        return tally

    def _write_file(self, folder: Path, messages: Iterable[Message], tally: Tally) -> None:
        ends: dict[str, int] = {}

        def values() -> Iterator[tuple[int, bytes | None]]:
            for message in messages:
                ends.setdefault("first", message.offset)
                ends["last"] = message.offset
                yield self._partition, message.value

        before = tally.written
        temporary = self._folder / f".{self._partition}.tmp"
        try:
            self._write_records(temporary, values(), tally)
            if tally.written > before:  # else the same messages are read again next time
                folder.mkdir(exist_ok=True)
                range_of_offsets = f"{ends['first']:020d}-{ends['last']:020d}"
                temporary.rename(folder / f"{self._partition}-{range_of_offsets}.parquet")
                _sync(folder)
        finally:
            temporary.unlink(missing_ok=True)

    def _write_records(
        self, path: Path, values: Iterator[tuple[int, bytes | None]], tally: Tally
    ) -> None:
        with path.open("wb") as file:
            with pa.parquet.ParquetWriter(file, self._schema, compression="zstd") as writer:

                def write(records: list[Record]) -> None:
                    writer.write_table(table_of(records, self._columns, self._schema))

                for batch in batches(
                    selected(values, self._kind, EVERYTHING, self._duplicates, tally)
                ):
                    write_batch(batch, write, tally)
                writer.add_key_value_metadata({SEEN: self._duplicates.dump()})
            file.flush()
            os.fsync(file.fileno())


def _day_of(message: Message) -> str:
    """Return the day of a message's publication, in UTC."""
    published_ms = min(max(message.published_ms, 0), LATEST_MS)
    return datetime.fromtimestamp(published_ms // 1000, UTC).date().isoformat()


def _last_offset(path: Path) -> int:
    try:
        return int(path.stem.split("-")[2])
    except (IndexError, ValueError):
        raise HistoryError(f"{path} is no file of `fluxplain export`: move it away") from None


def _seen_in(path: Path) -> bytes:
    try:
        metadata = pa.parquet.read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError):
        metadata = {}
    if SEEN not in metadata:
        raise HistoryError(
            f"{path} is not as `fluxplain export` wrote it: continue in another folder"
        )
    seen: bytes = metadata[SEEN]
    return seen


def _sync(folder: Path) -> None:
    """Make new names in a folder, and its own, survive a crash of the machine."""
    for each in (folder, folder.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
