"""How an explainer shows itself: as text, and as a table in a notebook."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from heapq import nlargest
from html import escape
from itertools import islice
from typing import NamedTuple

from fluxplain.explain.smoothing import Estimates

MOST_NAMES, LONGEST_NAME = 5, 40
"""Names that the text lists, and characters of a name."""

LARGEST, MOST_ROWS = 3, 15
"""Importances in the text and in the table, the largest by absolute value."""


class Description(NamedTuple):
    """What an explainer shows of itself.

    ``settings`` are name → displayed value, and ``n`` counts the explained observations. Standard
    errors may be infinite: too little is known.

    Examples
    --------
    >>> shown = Description(
    ...     "IncrementalPFI",
    ...     "ARFClassifier",
    ...     {"loss": "brier", "alpha": "0.001"},
    ...     1200,
    ...     {"age": 0.0801, "loan": -0.012},
    ...     {"age": 0.0225, "loan": math.inf},
    ... )
    >>> print(shown.text())
    <IncrementalPFI of ARFClassifier: age, loan; loss brier, alpha 0.001;
     1,200 observations explained: age 0.0801 ± 0.022, loan -0.012>
    """

    explainer: str
    model: str
    settings: Mapping[str, str]
    n: int
    values: Mapping[str, float]
    std_errors: Mapping[str, float]

    def text(self) -> str:
        """Return two lines, with the standard errors that are known."""
        names = ", ".join(map(_short, islice(self.values, MOST_NAMES)))
        if len(self.values) > MOST_NAMES:
            names += f", … ({len(self.values):,} in all)"
        largest = ", ".join(
            f"{_short(name)} {value}{error and f' ± {error}'}"
            for name, value, error in self._largest(LARGEST)
        )
        progress = f"{self._progress}: {largest}" if self.n else self._progress
        return f"<{self._title}: {names}; {self._settings};\n {progress}>"

    def html(self) -> str:
        """Return a table of the largest importances, with all names escaped."""
        rows = "".join(
            f"<tr><th scope='row'>{escape(_short(name))}</th><td>{value}</td>"
            f"<td>{error and f'± {error}'}</td></tr>"
            for name, value, error in self._largest(MOST_ROWS)
        )
        note = f"{self._settings}; {self._progress}"
        if len(self.values) > MOST_ROWS:
            note += f"; the largest {MOST_ROWS} of {len(self.values):,}"
        head = "<th></th><th>importance</th><th>standard error</th>"
        return (
            f"<div><b>{escape(self._title)}</b><br>{escape(note)}"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    @property
    def _title(self) -> str:
        return f"{self.explainer} of {self.model}"

    @property
    def _settings(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.settings.items())

    @property
    def _progress(self) -> str:
        if not self.n:
            return "no observation explained yet"
        return f"{self.n:,} observation{'s' * (self.n > 1)} explained"

    def _largest(self, n: int) -> list[tuple[str, str, str]]:
        """Return names with value and standard error; none before the first explanation."""
        names = nlargest(n, self.values, key=lambda name: abs(self.values[name])) if self.n else []
        errors = [self.std_errors[name] for name in names]
        return [
            (name, f"{self.values[name]:.3g}", f"{error:.2g}" if math.isfinite(error) else "")
            for name, error in zip(names, errors, strict=True)
        ]


class Described(Estimates):
    """Estimates about a model, which show themselves by a :class:`Description`."""

    model: object

    @abstractmethod
    def _explained(self) -> int:
        """Return how many observations are explained."""

    @abstractmethod
    def _settings(self) -> dict[str, str]:
        """Return the displayed settings by name."""

    def _description(self) -> Description:
        return Description(
            type(self).__name__,
            _short(_model_name(self.model)),
            self._settings(),
            self._explained(),
            self.values,
            self.std_errors,
        )

    def __repr__(self) -> str:
        return self._description().text()

    def _repr_html_(self) -> str:
        """Return the table that a notebook displays."""
        return self._description().html()


def _model_name(model: object) -> str:
    """Return a model's own name, or else its class."""
    return type(model).__name__ if type(model).__str__ is object.__str__ else str(model)


def _short(name: object) -> str:
    text = name if isinstance(name, str) and name.isprintable() else repr(name)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
