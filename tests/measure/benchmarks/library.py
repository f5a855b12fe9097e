"""The explainers of the library, beside iXAI 0.1.3 and beside the learning of River's model.

Both sides explain the same records of the same model, taking turns record by record. iXAI explains
River's objects; ours explain the model as arrays, if there are arrays for it.
"""

import csv
import functools
import gzip
import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from river import forest, linear_model, preprocessing, tree
from river.datasets import synth

from fluxplain.evaluate import Encoding, GenericEvaluator, Inputs, evaluator_for
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.forest import as_arrays
from tests.kit.command import Clock
from tests.measure.benchmarks.timing import Figure, Run, Stopwatch, faster, share

ELEC2 = Path("../shared/data/elec2.csv.gz")

LEARNING = ("predict", "learn")

OWN = ("own predict", "own learn")
"""Predicting and learning of the model as arrays."""

WARM_UP = 200
"""Records before the measured ones in which the explainers' storages fill."""

TALK = {3: 0.734, 8: 1.210, 9: 1.411, 14: 1.976, 16: 2.386, 33: 5.070, 72: 7.717}
"""Features → cost of iPFI ÷ cost of training, ARF-25, as the papers' talk prints it."""


def cross_entropy(y: Any, output: Mapping[Any, float]) -> float:
    """Return a plain loss, for iXAI."""
    return -math.log(min(max(output.get(y, 0.0), 1e-15), 1.0 - 1e-15))


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
            timer.time("predict", self.model.predict_proba_one, x)
            if self.own is not self.model:
                timer.time("own predict", self.own.predict_proba_one, x)
            for side in order:
                timer.time(side, sides[side], x, y)
            if i % 20 == 0:
                asked = _questions(x, past, random.Random(i))
                inputs = Inputs.replacing(encoding.observe(x), asked)
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
            assert output.keys() == other.keys()
            differences = (abs(output[label] - p) for label, p in other.items())
            self.difference = max(self.difference, *differences)


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
    return (
        IncrementalPFI(model, features, seed=1, evaluator=evaluator),
        IncrementalSAGE(model, features, seed=1, inner_samples=1, evaluator=evaluator),
        IncrementalPDP(model, features, seed=1, evaluator=evaluator),
    )


def ours(model: Any, features: list[str], *, evaluator: str = "auto") -> dict[str, Side]:
    """Return our explainers as sides."""
    pfi, sage, pdp = explainers(model, features, evaluator=evaluator)
    return {
        "pfi": pfi.explain_one,
        "sage": sage.explain_one,
        "pdp": lambda x, _: pdp.explain_one(x),
    }


def ixai(model: Any, features: list[str]) -> dict[str, Side]:
    """Return iXAI's, with its defaults."""
    from ixai.explainer import IncrementalPFI, IncrementalSage  # noqa: PLC0415  of the extra

    pfi = IncrementalPFI(model.predict_proba_one, cross_entropy, features)
    sage = IncrementalSage(
        model.predict_proba_one, cross_entropy, features, smoothing_alpha=0.001, n_inner_samples=1
    )
    return {"ixai-pfi": pfi.explain_one, "ixai-sage": sage.explain_one}


def agrawal() -> Iterator[Record]:
    """Yield the first concept."""
    return iter(synth.Agrawal(classification_function=1, seed=7))


def logistic_agrawal() -> Iterator[Record]:
    """Yield the first concept, with labels as logistic regression wants them."""
    return ((x, bool(y)) for x, y in agrawal())


def pfi_and_training(run: Run) -> Iterator[Figure]:
    """Measure iPFI of a forest of 10 trees."""
    model = forest.ARFClassifier(n_models=10, seed=1)
    case = Case(model, agrawal(), trained=5000, measured=1000)
    features = list(next(agrawal())[0])
    mine = {"pfi": ours(case.own, features)["pfi"]}
    watch = case.run({**mine, "ixai-pfi": ixai(model, features)["ixai-pfi"]}, run.clock)
    name = "iPFI, ARF-10, agrawal (d = 9)"
    yield faster(f"{name}: faster than iXAI", watch, ("pfi",), ("ixai-pfi",), "at least 20")
    yield share(
        f"{name}: share of River's predict + learn", watch, ("pfi",), LEARNING, "at most 0.05"
    )
    yield difference(name, case)


