"""A model of River that learns a stream while several sides explain it, taking turns."""

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluxplain.evaluate import Encoding, GenericEvaluator, Inputs, evaluator_for
from fluxplain.evaluate.generic import final_step, has_probabilities
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.forest import as_arrays
from tests.kit.command import Clock
from tests.measure.benchmarks.timing import Figure, Stopwatch

LEARNING = ("predict", "learn")

OWN = ("own predict", "own learn")
"""Predicting and learning of the model as arrays."""

WARM_UP = 200
"""Records before the measured ones in which the explainers' storages fill."""

Record = tuple[dict[str, Any], Any]
Side = Callable[[dict[str, Any], Any], object]


@dataclass
class Case:
    """A model of River, and the records that it learns while it is explained.

    ``own`` is the model as arrays, or the model itself; ``difference`` the largest between its
    evaluator and the model, asked input by input, over the stream.
    """

    model: Any
    records: Iterator[Record]
    trained: int
    measured: int
    difference: float = 0.0
    own: Any = None

    def __post_init__(self) -> None:
        self.own = as_arrays(self.model)

    def run(self, sides: Mapping[str, Side], clock: Clock) -> Stopwatch:
        """Explain each record on every side, then let the model learn it."""
        records = self.trained + self.measured
        watch, order = Stopwatch(), list(sides)
        fast, generic = evaluator_for(self.own), GenericEvaluator(self.model)
        past: list[dict[str, Any]] = []
        encoding = Encoding()
        for i, (x, y) in enumerate(itertools.islice(self.records, records)):
            clock.progress(functools.partial("{:,} of {:,} records".format, i, records))
            past = [*past[-99:], x]
            timer = watch if i >= self.trained else Stopwatch()
            if i < self.trained - WARM_UP:
                self._learn(timer, x, y)
                continue
            timer.time("predict", asked(self.model), x)
            if self.own is not self.model:
                timer.time("own predict", asked(self.own), x)
            for side in order:
                timer.time(side, sides[side], x, y)
            if i % 20 == 0:
                rows = _questions(x, past, random.Random(i))
                inputs = Inputs.replacing(encoding.observe(x), rows)
                self._compare(fast(inputs).outputs(), generic(inputs).outputs())
            self._learn(timer, x, y)
            order = [*order[1:], *order[:1]]  # each side comes first now and then
        return watch

    def _learn(self, timer: Stopwatch, x: dict[str, Any], y: Any) -> None:
        timer.time("learn", self.model.learn_one, x, y)
        if self.own is not self.model:
            timer.time("own learn", self.own.learn_one, x, y)

    def _compare(self, ours: Sequence[Any], right: Sequence[Any]) -> None:
        for output, other in zip(ours, right, strict=True):
            if isinstance(other, float):
                output, other = {None: output}, {None: other}  # noqa: PLW2901
            assert output.keys() == other.keys()
            differences = (abs(output[label] - p) for label, p in other.items())
            self.difference = max(self.difference, *differences)


def asked(model: Any) -> Callable[[dict[str, Any]], Any]:
    """Return the method that answers with probabilities, or that of a regressor."""
    is_classifier = has_probabilities(final_step(model))
    return model.predict_proba_one if is_classifier else model.predict_one  # type: ignore[no-any-return]


def _questions(
    x: dict[str, Any], past: Sequence[dict[str, Any]], rng: random.Random
) -> list[dict[str, Any]]:
    draw, order = rng.choice(past), rng.sample(list(x), len(x))
    return [
        {},
        *({f: draw[f]} for f in x),
        *({f: draw[f] for f in order[i:]} for i in range(1, len(order))),
        *({f: rng.choice(past)[f]} for f in x for _ in range(3)),
    ]


def explainers(model: Any, features: list[str], *, evaluator: str = "auto") -> tuple[Any, ...]:
    """Return ours, with as few samples as iXAI takes."""
    given: dict[str, Any] = {"seed": 1, "evaluator": evaluator}
    loss = "cross_entropy" if has_probabilities(final_step(model)) else "squared_error"
    return (
        IncrementalPFI(model, features, loss=loss, **given),
        IncrementalSAGE(model, features, loss=loss, inner_samples=1, **given),
        IncrementalPDP(model, features, **given),
    )


def together(model: Any, features: list[str]) -> Side:
    """Return all of ours, explaining together as they do in a pipeline."""
    mine = explainers(model, features)
    return lambda x, y: explain_together(mine, x, y)


def generic_pdp(model: Any, features: list[str]) -> Side:
    """Return iPDP of a model that is asked input by input: iXAI's does something else."""
    pdp = explainers(model, features, evaluator="generic")[2]
    return lambda x, _: pdp.explain_one(x)


def ixai(model: Any, features: list[str]) -> dict[str, Side]:
    """Return iXAI's, with its defaults."""
    from ixai.explainer import IncrementalPFI, IncrementalSage  # noqa: PLC0415  of the extra

    loss = _cross_entropy if has_probabilities(final_step(model)) else _squared_error
    pfi = IncrementalPFI(asked(model), loss, features)
    sage = IncrementalSage(asked(model), loss, features, smoothing_alpha=0.001, n_inner_samples=1)
    return {"ixai-pfi": pfi.explain_one, "ixai-sage": sage.explain_one}


def _cross_entropy(y: Any, output: Mapping[Any, float]) -> float:
    return -math.log(min(max(output.get(y, 0.0), 1e-15), 1.0 - 1e-15))


def _squared_error(y: float, output: Mapping[Any, float]) -> float:
    return float((y - next(iter(output.values()))) ** 2)


def difference(name: str, case: Case) -> Figure:
    """Return how far the fast evaluator was from the generic one."""
    ratio = case.difference / 1e-12
    return Figure(
        f"{name}: fast − generic, at most",
        f"{case.difference:.1e}",
        "1e-12",
        ratio,
        bar="at most 1",
    )
