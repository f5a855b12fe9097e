"""Encodes observations and perturbed inputs as rows of numbers."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluxplain.evaluate.evaluator import Observation, Value
from fluxplain.evaluate.observations import as_observation, with_python_numbers

Floats = NDArray[np.float64]

NUMBERS = "numbers"
"""Mark of every encoding without categories: their rows are interchangeable."""

MOST_CATEGORIES = 1_000
"""Largest number of a feature's categories; beyond it, all codes are assigned again."""

MOST_LAYOUTS = 100
"""Largest number of cached combinations of features and types."""

EXACT = 2.0**53
"""Limit of integers that a float holds exactly; larger ones are categories."""

Decoder = Callable[[float], Value]

Places = NDArray[np.intp]
"""Positions, such as those of features among the columns."""


@lru_cache(maxsize=64)
def columns_of(features: tuple[str, ...], some: tuple[str, ...]) -> Places:
    """Return the columns of ``some`` features."""
    return np.array([features.index(feature) for feature in some], dtype=np.intp)


class Observed(NamedTuple):
    """An observation ``x``, and its row in an encoding.

    ``features`` are the columns, in the observation's order; ``numbers`` is the row, shape
    (features,).
    """

    x: Observation
    features: tuple[str, ...]
    numbers: Floats
    encoding: "Encoding"

    @property
    def has_categories(self) -> bool:
        """Whether the numbers of any feature are codes."""
        encoding = self.encoding
        return encoding.mark is not NUMBERS and any(map(encoding.is_categorical, self.features))

    def numbers_of(self, features: tuple[str, ...]) -> Floats:
        """Return the numbers and codes of some features; of all in order, the row itself."""
        if features == self.features:
            return self.numbers
        return self.numbers[columns_of(self.features, features)]


class Inputs(NamedTuple):
    """Perturbed inputs of one observation; ``rows`` has the shape (inputs, features)."""

    observed: Observed
    rows: Floats

    def dicts(self) -> list[dict[str, Value]]:
        """Return the inputs as feature → value.

        Examples
        --------
        >>> observed = Encoding().observe({"a": 1, "c": "u"})
        >>> Inputs.replacing(observed, [{"c": "v"}, {"a": 2}]).dicts()
        [{'a': 1, 'c': 'v'}, {'a': 2, 'c': 'u'}]
        """
        x, features, numbers, encoding = self.observed
        decoders = [encoding.decoder(feature) for feature in features]
        inputs = [dict(x) for _ in range(len(self.rows))]
        places = np.nonzero(self.rows != numbers)
        changed = zip(*(each.tolist() for each in places), self.rows[places].tolist(), strict=True)
        for row, column, number in changed:
            inputs[row][features[column]] = decoders[column](number)
        return inputs

    def some(self, places: Sequence[int] | NDArray[np.intp]) -> "Inputs":
        """Return the inputs at some positions."""
        return Inputs(self.observed, self.rows[places])

    def of(self, features: Sequence[str]) -> "Inputs":
        """Return the inputs with some features only, in their order; missing ones are left out."""
        x, given, numbers, encoding = self.observed
        some = tuple(feature for feature in features if feature in x)
        columns = columns_of(given, some)
        observed = Observed({f: x[f] for f in some}, some, numbers[columns], encoding)
        return Inputs(observed, self.rows.take(columns, axis=1))

    @classmethod
    def replacing(cls, observed: Observed, replacements: Sequence[Mapping[str, Value]]) -> "Inputs":
        """Return one input per replacement (feature → value; empty for the observation itself).

        Raises ``KeyError`` if the observation lacks one of the features.
        """
        x, features, _, encoding = observed
        for replacement in replacements:
            encoding.learn(replacement)
            encoding._has_large(replacement)
        observed = encoding.observe(x)  # learning may have changed the encoding
        rows = np.repeat(observed.numbers[None, :], len(replacements), axis=0)
        columns = {feature: column for column, feature in enumerate(features)}
        for row, replacement in zip(rows, replacements, strict=True):
            for feature, value in replacement.items():
                row[columns[feature]] = encoding.number(feature, value)
        return cls(observed, rows)


