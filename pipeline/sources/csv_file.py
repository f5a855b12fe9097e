"""Reads observations from a CSV file."""

import csv
import gzip
import io
import shlex
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import orjson

from fluxplain.config import Config
from fluxplain.schemas.wording import plural
from fluxplain.sources.dialect import Dialect, dialect_of
from fluxplain.sources.source import (
    Columns,
    Observations,
    Source,
    SourceError,
    as_written,
    check_columns,
)

COUNTED_BYTES, COUNTED_GZIP_BYTES = 16 * 2**20, 4 * 2**20
"""Largest plain and compressed file in bytes to read twice to count its records: about a second on
a small machine."""


FIRST_LINES = 1_000
"""Lines of a file that tell its dialect."""


def open_csv(source: str, config: Config, columns: Columns, limit: int | None) -> Source:
    """Return the observations of a CSV file; see :func:`fluxplain.sources.open_source`."""
    path = Path(source)
    dialect = read_dialect(path)
    header, first = [*islice(rows_of(path, dialect), 2), None, None][:2]
    if header is None:
        raise SourceError(f"{source} is empty")
    if first is None:
        raise SourceError(f"{source} has a header, but no records")
    names = names_of(header[1], {*config.features, *columns.names.values()})
    check_columns(source, names, config, columns)
    observations = Observations(config, columns, as_written)
    numbers = {name for name, kind in config.features.items() if kind == "numeric"}
    if config.label.type != "string" and columns.label is not None:
        numbers.add(columns.label)

    def value(place: int, name: str, cell: str) -> str | None:
        return dialect.number(cell, place) if name in numbers else cell or None

    def parse(row: tuple[int, list[str]]) -> bytes:
        line, cells = row
        if len(cells) != len(names):
            # cells may be in the wrong columns: becomes a dead letter with all of them
            problem = f"line {line} has {plural(len(cells), 'cell')}, the header {len(names)}"
            return orjson.dumps({"flaw": problem, "cells": cells})
        named = enumerate(zip(names, cells, strict=True))
        return observations.encode({name: value(at, name, cell) for at, (name, cell) in named})

    def records() -> Iterator[tuple[int, list[str]]]:
        return islice(rows_of(path, dialect), 1, None if limit is None else limit + 1)

    total = None
    if path.stat().st_size <= (COUNTED_GZIP_BYTES if _is_gzip(path) else COUNTED_BYTES):
        total = sum(1 for _ in records())
    return Source(source, total, lambda: map(parse, records()))


def names_of(header: Sequence[str], named: Collection[str] = ()) -> list[str]:
    """Return the names of columns, without the blanks around them.

    A name keeps its blanks if the settings have ``named`` it with them, or if it would be that of
    another column without them.

    Examples
    --------
    >>> names_of([" a", "b ", " b", "c "], named=["c "])
    ['a', 'b ', ' b', 'c ']
    """
    counts = Counter(name.strip() for name in header)
    return [name if name in named or counts[name.strip()] > 1 else name.strip() for name in header]


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def read_dialect(path: Path) -> Dialect:
    """Return how a file is written, by its first lines; raise SourceError if it cannot be read."""
    with _read(path, lambda: 0) as file:
        return dialect_of([*islice(file, FIRST_LINES)])


def rows_of(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield each non-blank row with the number of its last line; may raise SourceError."""
    line, has_ended = 0, False

    def lines(file: io.TextIOBase) -> Iterator[str]:
        nonlocal has_ended
        yield from file
        has_ended = True

    with _read(path, lambda: line) as file:
        delimiter, has_spaces = dialect.delimiter, dialect.has_spaces
        rows = csv.reader(lines(file), delimiter=delimiter, skipinitialspace=has_spaces)
        for row in rows:
            if has_ended:  # within this row
                raise SourceError(
                    f"{path}, line {line + 1}: a cell begins with a quote that nothing closes"
                )
            line = rows.line_num
            if row:
                yield line, row


@contextmanager
def _read(path: Path, line: Callable[[], int]) -> Iterator[io.TextIOBase]:
    """Open a file; turn what is wrong with it into a SourceError of one line.

    ``line`` returns the number of the last line that was read without a problem.
    """
    try:
        # utf-8-sig: a spreadsheet's byte order mark would become part of the first column's name
        with _open_text(path) as file:
            yield file
    except UnicodeDecodeError:
        where = f" (after line {line()})" if line() else ""
        raise SourceError(
            f"{path} is not UTF-8 text{where}: convert it, as with {_conversion(path)}"
        ) from None
    except csv.Error as error:
        problem = str(error)
        if "field limit" in problem:
            most = f"{csv.field_size_limit():,}"
            problem = f"a cell has more than {most} characters; does nothing close its quote?"
        raise SourceError(f"{path}, line {line() + 1}: {problem}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        problem = f"{path} is not a whole gzip file: {error} (after line {line()})"
        raise SourceError(problem) from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None


def _conversion(path: Path) -> str:
    """Return the command that converts a file of the encoding that it seems to have."""
    with gzip.open(path, "rb") if _is_gzip(path) else path.open("rb") as file:
        first = file.read(100)
    encoding = "UTF-16" if first[:2] in {b"\xff\xfe", b"\xfe\xff"} else "WINDOWS-1252"
    name = shlex.quote(str(path))
    given = f"gzip -dc {name} | iconv" if _is_gzip(path) else "iconv"
    read = "" if _is_gzip(path) else f" {name}"
    return f"`{given} -f {encoding} -t UTF-8{read} > utf8.csv`"


def _open_text(path: Path) -> io.TextIOBase:
    if _is_gzip(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")
