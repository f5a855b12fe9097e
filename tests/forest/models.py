"""The models that exist as River's objects and as arrays, and how they are compared."""

import pickle
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from river import base, ensemble, forest, tree

from fluxplain.forest import (
    ARFClassifier,
    ARFRegressor,
    HoeffdingAdaptiveTreeClassifier,
    HoeffdingAdaptiveTreeRegressor,
    HoeffdingTreeClassifier,
    HoeffdingTreeRegressor,
    as_river,
    bagging,
)
from tests.forest.parameters import (
    ADAPTIVE,
    ADAPTIVE_REGRESSION,
    BAGGING,
    FOREST,
    LEVERAGING,
    REGRESSION_FOREST,
    REGRESSION_TREE,
    SMALL,
    TREE,
)
from tests.forest.streams import STREAMS, Stream, with_targets


def bagged(kind: Callable[..., Any]) -> Callable[..., Any]:
    """Return how to make an ensemble from its own parameters and those of its trees."""

    def make(**given: Any) -> Any:
        own = {name: given.pop(name) for name in ("bagging_method",) if name in given}
        return kind(tree.HoeffdingTreeClassifier(**given), n_models=3, seed=1, **own)

    return make


KINDS: dict[str, tuple[Any, Any, dict[str, Any], dict[str, dict[str, Any]]]] = {
    "ARFClassifier": (forest.ARFClassifier, ARFClassifier, {"n_models": 4, "seed": 1}, FOREST),
    "HoeffdingAdaptiveTreeClassifier": (
        tree.HoeffdingAdaptiveTreeClassifier,
        HoeffdingAdaptiveTreeClassifier,
        {"grace_period": 50, "tau": 0.1, "seed": 1},
        ADAPTIVE,
    ),
    "HoeffdingAdaptiveTreeRegressor": (
        tree.HoeffdingAdaptiveTreeRegressor,
        HoeffdingAdaptiveTreeRegressor,
        {"grace_period": 30, "tau": 0.2, "seed": 1},
        ADAPTIVE_REGRESSION,
    ),
    "HoeffdingTreeClassifier": (
        tree.HoeffdingTreeClassifier,
        HoeffdingTreeClassifier,
        SMALL,
        TREE,
    ),
    "ARFRegressor": (
        forest.ARFRegressor,
        ARFRegressor,
        {"n_models": 4, "seed": 1, "grace_period": 30},
        REGRESSION_FOREST,
    ),
    "HoeffdingTreeRegressor": (
        tree.HoeffdingTreeRegressor,
        HoeffdingTreeRegressor,
        {"grace_period": 30, "tau": 0.2},
        {**REGRESSION_TREE, "least samples": {"min_samples_split": 20}},
    ),
    **{
        kind.__name__: (bagged(getattr(ensemble, kind.__name__)), bagged(kind), SMALL, parameters)
        for kind, parameters in (
            (bagging.BaggingClassifier, BAGGING),
            (bagging.ADWINBaggingClassifier, BAGGING),
            (bagging.LeveragingBaggingClassifier, LEVERAGING),
        )
    },
}
"""Name → River's class, ours, what all tests give them, and sets of more parameters."""

CASES = [(kind, parameters) for kind, (*_, each) in KINDS.items() for parameters in each]


