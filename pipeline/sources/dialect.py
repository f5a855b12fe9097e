"""How a CSV file is written: what separates its cells, and decimals."""

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

DELIMITERS = ",;\t|"
"""What may separate cells; of those that fit equally well the first."""

MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None", "?"}
)
"""Cells of numbers that programs write for a missing one."""

_WITH_COMMA = re.compile(r"\s*[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?\s*")
"""A number, where commas separate decimals and points thousands."""


def _decimal(mark: str, other: str) -> re.Pattern[str]:
    """Return the pattern of numbers whose decimals begin at a mark; 1,234 may be thousands."""
    thousands = rf"\s*[+-]?[1-9]\d{{0,2}}{mark}\d{{3}}\s*$"
    whole = rf"\s*[+-]?(?:\d+|\d{{1,3}}(?:{other}\d{{3}})+)"
    return re.compile(rf"(?!{thousands}){whole}{mark}\d+(?:[eE][+-]?\d+)?\s*")


_DECIMAL_COMMA, _DECIMAL_POINT = _decimal(",", r"\."), _decimal(r"\.", ",")


_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?\s*")
"""A number, where commas separate thousands."""

_SURE_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}(?:(?:,\d{3})*\.\d+|(?:,\d{3})+)\s*")
"""One whose commas can separate nothing else."""

_SIGNS = re.compile(r"[\s\d.,eE+-]*")
"""What may be a number."""


class Dialect(NamedTuple):
    """What separates cells, whether commas separate decimals, and whether spaces precede cells.

    ``thousands`` are the places of the columns in which commas separate thousands.
    """

    delimiter: str = ","
    has_decimal_commas: bool = False
    has_spaces: bool = False
    thousands: frozenset[int] = frozenset()

    def number(self, cell: str, place: int) -> str | None:
        """Return the text of a number as Python writes it; None if it is missing.

        ``place`` is that of the cell's column.

        Examples
        --------
        >>> german = Dialect(";", has_decimal_commas=True)
        >>> german.number("2,5", 0), german.number("NA", 0)
        ('2.5', None)
        >>> Dialect(thousands=frozenset({1})).number("8,637.75", 1)
        '8637.75'
        """
        if cell in MISSING:
            return None
        if place in self.thousands:
            return cell.replace(",", "") if _THOUSANDS.fullmatch(cell) else cell
        has_comma = self.has_decimal_commas and _WITH_COMMA.fullmatch(cell)
        return cell.replace(".", "").replace(",", ".") if has_comma else cell


def dialect_of(lines: Sequence[str]) -> Dialect:
    """Return the dialect of a file that begins with these lines.

    The delimiter gives the most rows as many cells as the header has, if that has several. Commas
    separate thousands in a column with a number such as 8,637.75 or 1,234,567, if all commas of its
    numbers may.

    Examples
    --------
    >>> dialect_of(["a;b", "1,5;x", "2;y"])
    Dialect(delimiter=';', has_decimal_commas=True, has_spaces=False, thousands=frozenset())
    >>> dialect_of(["a;b", "1,234;1,234", "2,345,678;x"]).thousands
    frozenset({0})
    >>> dialect_of(["only", "1,5"]) == Dialect()
    True
    """
    delimiter = max(DELIMITERS, key=lambda each: _fit(_rows(lines, each)))
    rows = _rows(lines, delimiter)
    if not _fit(rows):
        return Dialect()
    header = _rows(lines, delimiter, skip=False)[0]
    has_spaces = all(name.startswith(" ") for name in header[1:])
    columns = [*zip(*(row for row in rows[1:] if len(row) == len(header)), strict=True)]
    thousands = frozenset(place for place, cells in enumerate(columns) if _has_thousands(cells))
    cells = [cell for row in rows[1:] for cell in row]
    has_points = delimiter == "," or any(map(_DECIMAL_POINT.fullmatch, cells))
    has_commas = not has_points and any(map(_DECIMAL_COMMA.fullmatch, cells))
    return Dialect(delimiter, has_commas, has_spaces, thousands)


def _has_thousands(cells: Sequence[str]) -> bool:
    """Return whether commas certainly separate thousands in the numbers of a column."""
    if not any(map(_SURE_THOUSANDS.fullmatch, cells)):
        return False
    numbers = (cell for cell in cells if "," in cell and _SIGNS.fullmatch(cell))
    return all(map(_THOUSANDS.fullmatch, numbers))


def _rows(lines: Sequence[str], delimiter: str, *, skip: bool = True) -> list[list[str]]:
    """Return the rows that are not blank; ``skip`` the spaces before cells."""
    try:
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=skip)
        return [row for row in rows if row]
    except csv.Error:
        return []


def _fit(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows have as many cells as the header, if that has several; else 0."""
    if not rows or len(rows[0]) < 2:
        return 0
    return sum(len(row) == len(rows[0]) for row in rows)