def forests_as_arrays(run: Run) -> Iterator[Figure]:
    """Measure predicting and learning of forests and a tree, beside River's objects."""
    for name, model, records, trained, measured, bar in (
        ("ARF-10, agrawal", forest.ARFClassifier(n_models=10, seed=1), agrawal, 4000, 2000, 6),
        ("tree, agrawal", tree.HoeffdingTreeClassifier(), agrawal, 4000, 4000, 4),
        ("ARF-50, RBF 72", forest.ARFClassifier(n_models=50, seed=1), _rbf_72, 800, 400, 6),
    ):
        run.clock.say(name)
        case = Case(model, records(), trained=trained, measured=measured)
        watch = case.run({}, run.clock)
        title = f"{name}: predict + learn, faster than River"
        yield faster(title, watch, OWN, LEARNING, f"at least {bar}")
        yield difference(name, case)


def full_set(
    run: Run, name: str, model: Any, records: Callable[[], Iterator[Record]], bar: str
) -> Iterator[Figure]:
    """Measure iPFI, iSAGE and iPDP together."""
    features = list(next(records())[0])
    case = Case(model, records(), trained=5000, measured=1000)
    generic = ours(model, features, evaluator="generic")
    together = explainers(case.own, features)
    sides = {
        "together": lambda x, y: explain_together(together, x, y),
        **ours(case.own, features),
        **ixai(model, features),
        "generic-pdp": generic["pdp"],
    }
    watch = case.run(sides, run.clock)
    mine, alone = ("together",), ("pfi", "sage", "pdp")
    other = ("ixai-pfi", "ixai-sage", "generic-pdp")
    yield faster(f"{name}: faster than iXAI and generic iPDP", watch, mine, other, bar)
    for side, against in zip(alone, other, strict=True):
        yield faster(f"{name}, {side}: faster than {against}", watch, (side,), (against,))
    yield share(f"{name}: share of River's predict + learn", watch, mine, LEARNING)
    yield difference(name, case)


def by_features(run: Run) -> Iterator[Figure]:
    """Measure iPFI of a forest of 25 trees on streams of 3 to 72 features, beside the talk's."""
    ratios: dict[int, float] = {}
    for name, records in _streams(run.clock).items():
        model = forest.ARFClassifier(n_models=25, seed=1)
        features = list(next(records())[0])
        d = len(features)
        case = Case(model, records(), trained=2000, measured=400)
        sides = {"pfi": ours(case.own, features)["pfi"]}
        if d == max(TALK):
            sides["ixai-pfi"] = ixai(model, features)["ixai-pfi"]
        watch = case.run(sides, run.clock)
        talk = f"; the talk's: {TALK[d]}" if d in TALK else ""
        yield share(f"iPFI ÷ training, ARF-25, {name} (d = {d}{talk})", watch, ("pfi",), ("learn",))
        ratios[d] = share("", watch, ("pfi",), ("learn",)).ratio
        if "ixai-pfi" in sides:
            title = f"iPFI, ARF-25, {name} (d = {d}): faster than iXAI"
            yield faster(title, watch, ("pfi",), ("ixai-pfi",), "at least 8")
        yield difference(f"iPFI, ARF-25, {name} (d = {d})", case)
    slope = statistics.linear_regression(list(ratios), list(ratios.values())).slope
    yield Figure(
        "iPFI ÷ training, growth per feature",
        f"{slope:.4f}",
        "the talk's 0.104",
        slope / 0.104,
        bar="at most 0.03 a feature",
    )


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


def _streams(clock: Clock) -> dict[str, Callable[[], Iterator[Record]]]:
    streams: dict[str, Callable[[], Iterator[Record]]] = {
        "stagger": lambda: iter(synth.STAGGER(seed=1)),
        "agrawal": agrawal,
    }
    if ELEC2.is_file():
        streams["elec2"] = _elec2
    else:
        clock.say(f"{ELEC2} is not there: elec2 is left out")
    for d in (14, 16, 33, 72):
        streams[f"RBF {d}"] = functools.partial(_rbf, d)
    return streams


def _rbf(d: int) -> Iterator[Record]:
    return iter(synth.RandomRBF(seed_model=1, seed_sample=2, n_features=d, n_centroids=50))


def _rbf_72() -> Iterator[Record]:
    return _rbf(72)


def _elec2() -> Iterator[Record]:
    with gzip.open(ELEC2, "rt", newline="") as file:
        for row in csv.DictReader(file):
            label = int(row.pop("class"))
            yield {name: float(value) for name, value in row.items()}, label


def full_sets(run: Run) -> Iterator[Figure]:
    """Measure all three explanations, of a forest and of a linear model."""
    arf = forest.ARFClassifier(n_models=10, seed=1)
    yield from full_set(run, "full set, ARF-10, agrawal (d = 9)", arf, agrawal, "at least 10")
    logistic = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    name = "full set, logistic regression behind a scaler, agrawal (d = 9)"
    yield from full_set(run, name, logistic, logistic_agrawal, "at least 20")
