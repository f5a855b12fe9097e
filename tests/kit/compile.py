"""Compiles the inner loops, which are kept: ``python -m tests.kit.compile``."""

import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from river import ensemble, forest, tree

from fluxplain import IncrementalPDP, IncrementalPFI, IncrementalReasons, IncrementalSAGE
from fluxplain.drift.glr import GLR
from fluxplain.evaluate import Encoding, Inputs, evaluator_for
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.explain import explain_together
from fluxplain.forest import as_arrays
from tests.kit.kernels import forget_stale_kernels

ROOT = Path(__file__).parents[2]

Record = tuple[dict[str, Any], int]

CLASSIFIERS = (
    forest.ARFClassifier(n_models=2, seed=1, grace_period=20),
    tree.HoeffdingTreeClassifier(grace_period=20),
    tree.HoeffdingAdaptiveTreeClassifier(grace_period=20, seed=1),
    ensemble.BaggingClassifier(tree.HoeffdingTreeClassifier(grace_period=20), n_models=2, seed=1),
)

REGRESSORS = (
    forest.ARFRegressor(n_models=2, seed=1, grace_period=20),
    tree.HoeffdingTreeRegressor(grace_period=20),
    tree.HoeffdingAdaptiveTreeRegressor(grace_period=20, seed=1),
)


def main() -> None:
    """Explain models that learn: River's objects of a forest, and arrays of each kind of trees."""
    classify()
    regress()


def classify() -> None:
    """Explain the classifiers; make a detector."""
    GLR()
    for model in (CLASSIFIERS[0].clone(), *map(as_arrays, CLASSIFIERS)):
        explain(model, "cross_entropy", records("uvw"))
        attribute(model, records("uvw"))


def regress() -> None:
    """Explain the regressors."""
    for model in (REGRESSORS[0].clone(), *map(as_arrays, REGRESSORS)):
        explain(model, "squared_error", records(""))
        attribute(model, records(""))


def records(shops: str) -> Iterator[Record]:
    """Return records of two numbers, and a category if there are any shops."""
    rng = random.Random(1)
    for _ in range(150):
        a = rng.random()
        x: dict[str, Any] = {"a": a, "b": rng.random()}
        if shops:
            x["shop"] = rng.choice(shops)
        yield x, int(a > 0.5)


def explain(model: Any, loss: str, stream: Iterator[Record]) -> None:
    explainers = [
        IncrementalPFI(model, ["a", "b"], loss=loss, seed=1),
        IncrementalSAGE(model, ["a", "b"], loss=loss, seed=1),
        IncrementalPDP(model, ["a", "b"], seed=1),
    ]
    reasons = IncrementalReasons(model, ["a", "b"], seed=1, most_inputs=10)
    for x, y in stream:
        explain_together(explainers, x, y)
        reasons.explain_one(x)
        model.learn_one(x, y)


def attribute(model: Any, stream: Iterator[Record]) -> None:
    """Ask for Shapley values; leaves that are not constant have none, but are compiled."""
    (x, _), *others = islice(stream, 20)
    inputs = Inputs.replacing(Encoding().observe(x), [z for z, _ in others])
    evaluator = evaluator_for(model)
    if isinstance(evaluator, FastEvaluator):
        evaluator.attributed(inputs, np.arange(len(x)))


if __name__ == "__main__":
    forget_stale_kernels(ROOT / "pipeline", ROOT / "build/kernels")
    with ProcessPoolExecutor(2) as pool:
        for each in [pool.submit(part) for part in (classify, regress)]:
            each.result()
