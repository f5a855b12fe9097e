"""How a CSV file is written: what separates its cells, and decimals."""

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

DELIMITERS = ",;\t|"
"""What may separate cells; of those that fit equally well the first."""

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
"""Cells of numbers that programs write for a missing one."""

_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+(?:[eE][+-]?\d+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[+-]?\d+\.\d+(?:[eE][+-]?\d+)?\s*")


class Dialect(NamedTuple):
    """What separates cells, and whether a comma separates decimals."""

    delimiter: str = ","
    has_decimal_commas: bool = False

    def number(self, cell: str) -> str | None:
        """Return the text of a number as Python writes it; None if it is missing.

        Examples
        --------
        >>> Dialect(";", has_decimal_commas=True).number("2,5"), Dialect().number("NA")
        ('2.5', None)
        """
        if cell in MISSING:
            return None
        has_comma = self.has_decimal_commas and _DECIMAL_COMMA.fullmatch(cell)
        return cell.replace(",", ".") if has_comma else cell


def dialect_of(lines: Sequence[str]) -> Dialect:
    """Return the dialect of a file that begins with these lines.

    The delimiter gives the most rows as many cells as the header has, if that has several.

    Examples
    --------
    >>> dialect_of(["a;b", "1,5;x", "2;y"])
    Dialect(delimiter=';', has_decimal_commas=True)
    >>> dialect_of(["only", "1,5"])
    Dialect(delimiter=',', has_decimal_commas=False)
    """
    delimiter = max(DELIMITERS, key=lambda each: _fit(_rows(lines, each)))
    rows = _rows(lines, delimiter)
    if delimiter == "," or not _fit(rows):
        return Dialect()
    cells = [cell for row in rows[1:] for cell in row]
    has_points = any(map(_DECIMAL_POINT.fullmatch, cells))
    has_commas = not has_points and any(map(_DECIMAL_COMMA.fullmatch, cells))
    return Dialect(delimiter, has_commas)


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return []


def _fit(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows have as many cells as the header, if that has several; else 0."""
    if not rows or len(rows[0]) < 2:
        return 0
    return sum(len(row) == len(rows[0]) for row in rows)
