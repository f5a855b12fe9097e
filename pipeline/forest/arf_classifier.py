"""River's adaptive random forest for classification, as arrays."""

import math
from collections.abc import Mapping
from copy import deepcopy
from random import Random
from typing import Any, Self

import numpy as np
from river import forest, metrics
from river.forest.adaptive_random_forest import BaseTreeClassifier

from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn
from fluxplain.forest.ask import answer_forest
from fluxplain.forest.compiled_model import CompiledModel, check, check_python
from fluxplain.forest.from_objects import TreeReader, learn_names
from fluxplain.forest.mersenne import put_state, state_of
from fluxplain.forest.names import Layout, UnsupportedError
from fluxplain.forest.to_objects import TreeWriter
from fluxplain.forest.tree_arrays import TreeArrays

_TREE = (
    "max_features",
    "grace_period",
    "max_depth",
    "split_criterion",
    "delta",
    "tau",
    "leaf_prediction",
    "nb_threshold",
    "nominal_attributes",
    "splitter",
    "binary_split",
    "min_branch_fraction",
    "max_share_to_split",
    "max_size",
    "memory_estimate_period",
    "stop_mem_management",
    "remove_poor_attrs",
    "merit_preprune",
)
"""Parameters of a tree of the forest."""

_OURS = frozenset(
    {"_made", "_mains", "_backgrounds", "_spare", "_votes", "river", "reason", "_own_rng"}
)


class ARFClassifier(CompiledModel, forest.ARFClassifier):
    """River's ``ARFClassifier`` as arrays: the same parameters and numbers.

    ``data`` are copies of the trees; see :class:`CompiledModel`.
    """

    _votes: Floats | None = None  # the weights of the trees' votes, until they learn

    @classmethod
    def from_river(cls, model: forest.ARFClassifier) -> Self:
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

    def learn_one(self, x: Mapping[Any, Any], y: Any, **_: Any) -> None:
        """Learn an observation as River's forest does."""
        if self._is_new:
            self._init_ensemble(sorted(x))
        given = self._taken(lambda arrays: arrays.encode_labelled(x, y))
        if given is None:
            self.river.learn_one(x, y)
        else:
            self._learn(*given, y)

    def predict_proba_one(self, x: Mapping[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each class, as River's forest does."""
        if self._is_new:
            self._init_ensemble(sorted(x))
            return {}
        encoded = self._taken(lambda arrays: arrays.encode(x))
        if encoded is None:
            return self.river.predict_proba_one(x)  # type: ignore[no-any-return]
        row, layout = encoded
        votes, order = self._arrays.scratch()
        n, status = learn.vote_forest(
            self._arrays.pointer, self._mains, self._weights(), row, layout.columns, votes, order
        )
        check(status)
        labels, numbers = self._arrays.labels, votes.tolist()
        return {labels[c]: numbers[c] for c in order[:n].tolist()}

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        classes = self._arrays.size.classes
        votes, order = np.zeros((len(rows), classes)), np.zeros(classes, np.int64)
        n, status = answer_forest(
            *(self._arrays.pointer, self._mains, self._weights(), rows, own, layout.columns),
            *(votes, order),
        )
        chosen = order[:n].tolist()
        return status, chosen, votes if chosen == [*range(classes)] else votes[:, chosen]

    def _weights(self) -> Floats:
        if self._votes is None:
            self._votes = np.ones(self.n_models)
            for i, metric in enumerate(() if self.disable_weighted_vote else self._metrics):
                value = metric.get()
                if value > 0.0:
                    self._votes[i] = value
        return self._votes

    def _learn(self, row: Floats, layout: Layout, c: int, y: Any) -> None:
        arrays, n, self._votes = self._arrays, self.n_models, None
        shares = np.empty((n, arrays.size.classes))
        best, drawn, due = arrays.plans(n)
        done, status, is_due = learn.learn_forest(
            arrays.pointer,
            self._mains,
            self._backgrounds,
            math.exp(-self.lambda_value),
            row,
            layout.columns,
            layout.features,
            layout.ranked,
            c,
            arrays.words,
            shares,
            best,
            drawn,
            due,
        )
        looks = arrays.settle(due if is_due else None)
        times = drawn.tolist()
        for i, predicted in enumerate(best[: done + 1].tolist()):
            if predicted == learn.NOT_ASKED:
                break
            label = arrays.labels[predicted] if predicted >= 0 else None
            self._judge(i, y, label, shares[i])
            if times[i] and i < done:
                self._watch(i, y, label)
        check(status)
        if looks:
            self._look_at_sizes()

    def _judge(self, i: int, y: Any, label: Any, shares: Any) -> None:
        metric = self._metrics[i]
        if isinstance(metric, metrics.base.ClassificationMetric) and not metric.requires_labels:
            metric.update(y, self._arrays.answer(int(self._mains[i]), shares))
        else:
            metric.update(y, label)

    def _watch(self, i: int, y: Any, label: Any) -> None:
        """Show a tree's error to its detectors, which may replace it."""
        error = self._drift_detector_input(i, y, label)
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
        return {name: getattr(self, name) for name in _TREE}

    def _init_ensemble(self, features: list[Any]) -> None:
        self._set_max_features(len(features))
        try:
            self._start()
        except UnsupportedError as error:
            self._give_up(str(error))
            self.river._init_ensemble(features)

    def _start(self) -> None:
        """Make the arrays, with trees that have learned nothing."""
        check_python()
        n, parameters = self.n_models, self._tree_parameters()
        self._made = TreeArrays(parameters, n_trees=2 * n, words=state_of(self._own_rng))
        self._mains = np.arange(n)
        self._backgrounds = np.full(n, -1)
        self._spare = [*range(n, 2 * n)]
        for tree in range(n):
            self._arrays.put_tree(tree, parameters)

    def _read(self, model: forest.ARFClassifier) -> None:
        behind = [each for each in model._background or () if each is not None]
        learn_names(self._arrays, [*model.data, *behind])
        reader = TreeReader(self._arrays)
        for i, tree in enumerate(model.data):
            reader.read(i, tree)
        for i, tree in enumerate(model._background or ()):
            if tree is not None:
                self._backgrounds[i] = self._spare.pop()
                self._arrays.put_tree(self._backgrounds[i], self._tree_parameters())
                reader.read(int(self._backgrounds[i]), tree)

    def _as_river(self) -> forest.ARFClassifier:
        if self.river is not None:
            return self.river
        river = self._without_trees()
        if self._made is not None:
            river.data = [self._written(river, tree) for tree in self._mains.tolist()]
        if not self._warning_detection_disabled:
            behind = [-1] * self.n_models if self._made is None else self._backgrounds.tolist()
            river._background = [self._written(river, t) if t >= 0 else None for t in behind]
        return river

    def _without_trees(self) -> forest.ARFClassifier:
        river = forest.ARFClassifier.__new__(forest.ARFClassifier)
        river.__dict__.update({n: each for n, each in vars(self).items() if n not in _OURS})
        river._rng = self._rng
        river.data, river._background = [], None
        return river

    def _written(self, river: forest.ARFClassifier, tree: int) -> BaseTreeClassifier:
        written = river._new_base_model()
        TreeWriter(self._arrays, written).write(tree)
        return written

    def _river_tree(self, tree: int) -> BaseTreeClassifier:
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

    @property
    def _rng(self) -> Random:
        if self.river is not None:
            return self.river._rng  # type: ignore[no-any-return]
        if self._made is not None:
            put_state(self._own_rng, self._made.words)
        return self._own_rng

    @_rng.setter
    def _rng(self, rng: Random) -> None:
        self._own_rng = rng
