"""Tables of model outputs."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.evaluator import Label, Output

Labels = tuple[Label | None, ...]
"""The classes of probabilities, in the model's order; ``(None,)`` for the number of a regressor."""

V = TypeVar("V", bound=Any)

MIXED = "the model gave both numbers and probabilities"


class Table(NamedTuple):
    """The outputs of a model on several inputs.

    Attributes
    ----------
    labels
        The labels of the columns: classes, or None for a number.
    numbers
        Probabilities or numbers, all finite; shape (inputs, labels).
    n_first
        Number of labels that the model gave for the first input, None for all; the others follow.
    """

    labels: Labels
    numbers: Floats
    n_first: int | None = None

    @property
    def is_regular(self) -> bool:
        """Whether the model gave all labels for the first input."""
        return self.n_first is None or self.n_first == len(self.labels)

    def outputs(self) -> list[Output]:
        """Return each row as a number, or as class → probability.

        Examples
        --------
        >>> Table(("no", "yes"), np.array([[0.25, 0.75]])).outputs()
        [{'no': 0.25, 'yes': 0.75}]
        >>> Table((None,), np.array([[1.5]])).outputs()
        [1.5]
        """
        if self.labels == (None,):
            return self.numbers[:, 0].tolist()  # type: ignore[no-any-return]
        rows: list[list[float]] = self.numbers.tolist()
        return [dict(zip(cast(tuple[Label, ...], self.labels), row, strict=True)) for row in rows]

    def first(self) -> "Table":
        """Return the first row, without classes that occur only in other rows.

        Examples
        --------
        >>> table_of([{"a": 1.0}, {"b": 0.75, "a": 0.25}]).first().outputs()
        [{'a': 1.0}]
        """
        return Table(self.labels[: self.n_first], self.numbers[:1, : self.n_first])

    def part(self, begin: int, end: int) -> "Table":
        """Return the rows from ``begin`` to before ``end``."""
        return Table(self.labels, self.numbers[begin:end])


def table_of(outputs: Sequence[Output]) -> Table:
    """Return outputs as a table; a missing class counts as 0.

    Raises
    ------
    TypeError
        If some are numbers and some probabilities.

    Examples
    --------
    >>> table_of([{"a": 1.0}, {"b": 0.75, "a": 0.25}]).numbers.tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """
    dicts = [output for output in outputs if isinstance(output, dict)]
    if not dicts:
        return Table((None,), np.array(outputs, np.float64)[:, None])
    if len(dicts) < len(outputs):
        raise TypeError(MIXED)
    labels = tuple(dict.fromkeys(label for output in dicts for label in output))
    rows = [[output.get(label, 0.0) for label in labels] for output in dicts]
    numbers = np.array(rows, np.float64).reshape(len(dicts), len(labels))
    return Table(labels, numbers, len(dicts[0]))


def in_order(values: Iterable[V]) -> list[V]:
    """Return labels or categories of any types in the same order in every process."""
    return sorted(values, key=lambda value: (type(value).__name__, value))


def aligned(table: Table, labels: Labels) -> Floats:
    """Return a table's numbers with exactly these labels as columns; 0 for a missing one."""
    if table.labels == labels:
        return table.numbers
    columns = {label: column for column, label in enumerate(table.labels)}
    numbers = np.zeros((len(table.numbers), len(labels)))
    for place, label in enumerate(labels):
        if label in columns:
            numbers[:, place] = table.numbers[:, columns[label]]
    return numbers
