"""Published records as one file for other programs: Parquet, or CSV."""

import gzip
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from pipeline.monitor.columns import columns_of, schema_of, table_of
from schemas import BadRecordError, DeadLetter, Record

BATCH_RECORDS = 10_000

BATCH_BYTES = 16 * 1024 * 1024
"""Of the messages in a batch: what is in memory is some times as much."""

MAX_LETTERS = 100_000
"""Dead letters remembered; those of one crash come again within far fewer."""

MAX_NAMES = 10
"""Streams, features and methods remembered for the message that nothing fits."""

Values = Iterable[tuple[int, bytes | None]]
"""Messages: from which partition of their topic, and what is in them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which records to take.

    Attributes
    ----------
    streams, features, methods
        Of which ones; all if there are none.
    first_seq, last_seq
        From which seq to which, both included.
    """

    streams: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    first_seq: int | None = None
    last_seq: int | None = None

    def fits(self, record: Record) -> bool:
        """Return whether to take a record."""
        return all(
            not wanted or getattr(record, name) in wanted
            for name, wanted in (
                ("stream", self.streams),
                ("feature", self.features),
                ("method", self.methods),
            )
        ) and self._is_in_range(record)

    def _is_in_range(self, record: Record) -> bool:
        seq = _seq(record)
        return (self.first_seq is None or seq >= self.first_seq) and (
            self.last_seq is None or seq <= self.last_seq
        )


@dataclass(slots=True)
class Tally:
    """What became of the messages.

    Attributes
    ----------
    written
        Rows in the file; without any there is no file.
    unusable
        How many were none, or have numbers too large for any column.
    names
        Stream, feature and method → the first few that there were.
    seqs
        The lowest and the highest seq that there was; None without records.
    """

    written: int = 0
    unusable: int = 0
    names: dict[str, dict[str, None]] = field(default_factory=dict)
    seqs: tuple[int, int] | None = None

    def see(self, record: Record) -> None:
        """Note what there is."""
        seq = _seq(record)
        first, last = self.seqs or (seq, seq)
        self.seqs = min(first, seq), max(last, seq)
        for name in ("stream", "feature", "method"):
            value = getattr(record, name, None)
            known = self.names.setdefault(name, {})
            if value is not None and len(known) < MAX_NAMES:
                known[value] = None


class Once:
    """Knows what came before, by its identity.

    What follows from a stream is published in the order of its seqs, and always to the same
    partition of a topic. After a crash it is published again from some seq on. So in a partition
    nothing new has a seq that is not above the newest. Only dead letters come from several
    workers at once: of these the last are remembered one by one.
    """

    def __init__(self) -> None:
        self._newest: dict[tuple[object, ...], int] = {}
        self._letters: OrderedDict[tuple[object, ...], None] = OrderedDict()

    def is_new(self, record: Record, partition: int) -> bool:
        """Return whether a record did not come before, and remember it."""
        if isinstance(record, DeadLetter):
            return self._is_new_letter(record)
        names = ("stream", "kind", "feature", "method", "alpha")
        key = (partition, *(getattr(record, name, None) for name in names))
        seq = _seq(record)
        if seq <= self._newest.get(key, -1):
            return False
        self._newest[key] = seq
        return True

    def _is_new_letter(self, letter: DeadLetter) -> bool:
        digest = hashlib.sha256((letter.key or "").encode()).digest()  # keys may be long
        identity = (letter.topic, letter.partition, letter.offset, letter.key is None, digest)
        if identity in self._letters:
            return False
        self._letters[identity] = None
        if len(self._letters) > MAX_LETTERS:
            self._letters.popitem(last=False)
        return True


def export(values: Values, kind: type[Record], path: Path, choice: Choice) -> Tally:
    """Write the chosen records to a file, each once, in the order in which they come.

    At no time there is a file that is not whole: it is written aside, and then takes the place of
    one that may be there. Memory is bounded, for a bounded number of streams and features.

    Parameters
    ----------
    values
        The messages.
    kind
        What they are.
    path
        Where to write; its ending says which format: ``.parquet``, ``.csv.gz``, else CSV.
    choice
        Which records to take.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    tally = Tally()
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _table_writer(aside, path.name, kind) as write:
            for batch in _batches(_chosen(values, kind, choice, tally)):
                _write(batch, write, tally)
        if tally.written:
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return tally


def _seq(record: Record) -> int:
    seq: int = getattr(record, "seq")  # noqa: B009  of all published records
    return seq


def _chosen(
    values: Values, kind: type[Record], choice: Choice, tally: Tally
) -> Iterator[tuple[Record, int]]:
    """Yield records, and the bytes of each."""
    once = Once()
    for partition, value in values:
        try:
            record = kind.decode(value)
        except BadRecordError:
            tally.unusable += 1
            continue
        tally.see(record)
        if choice.fits(record) and once.is_new(record, partition):
            yield record, len(value or b"")


def _batches(records: Iterable[tuple[Record, int]]) -> Iterator[list[Record]]:
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


Write = Callable[[list[Record]], None]


def _write(batch: list[Record], write: Write, tally: Tally) -> None:
    try:
        write(batch)
        tally.written += len(batch)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        # one of them is nothing that the pipeline publishes
        if len(batch) == 1:
            tally.unusable += 1
            return
        half = len(batch) // 2
        _write(batch[:half], write, tally)
        _write(batch[half:], write, tally)


@contextmanager
def _table_writer(path: Path, name: str, kind: type[Record]) -> Iterator[Write]:
    """Write to a file in the format that the name's ending says."""
    is_parquet = name.endswith(".parquet")
    columns, schema = columns_of(kind), schema_of(kind, nested=is_parquet)
    with ExitStack() as stack:
        file: IO[bytes] | gzip.GzipFile = stack.enter_context(path.open("xb"))
        if is_parquet:
            writer = pa.parquet.ParquetWriter(file, schema, compression="zstd")
        else:
            if name.endswith(".gz"):
                # without the time: the same records give the same file
                zipped = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
                file = stack.enter_context(zipped)
            writer = pa.csv.CSVWriter(file, schema)
        stack.enter_context(writer)
        yield lambda records: writer.write_table(table_of(records, columns, schema))
