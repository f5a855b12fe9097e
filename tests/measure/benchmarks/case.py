"""A model of River that learns a stream while several sides explain it, in turns."""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from fluxplain.evaluate import Encoding, GenericEvaluator, Inputs, evaluator_for
from fluxplain.evaluate.generic import final_step, has_probabilities
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.forest import as_arrays
from tests.kit.command import Clock
from tests.measure.benchmarks.timing import BLOCK, Figure, Stopwatch

LEARNING = ("predict", "learn")

WARM_UP = 200
"""Records before the measured ones in which the explainers' storages fill."""

Record = tuple[dict[str, Any], Any]
Side = Callable[[dict[str, Any], Any], object]
Sides = Mapping[str, Side]


@dataclass
class Case:
    """A model of River that learns records while it is explained.

    ``own`` is the model as arrays, or a copy of it; ``plain`` a copy that is not explained.
    ``difference`` is the largest between the evaluator of ``own`` and the model, asked input by
    input, over the stream.
    """

    model: Any
    records: Iterator[Record]
    trained: int
    measured: int
    difference: float = 0.0
    own: Any = None
    plain: Any = None

    def __post_init__(self) -> None:
        self.own, self.plain = as_arrays(deepcopy(self.model)), deepcopy(self.model)

    def run(self, mine: Sides, others: Sides, clock: Clock) -> Stopwatch:
        """Explain each record, then let the model learn it: ours ``own``, the others ``model``.

        Both take turns with ``plain`` in blocks of records, so that each runs as it would alone.
        """
        records = self.trained + self.measured
        watch, past = Stopwatch(), list[dict[str, Any]]()
        work = [partial(_explain, self.own, mine), partial(_explain, self.model, others)]
        work.append(partial(_explain, self.plain, {"predict": _asking(self.plain)}))
        fast, generic = evaluator_for(self.own), GenericEvaluator(self.model)
        for begin in range(0, records, BLOCK):
            clock.progress(partial("{:,} of {:,} records".format, begin, records))
            block = list(itertools.islice(self.records, BLOCK))
            timer = watch if begin >= self.trained else Stopwatch()
            for side in work:
                side(block, timer, explains=begin >= self.trained - WARM_UP)
            work = [*work[1:], *work[:1]]
            past = [*past, *(x for x, _ in block)][-100:]
            if begin >= self.trained:
                rows = _questions(past[-1], past, random.Random(begin))
                inputs = Inputs.replacing(Encoding().observe(past[-1]), rows)
                self._compare(fast(inputs).outputs(), generic(inputs).outputs())
        return watch

    def _compare(self, ours: Sequence[Any], right: Sequence[Any]) -> None:
        for output, other in zip(ours, right, strict=True):
            if isinstance(other, float):
                output, other = {None: output}, {None: other}  # noqa: PLW2901
            assert output.keys() == other.keys()
            differences = (abs(output[label] - p) for label, p in other.items())
            self.difference = max(self.difference, *differences)


def _explain(
    model: Any, sides: Sides, block: Sequence[Record], timer: Stopwatch, *, explains: bool
) -> None:
    for x, y in block:
        for name, side in sides.items() if explains else ():
            timer.time(name, side, x, y)
        timer.time("learn" if "predict" in sides else "other learn", model.learn_one, x, y)


def _asking(model: Any) -> Side:
    ask = asked(model)
    return lambda x, _: ask(x)


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
