"""Numbers for the features, categories and classes of a model, in the order in which they came."""

import math
from collections.abc import Hashable, Mapping
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from fluxplain.evaluate.encoding import EXACT, Floats, are_exact
from fluxplain.forest.state import Integers

MOST_LAYOUTS = 100
"""Largest number of remembered combinations of features."""

NUMBERS = frozenset({float, int, bool})
"""Python's own types of numbers."""


class UnsupportedError(ValueError):
    """Values that arrays cannot hold as River's objects do."""


class Layout(NamedTuple):
    """The features of an observation: in its order, sorted, and the place of each feature in it."""

    features: Integers
    ranked: Integers
    columns: Integers
    is_numeric: bool


class Names:
    """Numbers features, categories and classes.

    A feature is categorical if it was named so, or if its first value is not a number.
    """

    def __init__(self, nominal: Any, *, needs_names: bool) -> None:
        self._named = nominal
        self._needs_names = needs_names
        self.features: dict[Any, int] = {}
        self.nominal: set[Any] = set()  # the categorical ones
        self.categories: list[dict[Any, int] | None] = []
        self.classes: dict[Any, int] = {}
        self.n_known = 0  # of all three together
        self.layouts: dict[tuple[Any, ...], Layout] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "layouts": {}}

    def known_layout(self, features: tuple[Any, ...]) -> Layout | None:
        """Return the places of features; None if one of them is not known."""
        found = self.layouts.get(features)
        if found is None and self.features.keys() >= set(features):
            found = self.new_layout(features, {})
        return found

    def knows(self, x: Mapping[Any, Any]) -> bool:
        """Return whether all features were learned."""
        return self.features.keys() >= x.keys()

    def new_layout(self, names: tuple[Any, ...], x: Mapping[Any, Any]) -> Layout:
        """Return the places of an observation's features, and keep them; learn new ones."""
        for name in names:
            if name not in self.features:
                is_named = self._named is not None and name in self._named
                self.learn_feature(name, is_nominal=is_named or not isinstance(x[name], Number))
        features = np.array([self.features[name] for name in names], dtype=np.int64)
        ranked = np.array([self.features[name] for name in self._sorted(names)], dtype=np.int64)
        columns = np.full(len(self.features), -1, dtype=np.int64)
        columns[features] = np.arange(len(names))
        if len(self.layouts) >= MOST_LAYOUTS:
            self.layouts = {}
        is_numeric = all(self.categories[feature] is None for feature in features.tolist())
        found = self.layouts[names] = Layout(features, ranked, columns, is_numeric)
        return found

    @staticmethod
    def _sorted(names: tuple[Any, ...]) -> list[Any]:
        try:
            return sorted(names)
        except TypeError as error:
            raise UnsupportedError(str(error)) from error

    def row(self, values: tuple[Any, ...], layout: Layout, *, learns: bool) -> Floats:
        """Return an observation as numbers; a new category is learned, or else -1."""
        if layout.is_numeric and NUMBERS.issuperset(map(type, values)):
            try:
                if are_exact(values):
                    return np.fromiter(values, np.float64, len(values))
            except OverflowError as error:
                raise UnsupportedError(f"no float holds a number: {error}") from error
        pairs = zip(layout.features.tolist(), values, strict=True)
        numbers = (self._number(feature, value, learns=learns) for feature, value in pairs)
        return np.fromiter(numbers, np.float64, len(values))

    def _number(self, feature: int, value: Any, *, learns: bool) -> float:
        categories = self.categories[feature]
        if categories is not None:
            return self._category(feature, categories, value, learns=learns)
        if not isinstance(value, float | int | np.integer):
            raise UnsupportedError(f"a number is {value!r}")
        if not isinstance(value, float) and abs(int(value)) >= EXACT:
            raise UnsupportedError(f"no float holds {value}")
        return float(value)

    def _category(
        self, feature: int, categories: dict[Any, int], value: Any, *, learns: bool
    ) -> float:
        if value is None or value != value:  # noqa: PLR0124  NaN
            raise UnsupportedError("a category is missing")
        if type(value) is not str:
            # River decides in each leaf
            if isinstance(value, Number) and not self._is_named(feature):
                raise UnsupportedError("a feature is both categorical and numeric")
            if not isinstance(value, Hashable):
                raise UnsupportedError(f"a category is {value!r}")
        return float(self._learned(categories, value) if learns else categories.get(value, -1))

    def _is_named(self, feature: int) -> bool:
        return self._named is not None and [*self.features][feature] in self._named

    def code(self, feature: int, value: Any) -> int:
        """Return the number of a category; learn it if it is new."""
        return self._learned(self._categories(feature), value)

    def known_code(self, name: Any, value: Any) -> float:
        """Return the number of a feature's value: -1 for an unknown category, NaN for no number."""
        try:
            return self._number(self.features[name], value, learns=False)
        except KeyError:
            return -1.0
        except UnsupportedError:
            return math.nan

    def value(self, feature: int, code: int) -> Any:
        """Return the category of a number."""
        return [*self._categories(feature)][code]

    def _categories(self, feature: int) -> dict[Any, int]:
        categories = self.categories[feature]
        if categories is None:  # River's objects disagree about the feature
            raise UnsupportedError("a feature is both categorical and numeric")
        return categories

    def learn_feature(self, name: Any, *, is_nominal: bool) -> None:
        """Learn a feature."""
        if self._needs_names and not name:
            raise UnsupportedError("River switches no feature off whose name is empty or 0")
        if name not in self.features:
            self.layouts = {}  # theirs have no place for it
            self.categories.append({} if is_nominal else None)
            if is_nominal:
                self.nominal.add(name)
            self.features[name] = len(self.features)
            self.n_known += 1

    def label(self, y: Any) -> int:
        """Return the number of a class; learn it if it is new."""
        code = self.classes.get(y)
        if code is not None:
            return code
        if y is None or y != y:  # noqa: PLR0124  NaN
            raise UnsupportedError(f"a label is {y}")
        return self._learned(self.classes, y)

    def _learned(self, codes: dict[Any, int], each: Any) -> int:
        code = codes.get(each)
        if code is None:
            code = codes[each] = len(codes)
            self.n_known += 1
        return code


def ranks_of(codes: Mapping[Any, int], size: int) -> Integers:
    """Return of each code its place when what it stands for is sorted.

    Raises ``UnsupportedError`` if it cannot be sorted, which River tries where it matters.
    """
    try:
        ordered = sorted(codes)
    except TypeError as error:
        raise UnsupportedError(str(error)) from error
    ranks = np.zeros(size, dtype=np.int64)
    for rank, each in enumerate(ordered):
        ranks[codes[each]] = rank
    return ranks
