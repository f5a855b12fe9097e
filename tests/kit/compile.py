"""Compiles the inner loops, which are kept: ``python -m tests.kit.compile``."""

import random
from typing import Any

from river import forest

from fluxplain import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from fluxplain.explain import explain_together
from fluxplain.forest.conversion import compile_loops


def main() -> None:
    """Explain a classifier, of numbers and a category, and a regressor, of numbers."""
    compile_loops()
    rng = random.Random(1)
    for model, loss, shops in (
        (forest.ARFClassifier(n_models=2, seed=1), "cross_entropy", "uvw"),
        (forest.ARFRegressor(n_models=2, seed=1), "squared_error", ""),
    ):
        explainers = [
            IncrementalPFI(model, ["a", "b"], loss=loss, seed=1),
            IncrementalSAGE(model, ["a", "b"], loss=loss, seed=1),
            IncrementalPDP(model, ["a", "b"], seed=1),
        ]
        for _ in range(150):
            a = rng.random()
            x: dict[str, Any] = {"a": a, "b": rng.random()}
            if shops:
                x["shop"] = rng.choice(shops)
            y = int(a > 0.5)
            explain_together(explainers, x, y)
            model.learn_one(x, y)


if __name__ == "__main__":
    main()
