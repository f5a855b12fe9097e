"""The arrays of a model's regression trees."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from river import linear_model, optim
from river.tree.splitter import EBSTSplitter, TEBSTSplitter

from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.mersenne import Words
from fluxplain.forest.names import Layout, UnsupportedError
from fluxplain.forest.observe import Given
from fluxplain.forest.pool import Size
from fluxplain.forest.state import Settings
from fluxplain.forest.tree_arrays import TreeArrays

LARGEST = 1e100
"""Largest target. Larger ones could have a variance that is infinite."""

_CLASSIFICATION = {
    "split_criterion": "info_gain",
    "nb_threshold": 0,
    "min_branch_fraction": 0.0,
    "max_share_to_split": 1.0,
}
"""Parameters that regression trees do not have."""


class RegressionArrays(TreeArrays):
    """The regression trees of one model; they have one class."""

    def __init__(self, parameters: Mapping[str, Any], *, n_trees: int, words: Words) -> None:
        self._digits = _digits(parameters["splitter"])
        self._has_models = parameters["leaf_prediction"] != "mean"
        self._leaf_model = _learning(parameters["leaf_model"] if self._has_models else None)
        super().__init__(
            {**parameters, **_CLASSIFICATION, "splitter": None}, n_trees=n_trees, words=words
        )
        self.names.label(0)
        self.make_room()

    @property
    def leaves_out_unknown(self) -> bool:  # type: ignore[override]
        """Whether features that were never learned do not matter: a linear model needs numbers."""
        return not (self._has_models and self.names.features)

    def _first_size(self, n_trees: int) -> Size:
        return Size(
            *(n_trees, 64, 64, 16, 1, 1, 1, 1, 1, 64, int(self._has_models)),
            watched=self._first_watched(),
        )

    def _settings(self) -> Settings:
        given = self.parameters
        return (
            super()
            ._settings()
            ._replace(
                least=float(
                    given.get("min_samples_split", 5)
                ),  # River's forest has no such parameter
                decay=float(given["model_selector_decay"]),
                **self._leaf_model._asdict(),
            )
        )

    def make_room(self) -> None:
        """Enlarge the arrays for new names."""
        super().make_room()
        if self._has_models:
            self._resize(self.size._replace(modelled=self.size.features))
        self.labels = [None]
        nodes, leaves, edges, *_ = self._needs
        self._needs = nodes, leaves, edges, 0, self.size.trees * self.size.observed

    def encode(self, x: Mapping[Any, Any], *, learns: bool = False) -> tuple[Floats, Layout]:
        """Return an observation as numbers, and the places of its features."""
        row, layout = super().encode(x, learns=learns)
        if self._has_models and not layout.is_numeric:
            raise UnsupportedError("the linear models of leaves take no categories")
        return row, layout

    def _encode_known(self, x: Mapping[Any, Any]) -> tuple[Floats, Layout]:
        unknown = [value for name, value in x.items() if name not in self.names.features]
        if self._has_models and not all(map(_is_finite, unknown)):
            raise UnsupportedError("a feature that was never learned is no finite number")
        return super()._encode_known(x)

    def encode_target(self, x: Mapping[Any, Any], y: Any) -> tuple[Given, float]:
        """Return an observation as numbers, and its target, with room for what it can add."""
        # NumPy's numbers raise where Python's do not, and the other way round
        if type(y) not in {float, int, bool} or not abs(y) <= LARGEST:
            raise UnsupportedError(f"a target is {y!r}")
        row, layout = self.encode(x, learns=True)
        values = row if self._digits is None else self._rounded(x, row, layout)
        self.take_room()
        return Given(row, values, layout.columns, layout.features, layout.ranked), float(y)

    def _rounded(self, x: Mapping[Any, Any], row: Floats, layout: Layout) -> Floats:
        """Return numbers rounded as Python rounds them, and categories as they are."""
        digits, given = self._digits, x.values()
        if layout.is_numeric:
            return np.array([round(value, digits) for value in given], np.float64)
        nominal = self.state.settings.nominal[layout.features].tolist()
        pairs = zip(given, row.tolist(), nominal, strict=True)
        numbers = [code if is_code else round(value, digits) for value, code, is_code in pairs]
        return np.array(numbers, np.float64)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float | int) and abs(value) <= LARGEST


class LeafModel(NamedTuple):
    """Parameters of River's ``LinearRegression``, as settings."""

    rate: float
    intercept_rate: float
    l2: float
    clip: float
    intercept: float


def _digits(splitter: Any) -> int | None:
    """Return to how many digits values are rounded; None if they are not."""
    if splitter is None:
        splitter = TEBSTSplitter()
    if type(splitter) is EBSTSplitter:
        return None
    if type(splitter) is not TEBSTSplitter:
        raise UnsupportedError(f"its splitter is a {type(splitter).__name__}")
    if type(splitter.digits) is not int:
        raise UnsupportedError(f"its splitter rounds to {splitter.digits} digits")
    return splitter.digits


def _learning(model: Any) -> LeafModel:
    """Return the parameters of a leaf's model; raise ``UnsupportedError`` for another one."""
    given = linear_model.LinearRegression() if model is None else model
    if type(given) is not linear_model.LinearRegression:
        raise UnsupportedError(f"the model of its leaves is a {type(given).__name__}")
    parts = (
        (given.loss, optim.losses.Squared),
        (given.optimizer, optim.SGD),
        (given.optimizer.lr, optim.schedulers.Constant),
        (given.intercept_lr, optim.schedulers.Constant),
        (given.initializer, optim.initializers.Zeros),
    )
    for part, expected in parts:
        if type(part) is not expected:
            raise UnsupportedError(f"the model of its leaves has a {type(part).__name__}")
    if given.l1 or given.weights or given.optimizer.n_iterations:
        reason = "has an l1 penalty" if given.l1 else "has learned"
        raise UnsupportedError(f"the model of its leaves {reason}")
    return LeafModel(
        rate=float(given.optimizer.lr.learning_rate),
        intercept_rate=float(given.intercept_lr.learning_rate),
        l2=float(given.l2),
        clip=float(given.clip_gradient),
        intercept=float(given.intercept),
    )