class Encoding:
    """Turns observations into rows: numbers stay, categories become codes.

    A numeric feature becomes categorical with its first value that is not a number, or if it has
    both numbers and booleans. Rows and codes are valid until ``mark`` changes.

    Examples
    --------
    >>> encoding = Encoding()
    >>> encoding.observe({"a": 1.5, "c": "u"}).numbers.tolist()
    [1.5, 0.0]
    >>> encoding.observe({"a": 2.5, "c": "v"}).numbers.tolist()
    [2.5, 1.0]
    >>> encoding.decoder("c")(1.0)
    'v'
    """

    def __init__(self) -> None:
        self.mark: object = NUMBERS
        self._types: dict[str, type] = {}
        self._codes: dict[str, dict[Hashable, int]] = {}
        self._values: dict[str, list[Value]] = {}
        self._layouts: set[tuple[tuple[str, ...], tuple[type, ...]]] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Return the types; codes are assigned again."""
        return {"types": self._types, "categorical": list(self._codes)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self._types = state["types"]
        for feature in state["categorical"]:
            self._categorize(feature)

    def is_categorical(self, feature: str) -> bool:
        """Return whether the numbers of a feature are codes."""
        return feature in self._codes

    def had_numbers(self, feature: str) -> bool:
        """Return whether a feature has had numbers or booleans, whatever it has now."""
        return feature in self._types

    def take_back(self, feature: str) -> None:
        """Forget that a feature is categorical, as a value made it that could not be used.

        No row and no code from before is valid then. Stored categories make it categorical again.
        """
        if self._codes.pop(feature, None) is not None:
            del self._values[feature]
            self._layouts = set()
            self.mark = object() if self._codes else NUMBERS

    def renew(self) -> None:
        """Assign the codes of features with very many anew; call this between two observations.

        No row and no code from before is valid then.
        """
        for feature in [f for f, codes in self._codes.items() if len(codes) > MOST_CATEGORIES]:
            self._categorize(feature)

    def observe(self, x: Observation) -> Observed:
        """Return an observation with its encoded row; see :func:`as_observation` for other rows.

        What is unusual about a value or a row is found where its layout is not known.
        """
        features = tuple(x)
        try:
            layout = features, tuple(map(type, x.values()))
        except (AttributeError, TypeError):
            return self.observe(as_observation(x))
        if layout not in self._layouts:
            if (plain := with_python_numbers(x)) is not x:
                return self.observe(plain)
            self.learn(x)
            self._layouts = self._layouts if len(self._layouts) < MOST_LAYOUTS else set()
            self._layouts.add(layout)
        if codes := self._codes:
            numbers = np.array(
                [self.number(f, v) if f in codes else v for f, v in x.items()], float
            )
        else:
            numbers = np.fromiter(x.values(), np.float64, len(x))
        if int in layout[1] and not are_exact(numbers.tolist()) and self._has_large(x):
            return self.observe(x)
        return Observed(x, features, numbers, self)

    def plain(self, observed: Observed, features: tuple[str, ...]) -> Floats | None:
        """Return the numbers of some features; None if any are codes."""
        is_plain = not self._codes or self._codes.keys().isdisjoint(features)
        return observed.numbers_of(features) if is_plain else None

    def learn(self, x: Observation) -> None:
        """Learn the type of each feature's values."""
        for feature, value in x.items():
            if feature in self._codes:
                continue
            known, given = self._types.get(feature), _type(value)
            if given is str:
                self._categorize(feature)
            elif known is None:
                self._types[feature] = given
            elif given is not known and bool in {given, known}:
                self._categorize(feature)  # true is not 1, as the name of a category
            elif given is not known:
                self._types[feature] = float

    def number(self, feature: str, value: Value) -> float:
        """Return the number of a learned value."""
        codes = self._codes.get(feature)
        if codes is None:
            return float(value)
        key = _key(value)
        code = codes.get(key)
        if code is None:
            code = codes[key] = len(codes)
            self._values[feature].append(value)
        return float(code)

    def code(self, feature: str, value: Value) -> float:
        """Return the number of a value; NaN if it was never learned."""
        codes = self._codes.get(feature)
        if codes is not None:
            return float(codes.get(_key(value), np.nan))
        return float(value) if isinstance(value, int | float) else np.nan

    def decoder(self, feature: str) -> Decoder:
        """Return the function that turns a number of this feature into its value."""
        if feature in self._codes:
            values = self._values[feature]
            return lambda number: values[int(number)]
        of: Any = self._types.get(feature, float)
        if of is float:
            return float
        # an evaluation point may lie between two integers
        return lambda number: of(number) if number.is_integer() else number

    def _categorize(self, feature: str) -> None:
        self._codes[feature], self._values[feature] = {}, []
        self._layouts = set()
        self.mark = object()

    def _has_large(self, x: Observation) -> bool:
        """Make features with integers that no float holds categorical; return whether any is."""
        known = len(self._codes)
        for feature, value in x.items():
            if type(value) is int and abs(value) >= EXACT and feature not in self._codes:
                self._categorize(feature)
        return len(self._codes) > known


def are_exact(numbers: Sequence[float]) -> bool:
    """Return whether all numbers are surely below the limit of exact integers.

    It compares the root of their sum of squares only: False says that one may be above.
    """
    return math.hypot(*numbers) < EXACT


def _key(value: Value) -> Hashable:
    """Return what tells a category from others: to Python, true equals 1."""
    return (value,) if isinstance(value, bool) else value


def _type(value: Value) -> type:
    """Return ``bool``, ``int`` or ``float``; ``str`` for anything else."""
    of = type(value)
    if of in {bool, int, float}:
        return of
    return float if isinstance(value, float) else str
