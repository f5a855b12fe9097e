"""What River's adaptive random forests as arrays share."""

from collections.abc import Mapping
from copy import deepcopy
from random import Random
from typing import Any, ClassVar, Self

import numpy as np
from river.forest.adaptive_random_forest import BaseForest

from fluxplain.forest.compiled_model import check
from fluxplain.forest.drawing import DrawingModel
from fluxplain.forest.forms import Form
from fluxplain.forest.from_objects import learn_names
from fluxplain.forest.mersenne import state_of
from fluxplain.forest.names import UnsupportedError
from fluxplain.forest.state import Integers

_OURS = frozenset(
    {"_made", "_mains", "_backgrounds", "_spare", "_votes", "river", "reason", "_own_rng"}
)


class CompiledForest(DrawingModel, BaseForest):
    """A forest as arrays: a base class beside River's ``_river_class``.

    ``data`` are copies of the trees; see :class:`CompiledModel`. ``_tree_names`` are those of a
    tree's parameters.
    """

    _mains: Integers
    _form: ClassVar[Form]
    _river_class: ClassVar[Any]
    _tree_names: ClassVar[tuple[str, ...]]

    @classmethod
    def from_river(cls, model: Any) -> Self:
        """Return a River model as arrays; raise ``UnsupportedError`` if they cannot hold it."""
        found = cls.__new__(cls)
        left_out = {"data", "_background", "_rng"}
        of = {name: each for name, each in vars(model).items() if name not in left_out}
        found.__dict__.update(deepcopy(of))
        found._own_rng = Random()
        found._own_rng.setstate(model._rng.getstate())
        if len(model):
            found._start()
            found._read(model)
        return found

    def _begin(self, x: Mapping[Any, Any]) -> bool:
        """Make trees if there are none; return whether there were none."""
        is_new = self._is_new
        if is_new:
            self._init_ensemble(sorted(x))
        return is_new

    def _finish(
        self, done: int, status: int, drawn: Integers, y: Any, guesses: list[Any], seen: list[Any]
    ) -> None:
        """Show predictions to metrics and detectors, look at sizes, raise what River would raise.

        ``done`` trees have learned, as often as ``drawn`` says. ``guesses`` are the trees'
        predictions, ``seen`` is what their metrics see of them.
        """
        looks, times = bool(self._arrays.state.news.n[1]), drawn.tolist()
        for i, guess in enumerate(guesses):
            self._metrics[i].update(y, seen[i])
            if times[i] > 0 and i < done:
                self._watch(i, y, guess)
        check(status)
        if looks:
            self._look_at_sizes()

    def _watch(self, i: int, y: Any, guess: Any) -> None:
        """Show a tree's error to its detectors, which may replace it."""
        if self._warning_detection_disabled and self._drift_detection_disabled:
            return
        error = self._drift_detector_input(i, y, guess)
        if not self._warning_detection_disabled:
            self._warning_detectors[i].update(error)
            if self._warning_detectors[i].drift_detected:
                self._start_background(i)
                self._warning_detectors[i] = self.warning_detector.clone()
                self._warning_tracker[i] += 1
        if not self._drift_detection_disabled:
            self._drift_detectors[i].update(error)
            if self._drift_detectors[i].drift_detected:
                self._replace(i)
                self._drift_tracker[i] += 1

    def _start_background(self, i: int) -> None:
        if self._backgrounds[i] < 0:
            self._backgrounds[i] = self._spare.pop()
        self._arrays.put_tree(self._backgrounds[i], self._tree_parameters())

    def _replace(self, i: int) -> None:
        if not self._warning_detection_disabled and self._backgrounds[i] >= 0:
            self._arrays.drop_tree(self._mains[i])
            self._spare.append(int(self._mains[i]))
            self._mains[i], self._backgrounds[i] = self._backgrounds[i], -1
            self._warning_detectors[i] = self.warning_detector.clone()
        else:
            self._arrays.put_tree(self._mains[i], self._tree_parameters())
        self._drift_detectors[i] = self.drift_detector.clone()
        self._metrics[i] = self.metric.clone()

    def _tree_parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._tree_names}

    def _init_ensemble(self, features: list[Any]) -> None:
        self._set_max_features(len(features))
        try:
            self._start()
        except UnsupportedError as error:
            self._give_up(str(error))
            self.river._init_ensemble(features)

    def _start(self) -> None:
        """Make the arrays, with trees that have learned nothing."""
        n, parameters = self.n_models, self._tree_parameters()
        self._made = self._form.arrays(parameters, n_trees=2 * n, words=state_of(self._own_rng))
        self._mains = np.arange(n)
        self._backgrounds = np.full(n, -1)
        self._spare = [*range(n, 2 * n)]
        for tree in range(n):
            self._arrays.put_tree(tree, parameters)

    def _read(self, model: Any) -> None:
        behind = [each for each in model._background or () if each is not None]
        learn_names(self._arrays, [*model.data, *behind])
        reader = self._form.reader(self._arrays)
        for i, tree in enumerate(model.data):
            reader.read(i, tree)
        for i, tree in enumerate(model._background or ()):
            if tree is not None:
                self._backgrounds[i] = self._spare.pop()
                self._arrays.put_tree(self._backgrounds[i], self._tree_parameters())
                reader.read(int(self._backgrounds[i]), tree)

    def _with_trees(self, river: Any) -> Any:
        if self._made is not None:
            river.data = [self._written(river, tree) for tree in self._mains.tolist()]
        if not self._warning_detection_disabled:
            behind = [-1] * self.n_models if self._made is None else self._backgrounds.tolist()
            river._background = [self._written(river, t) if t >= 0 else None for t in behind]
        return river

    def _without_trees(self) -> Any:
        river = self._river_class.__new__(self._river_class)
        river.__dict__.update({n: each for n, each in vars(self).items() if n not in _OURS})
        river._rng = self._rng
        river.data, river._background = [], None
        return river

    def _written(self, river: Any, tree: int) -> Any:
        written = river._new_base_model()
        self._form.writer(self._arrays, written).write(tree)
        return written

    def _river_tree(self, tree: int) -> Any:
        if self.river is None:
            return self._written(self._without_trees(), tree)
        mains = self._mains.tolist()
        if tree in mains:
            return self.river.data[mains.index(tree)]
        return self.river._background[self._backgrounds.tolist().index(tree)]

    def __len__(self) -> int:
        return 0 if self._is_new else self.n_models

    @property
    def _is_new(self) -> bool:
        return self._made is None and self.river is None

    @property
    def data(self) -> list[Any]:
        """Copies of the trees as River's objects; none before the first observation."""
        trees: list[Any] = [] if self._is_new else self._as_river().data
        return trees

    @data.setter
    def data(self, trees: list[Any]) -> None:
        if trees:
            raise AttributeError("trees are replaced by from_river")

    @property
    def _background(self) -> list[Any] | None:
        return self._as_river()._background  # type: ignore[no-any-return]

    @_background.setter
    def _background(self, trees: list[Any] | None) -> None:
        if trees and any(trees):
            raise AttributeError("trees are replaced by from_river")
