"""Time of exact Shapley values against River's learning: ``python -m …benchmarks.attribution``.

Each record is explained, and then predicted and learned by River, in turn in one run.
"""

from collections.abc import Iterator
from itertools import islice
from random import Random
from time import perf_counter
from typing import Any

import numpy as np
from river import forest, tree
from river.datasets import synth

from fluxplain.evaluate import Encoding, Inputs, evaluator_for
from fluxplain.forest import as_arrays, as_river

LEARNED, MEASURED, BACKGROUND = 10_000, 1_000, 100
"""Records before the first that is explained, records that are, and rows for each."""

MODELS: dict[str, tuple[Any, Any]] = {
    "ARF-10, majority": (forest.ARFClassifier(leaf_prediction="mc", seed=1), synth.Agrawal(seed=1)),
    "tree, majority": (tree.HoeffdingTreeClassifier(leaf_prediction="mc"), synth.Agrawal(seed=1)),
    "ARF-10, means": (
        forest.ARFRegressor(leaf_prediction="mean", aggregation_method="mean", seed=1),
        synth.FriedmanDrift(seed=1),
    ),
    "regression tree, means": (
        tree.HoeffdingTreeRegressor(leaf_prediction="mean"),
        synth.FriedmanDrift(seed=1),
    ),
}


def main() -> None:
    """Print medians in microseconds, and their ratio."""
    print(f"{'model':24} {'explain':>8} {'predict + learn':>16} {'ratio':>6}")
    for name, (model, stream) in MODELS.items():
        explained, learned = np.median([*times(as_arrays(model), iter(stream))], axis=0) * 1e6
        print(f"{name:24} {explained:8.0f} {learned:16.0f} {explained / learned:6.2f}")


def times(model: Any, stream: Iterator[tuple[dict[str, Any], Any]]) -> Iterator[tuple[float, ...]]:
    """Yield the seconds of explaining a record, and of River's predicting and learning it."""
    rng, seen = Random(1), []
    for x, y in islice(stream, LEARNED):
        model.learn_one(x, y)
        seen.append(x)
    river, encoding, evaluator = as_river(model), Encoding(), evaluator_for(model)
    ask = getattr(river, "predict_proba_one", river.predict_one)
    encoding.observe(seen[0])
    for x, y in islice(stream, MEASURED):
        inputs = Inputs.replacing(encoding.observe(x), rng.sample(seen, BACKGROUND))
        begin = perf_counter()
        found = evaluator.attributed(inputs, np.arange(len(x)))  # type: ignore[attr-defined]
        middle = perf_counter()
        ask(x)
        river.learn_one(x, y)
        end = perf_counter()
        if found is None:
            raise RuntimeError("the model is no sum of trees with constant leaves")
        yield middle - begin, end - middle
        model.learn_one(x, y)


if __name__ == "__main__":
    main()
