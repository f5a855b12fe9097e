"""The first rows of a file, by column, without settings."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from fluxplain.schemas.wording import plural
from fluxplain.sources.csv_file import names_of, read_dialect, rows_of
from fluxplain.sources.dialect import Dialect
from fluxplain.sources.source import SourceError, check_unique, finite, is_csv, is_parquet, plain

MOST_ROWS = 10_000
"""Rows of a sample."""


NEARLY_ALL = 0.99
"""Share of numbers from which a column is one of numbers: the other cells are mistakes."""


class Column(NamedTuple):
    """The values of a column: numbers, booleans and texts; and how many more are missing.

    ``texts`` are the values of a CSV file as written, which tell 01 from 1. Values that
    ``is_typed`` are read as they are: a text is no number, and 1.5 no category.
    """

    name: str
    values: list[Any]
    texts: list[str]
    missing: int
    is_typed: bool = False


def sample_of(source: str) -> list[Column]:
    """Return the columns of a CSV or Parquet file, with the values of its first rows.

    Raises SourceError if it cannot be read or has no rows.
    """
    if is_csv(source):
        columns = [*_of_csv(Path(source))]
    elif is_parquet(source):
        columns = [*_of_parquet(source)]
    else:
        raise SourceError(
            f"{source} is not a source: give a .csv, .tsv, .txt, .csv.gz or .parquet file"
        )
    if not columns or not any(len(each.values) + each.missing for each in columns):
        single = "; its only row is taken as the header" if columns else ""
        raise SourceError(f"{source} has no records{single}")
    check_unique(source, [each.name for each in columns])
    return columns


def _of_csv(path: Path) -> Iterator[Column]:
    dialect = read_dialect(path)
    rows = [row for _, row in islice(rows_of(path, dialect), MOST_ROWS + 1)]
    if not rows:
        return
    header, *whole = [row for row in rows if len(row) == len(rows[0])]
    if 2 * len(whole) < len(rows) - 1:
        raise SourceError(
            f"{path}: the first row has {plural(len(header), 'cell')}, but most others do not: it "
            "must be the header, without lines above it"
        )
    for place, name in enumerate(names_of(header)):
        cells = [row[place] for row in whole]
        texts = _present(cells, dialect, place)
        yield Column(name, [*map(finite, texts)], texts, len(cells) - len(texts))


def _present(cells: list[str], dialect: Dialect, place: int) -> list[str]:
    """Return the cells of a column with a value, as read: NA is missing only among numbers."""
    found = [text for cell in cells if (text := dialect.number(cell, place)) is not None]
    numbers = sum(isinstance(finite(text), float) for text in found)
    if numbers >= NEARLY_ALL * len(found):
        return found
    return [cell for cell in cells if cell]


def _of_parquet(source: str) -> Iterator[Column]:
    from fluxplain.sources.parquet_file import first_columns  # noqa: PLC0415  loads Arrow

    for name, given in first_columns(source, MOST_ROWS):
        values = [plain(each, kind="categorical") for each in given if each is not None]
        yield Column(name, values, [str(each) for each in values], len(given) - len(values))
