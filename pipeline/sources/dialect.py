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


class Dialect(NamedTuple):
    """What separates cells, and whether spaces precede cells.

    Commas in numbers separate decimals or thousands; neither, if the cells do not say which.
    """

    delimiter: str = ","
    has_decimal_commas: bool = False
    has_spaces: bool = False
    has_thousands: bool = False

    def number(self, cell: str) -> str | None:
        """Return the text of a number as Python writes it; None if it is missing.

        Examples
        --------
        >>> Dialect(";", has_decimal_commas=True).number("2,5"), Dialect().number("NA")
        ('2.5', None)
        >>> Dialect(has_thousands=True).number("8,637.75")
        '8637.75'
        """
        if cell in MISSING:
            return None
        if self.has_thousands and _THOUSANDS.fullmatch(cell):
            return cell.replace(",", "")
        has_comma = self.has_decimal_commas and _WITH_COMMA.fullmatch(cell)
        return cell.replace(".", "").replace(",", ".") if has_comma else cell


def dialect_of(lines: Sequence[str]) -> Dialect:
    """Return the dialect of a file that begins with these lines.

    The delimiter gives the most rows as many cells as the header has, if that has several.

    Examples
    --------
    >>> dialect_of(["a;b", "1,5;x", "2;y"])
    Dialect(delimiter=';', has_decimal_commas=True, has_spaces=False, has_thousands=False)
    >>> dialect_of(["only", "1,5"])
    Dialect(delimiter=',', has_decimal_commas=False, has_spaces=False, has_thousands=False)
    """
    delimiter = max(DELIMITERS, key=lambda each: _fit(_rows(lines, each)))
    rows = _rows(lines, delimiter)
    if not _fit(rows):
        return Dialect()
    header = _rows(lines, delimiter, skip=False)[0]
    has_spaces = all(name.startswith(" ") for name in header[1:])
    cells = [cell for row in rows[1:] for cell in row]
    has_points = delimiter == "," or any(map(_DECIMAL_POINT.fullmatch, cells))
    has_decimal_commas = any(map(_DECIMAL_COMMA.fullmatch, cells))
    has_thousands = has_points and not has_decimal_commas
    has_thousands = has_thousands and any(map(_THOUSANDS.fullmatch, cells))
    return Dialect(delimiter, has_decimal_commas and not has_points, has_spaces, has_thousands)


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