def pair(kind: str, parameters: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return River's model and ours with the same parameters."""
    theirs, ours, common, _ = KINDS[kind]
    given = {**common, **parameters}
    return theirs(**given), ours(**given)


RAISED = ArithmeticError, AttributeError, TypeError, ValueError
"""What River raises where it cannot compute."""


def outcome(call: Callable[..., Any], *given: Any) -> str:
    """Return what a call returns, in order and to the last bit, or what it raises.

    As text, for which what is not a number equals itself.
    """
    try:
        found = call(*given)
        if isinstance(found, dict):
            return repr([*found.items()])
        return repr(float(found) if isinstance(found, float) else found)  # NumPy's as Python's
    except RAISED as error:
        return f"{type(error).__name__}: {error}"


def learn_both(river: Any, ours: Any, stream: Stream) -> tuple[Any, Any]:
    """Let both learn, compare all outcomes, and convert and pickle them on the way."""
    ask = "predict_proba_one" if isinstance(river, base.Classifier) else "predict_one"
    for i, (x, y) in enumerate(stream):
        if i == len(stream) // 3 and ours.river is None:
            ours = type(ours).from_river(river)
        if i == len(stream) // 2:  # River's sets have another order then, which decides ties
            ours, river = pickle.loads(pickle.dumps((ours, river)))
        for name, given in ((ask, (x,)), ("learn_one", (x, y))):
            expected, found = (outcome(getattr(model, name), *given) for model in (river, ours))
            assert found == expected, (i, name)
    return river, ours


def predicted(model: Any, x: Mapping[str, Any]) -> list[Any]:
    """Return a prediction, with the order of the classes."""
    if isinstance(model, base.Classifier):
        return [*model.predict_proba_one(x).items()]
    return [model.predict_one(x)]


def stream_of(kind: str, name: str, n: int, parameters: Mapping[str, Any] | None = None) -> Stream:
    """Return the stream of a name as a kind of models learns it."""
    stream = STREAMS[name](n)
    if kind.endswith("Classifier"):
        return stream
    means = (parameters or {}).get("leaf_prediction") == "mean"
    return with_targets(stream, has_text=means)


_TREES = tree.HoeffdingTreeClassifier | tree.HoeffdingTreeRegressor
_ADAPTIVE_TREES = tree.HoeffdingAdaptiveTreeClassifier | tree.HoeffdingAdaptiveTreeRegressor


def summary(model: Any) -> list[Any]:
    """Return what the trees have become, and the state of the random numbers."""
    river = as_river(model)
    trees = [river] if isinstance(river, _TREES) else river.data
    found: list[Any] = [
        (each.summary, getattr(each, "classes", None)) for each in trees if each._root is not None
    ]
    if isinstance(river, forest.ARFClassifier | forest.ARFRegressor):
        found += [river.n_drifts_detected(), river.n_warnings_detected()]
    if len(trees) > 1:
        found += [model._rng.getstate(), getattr(river, "n_detected_changes", None)]
    if isinstance(river, _ADAPTIVE_TREES):
        found += [model._rng.getstate(), adaptive_nodes(river._root)]
    return found


def adaptive_nodes(node: Any) -> list[Any]:
    """Return what an adaptive tree keeps of a node, and of all nodes below."""
    below = [*getattr(node, "children", ()), getattr(node, "_alternate_tree", None)]
    detector = {
        name: each.getstate() if isinstance(each, Random) else each
        for name, each in vars(node.drift_detector).items()
        if name != "_helper"
    }
    return [
        type(node).__name__,
        (node.depth, _statistics(node.stats)),
        _statistics(node._mean_error if hasattr(node, "_mean_error") else node._error_tracker),
        [_exact(getattr(node, name, None)) for name in _KEPT_IN_LEAVES],
        [*(getattr(node, "splitters", None) or ())],
        (getattr(node.drift_detector, "width", None), repr(detector)),
        *[adaptive_nodes(each) for each in below if each is not None],
    ]


_KEPT_IN_LEAVES = (
    *("last_split_attempt_at", "_mc_correct_weight", "_nb_correct_weight"),
    *("_fmse_mean", "_fmse_model", "_disabled_attrs"),
)


def _statistics(of: Any) -> list[Any]:
    """Return the numbers of weights by class, or of a mean, with its variance if it has one."""
    if isinstance(of, dict):
        return [*of.items()]
    mean = getattr(of, "mean", of)
    return [mean.n, _exact(mean.get()), _exact(getattr(of, "_S", None))]


def _exact(value: Any) -> Any:
    """Return a number as text, for which what is not a number equals itself."""
    return repr(float(value)) if isinstance(value, int | float) else value
