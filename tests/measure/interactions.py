"""Measures whether the pairs of features that act together are found, and what it costs.

``python -m tests.measure.interactions`` prints it for models with known interactions, for
forests on agrawal, and the time for each observation; about five minutes.
"""

import argparse
import inspect
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from river import forest, linear_model, metrics
from river.datasets import synth

from fluxplain.evaluate import Table
from fluxplain.explain import IncrementalPFI, explain_together
from fluxplain.explain.importance import ImportanceExplainer
from fluxplain.explain.interaction import Interaction
from fluxplain.explain.losses import Target
from fluxplain.explain.method import Given, Question
from fluxplain.explain.players import Players
from fluxplain.stages.partners import Partners
from tests.measure.kept import Kept

LENGTH = 5000
"""Observations of a stream."""

SIGNIFICANT = 2.0
"""Standard errors from 0."""

Found = Mapping[tuple[str, str], tuple[float, float]]
"""Pair → its interaction and standard error, as the first of both has it; without those of 0."""

Inputs = Mapping[str, Any]


class Interactions(ImportanceExplainer):
    """The method as the pipeline has it: the values of players, and of each with its partners."""

    def __init__(self, model: object, features: Sequence[str], *, seed: int) -> None:
        rng = random.Random(seed)
        given = Given(Players(features), {}, features, (), 0.001, lambda _: rng)
        method = Interaction.configured(given, reservoir_size=100, warm_up=None)
        super().__init__(
            model, method, loss="squared_error", alpha=0.001, debias=True, evaluator="auto"
        )
        self.partners = [Partners(features, [0.001], method.reach) for _ in features]

    def _take(self, y: Any, question: Question | None, prediction: Table, table: Table) -> None:
        """Smooth the increments, of the partners too."""
        super()._take(y, question, prediction, table)
        if question is None:
            return
        points = self._method.answer(question, prediction, table).points
        for place, each in enumerate(self.partners):
            each.update([int(points[place][0])], [self._increments[0, place]])  # type: ignore[index, arg-type]

    @property
    def found(self) -> Found:
        """The pairs that interact."""
        return {
            (name, each.feature): (each.value, each.std_error or float("inf"))
            for name, partners in zip(self.players.names, self.partners, strict=True)
            for each in partners.strongest(0)
            if name < each.feature
        }


class Function:
    """A model that does not learn."""

    def __init__(self, function: Callable[[Inputs], float]) -> None:
        self._function = function

    def predict_one(self, x: Inputs) -> float:
        """Return the function of the inputs."""
        return self._function(x)

    def learn_one(self, x: Inputs, y: Target) -> None:
        """Learn nothing."""


def product(x: Inputs) -> float:
    """Return a sum with one interaction, whose variance is 1."""
    return float(x["x0"] * x["x1"] + x["x2"])


def normal(seed: int, features: Sequence[str]) -> Iterator[tuple[Inputs, Target]]:
    """Yield independent normal inputs, and a noisy sum of them as the label."""
    rng = random.Random(seed)
    for _ in range(LENGTH):
        x = {name: rng.gauss(0.0, 1.0) for name in features}
        yield x, sum(x.values()) + rng.gauss(0.0, 1.0)


def after(
    model: Any, features: Sequence[str], stream: Iterator[tuple[Inputs, Target]], seed: int
) -> Found:
    """Return the interactions after a stream."""
    explainer = Interactions(model, features, seed=seed)
    for x, y in stream:
        explain_together([explainer], dict(x), y)
        model.learn_one(x, y)
    return explainer.found


def ranked(found: Found) -> list[tuple[str, str]]:
    """Return the pairs, the strongest first."""
    return sorted(found, key=lambda pair: -found[pair][0])


def known(runs: int, kept: Kept) -> None:
    """How often the one pair of a product is found, and holds the truth.

    Columns: the pair's place, its value and standard error, other pairs that are significant.
    """
    for d in (4, 20):
        features = [f"x{i}" for i in range(d)]
        found = [kept.run(f"{d}/{seed}", partial(_product, features, seed)) for seed in range(runs)]
        first, top = (sum(place < n for place, *_ in found) for n in (1, 3))
        holds = sum(abs(value - 1.0) <= 2.0 * error for _, value, error, _ in found)
        others = sum(n for *_, n in found)
        kept.say(
            f"x0 * x1 + x2, {d} features: first in {first} of {runs} runs, among the first three "
            f"in {top}; 2 errors hold the truth in {holds}; {others} other pairs are significant"
        )


def _product(features: Sequence[str], seed: int) -> tuple[int, float, float, int]:
    found = after(Function(product), features, normal(seed, features), seed)
    pair = "x0", "x1"
    return ranked(found).index(pair), *found[pair], len({*significant(found)} - {pair})


def significant(found: Found) -> list[tuple[str, str]]:
    """Return the pairs that are clearly above 0, the strongest first."""
    return [p for p in ranked(found) if found[p][0] > SIGNIFICANT * found[p][1]]


MODELS: dict[str, Callable[[], Any]] = {
    "a sum of squares": lambda: Function(lambda x: sum(each * each for each in x.values())),
    "linear regression": linear_model.LinearRegression,
}


def additive(runs: int, kept: Kept) -> None:
    """How many pairs of models without interactions are significant."""
    for name in MODELS:
        n = sum(kept.run(f"{name}/{seed}", partial(_additive, name, seed)) for seed in range(runs))
        kept.say(f"{name}: {n} of {runs * 15} pairs are significant")


def _additive(name: str, seed: int) -> int:
    features = [f"x{i}" for i in range(6)]
    return len(significant(after(MODELS[name](), features, normal(seed, features), seed)))


def agrawal(runs: int, kept: Kept) -> None:
    """The strongest pair of a forest that learns a rule with an interaction."""
    for function, rule in ((0, "age"), (2, "age, elevel"), (4, "age, salary, loan")):
        strongest = Counter(
            kept.run(f"{function}/{seed}", partial(_strongest, function, seed))
            for seed in range(runs)
        )
        kept.say(f"agrawal {function} ({rule}): strongest pair {dict(strongest)}")


def _strongest(function: int, seed: int) -> str:
    source = synth.Agrawal(classification_function=function, seed=seed)
    model = forest.ARFClassifier(n_models=5, seed=seed, metric=metrics.Accuracy())
    features = list(next(iter(source.take(1)))[0])
    found = after(model, features, ((x, y) for x, y in source.take(LENGTH)), seed)
    return " × ".join(sorted(ranked(found)[0]))


EXPLAINERS: dict[str, Callable[[Any, Sequence[str]], list[Any]]] = {
    "iPFI": lambda model, features: [IncrementalPFI(model, features, seed=1)],
    "interaction": lambda model, features: [Interactions(model, features, seed=1)],
    "both": lambda model, features: [
        IncrementalPFI(model, features, seed=1),
        Interactions(model, features, seed=1),
    ],
}


def cost(_: int, kept: Kept) -> None:
    """The milliseconds for an observation, beside those of iPFI."""
    for name in EXPLAINERS:
        took = kept.run(name, partial(_milliseconds, name))
        kept.say(f"cost, ARF-5 on agrawal, {name}: {took:.2f} ms for each observation")


def _milliseconds(name: str) -> float:
    source = synth.Agrawal(classification_function=2, seed=1)
    features = list(next(iter(source.take(1)))[0])
    model = forest.ARFClassifier(n_models=5, seed=1, metric=metrics.Accuracy())
    explainers, took = EXPLAINERS[name](model, features), 0.0
    for t, (x, y) in enumerate(source.take(3000)):
        begin = time.process_time()
        explain_together(explainers, x, y)
        took += (time.process_time() - begin) * (t >= 1000)
        model.learn_one(x, y)
    return took / 2.0


PARTS = {"known": known, "additive": additive, "agrawal": agrawal, "cost": cost}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.measure.interactions")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="by default all")
    parser.add_argument("--runs", type=int, default=20, help="seeds of each stream")
    parser.add_argument("--out", type=Path, help="folder of the results; a run resumes with them")
    given = parser.parse_args()
    for part in given.parts or PARTS:
        kept = Kept(given.out, "tests.measure.interactions", part, {})
        PARTS[part](given.runs, kept)
        kept.write_page("Features that act together", inspect.getdoc(PARTS[part]) or "")


if __name__ == "__main__":
    main()
