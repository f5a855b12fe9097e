"""What iXAI 0.1.3 and this library give on the same streams: the numbers of the migration note.

Run: ``pip install ixai==0.1.3``, then ``python -m tests.measure.experiments.beside_ixai``
"""

import itertools
import os
import random
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from river import metrics, tree
from river.datasets import synth

from fluxplain.explain import IncrementalPFI, IncrementalSAGE
from fluxplain.explain.imputers import InnerSamples, ObservationalImputer
from fluxplain.explain.storage import GeometricReservoir, UniformReservoir
from tests.kit.support import AgrawalRule, Linear

Record = tuple[dict[str, Any], Any]
Values = dict[str, float]

SIZE = 100
"""Observations in a reservoir, the default of both."""


def main() -> None:
    """Print the numbers, a paragraph for each difference."""
    warnings.simplefilter("ignore")  # iXAI's, about model functions that it does not know
    for measure in (
        river_metrics,
        ages,
        moved_feature,
        start,
        static,
        few_inner_samples,
        offset,
        classes,
        trees,
        seeds,
        one_dict,
    ):
        print(f"{measure.__name__.replace('_', ' ')}: {measure.__doc__}", flush=True)
        measure()


def river_metrics() -> None:
    """What a metric as the loss gives with the River that is installed."""
    for metric in (metrics.Accuracy(), metrics.CrossEntropy(), metrics.MSE(), metrics.MAE()):
        try:
            their_pfi(Linear({"a": 1.0}), ["a"], metric, alpha=0.001)
        except (AttributeError, TypeError) as error:
            print(f"   {type(metric).__name__}: {type(error).__name__}: {error}")


def ages() -> None:
    """Mean age of the stored observations after 50,000 records, 20 runs."""
    storage = ixai().storage
    theirs = {
        "geometric": lambda: storage.GeometricReservoirStorage(size=SIZE),
        "geometric, constant_probability=1": lambda: storage.GeometricReservoirStorage(
            size=SIZE, constant_probability=1.0
        ),
        "uniform": lambda: storage.UniformReservoirStorage(size=SIZE),
    }
    for name, make in theirs.items():
        show(f"iXAI, {name}", mean_age(make, lambda each: each.get_data()[0]))
    for kind in (GeometricReservoir, UniformReservoir):
        rngs = map(random.Random, itertools.count())
        made = (kind(SIZE, rng) for rng in rngs)
        show(f"ours, {kind.__name__}", mean_age(made.__next__, lambda each: each.rows))


def mean_age(make: Callable[[], Any], stored: Callable[[Any], Any]) -> float:
    """Return how many records ago the stored observations came, on average."""
    seed(0)
    means = []
    for _ in range(20):
        reservoir = make()
        for t in range(50_000):
            reservoir.update({"t": t})
        means.append(statistics.fmean(50_000 - x["t"] for x in stored(reservoir)))
    return statistics.fmean(means)


def moved_feature() -> None:
    """Records 5,001 on have a in [10, 11), before in [0, 1); iPFI of a 1,000 later, 20 runs."""
    model = Linear({"a": 1.0})
    theirs, ours = [], []
    for number in range(20):
        seed(number)
        pfi = their_pfi(model, ["a"], absolute, alpha=0.01)
        theirs.append(run(pfi, moved_records(number))["a"])
        mine = IncrementalPFI(model, ["a"], loss="absolute_error", alpha=0.01, seed=number)
        ours.append(run(mine, moved_records(number))["a"])
    show("iXAI", statistics.fmean(theirs))
    show("ours", statistics.fmean(ours))
    print("   true value: 0.333")


def moved_records(number: int) -> Iterator[Record]:
    """Yield the records of one run."""
    rng = random.Random(number)
    for t in range(6_000):
        a = rng.random() + 10.0 * (t >= 5_000)
        yield {"a": a}, a


def start() -> None:
    """Agrawal's rule, alpha 0.001, an error costs 1 or 1,000; true iPFI of age 0.343 or 343."""
    runs, at = 50, (200, 500, 1_000, 5_000)
    for cost in (1.0, 1_000.0):
        seen: dict[tuple[int, str], list[tuple[float, float, float]]] = {}
        for number in range(runs):
            for t, side, reading in readings(number, cost, at):
                seen.setdefault((t, side), []).append(reading)
        for (t, side), taken in seen.items():
            values, variances, bounds = zip(*taken, strict=True)
            pairs = zip(values, bounds, strict=True)
            inside = sum(abs(value - 0.343 * cost) <= bound for value, bound in pairs)
            print(
                f"   {side} at {t:5}: value {statistics.fmean(values):.3f}, "
                f"variance {statistics.fmean(variances):.3f}, "
                f"bound for delta 0.1 {statistics.fmean(bounds):.3f}, "
                f"true value inside {inside} of {runs} times",
                flush=True,
            )


def readings(
    number: int, cost: float, at: Sequence[int]
) -> Iterator[tuple[int, str, tuple[float, float, float]]]:
    """Yield value, variance and bound of age after some numbers of records, of each side."""

    def loss(y: object, output: Any) -> float:
        return cost if output != y else 0.0

    seed(number)
    model = AgrawalRule()
    theirs = their_pfi(model, ["age"], lambda y, output: loss(y, output["output"]), alpha=0.001)
    ours = IncrementalPFI(model, ["age"], loss=loss, seed=number)
    raw = IncrementalPFI(model, ["age"], loss=loss, debias=False, warm_up=1, seed=number)
    stream = synth.Agrawal(classification_function=1, seed=number)
    for t, (x, y) in enumerate(stream.take(at[-1]), start=1):
        for explainer in (theirs, ours, raw):
            explainer.explain_one(x, y)
        if t in at:
            bound = theirs.get_confidence_bound(0.1)
            numbers = theirs.importance_values, theirs.variances, bound
            yield t, "iXAI", (numbers[0]["age"], numbers[1]["age"], numbers[2]["age"])
            for name, each in (("ours", ours), ("ours, debias=False, warm_up=1", raw)):
                numbers = each.values, each.variances, each.confidence(0.1)
                yield t, name, (numbers[0]["age"], numbers[1]["age"], numbers[2]["age"])


def static() -> None:
    """The same by plain means: dynamic_setting=False, or alpha=1e-6; uniform, 10,000 records."""
    stream = list(synth.Agrawal(classification_function=1, seed=1).take(10_000))
    seed(1)
    theirs = ixai().explainer.IncrementalPFI(
        as_function(AgrawalRule()), wrong, ["age", "salary"], dynamic_setting=False
    )
    ours = IncrementalPFI(
        AgrawalRule(),
        ["age", "salary"],
        loss="zero_one",
        alpha=1e-6,
        sampler="uniform",
        seed=1,
    )
    for side, explainer in (("iXAI", theirs), ("ours", ours)):
        show(side, run(explainer, stream))


def few_inner_samples() -> None:
    """3a - 2b, c ignored, k constant; squared loss; exact values 9, 4, 0, 0; 20,000 records."""
    features = ["a", "b", "c", "k"]
    model = Linear({"a": 3.0, "b": -2.0})
    for m in (1, 5):
        seed(1)
        theirs = their_sage(model, features, squared, inner_samples=m)
        values = run(theirs, normal_records(model, 20_000))
        show(f"iXAI, m = {m}", values, f"variance of c's increments {theirs.variances['c']:.3f}")
    samples: tuple[InnerSamples, ...] = (1, 5, "all")
    for each in samples:
        ours = IncrementalSAGE(model, features, loss="squared_error", inner_samples=each, seed=1)
        values = run(ours, normal_records(model, 20_000))
        show(f"ours, m = {each}", values, f"variance of c's increments {ours.variances['c']:.3f}")


def offset() -> None:
    """The same with 100 added to the model and the target; 1,000 and 5,000 records, m = 5."""
    features = ["a", "b", "c", "k"]
    model = Linear({"a": 3.0, "b": -2.0}, intercept=100.0)
    for n in (1_000, 5_000):
        seed(1)
        theirs = their_sage(model, features, squared, inner_samples=5)
        show(f"iXAI, {n}", run(theirs, normal_records(model, n)))
        ours = IncrementalSAGE(model, features, loss="squared_error", inner_samples=5, seed=1)
        show(f"ours, {n}", run(ours, normal_records(model, n)))


def classes() -> None:
    """Sum of the iSAGE values with zero-one loss: a trained tree on agrawal, frozen, m = 1."""
    records = list(synth.Agrawal(classification_function=1, seed=1).take(15_000))
    model = tree.HoeffdingTreeClassifier()
    for x, y in records[:5_000]:
        model.learn_one(x, y)
    rest, features = records[5_000:], list(records[0][0])
    right = statistics.fmean(model.predict_one(x) == y for x, y in rest)
    most = max(statistics.fmean(y == label for _, y in rest) for label in (0, 1))
    print(
        f"   accuracy {right:.3f}, of the most frequent class {most:.3f}: gain {right - most:.3f}"
    )
    seed(1)
    theirs = ixai().explainer.IncrementalSage(
        model.predict_one, wrong, features, smoothing_alpha=0.001
    )
    show("iXAI, predict_one", sum(run(theirs, rest).values()))
    ours = IncrementalSAGE(model, features, loss="zero_one", inner_samples=1, seed=1)
    show("ours", sum(run(ours, rest).values()))


def trees() -> None:
    """Observational draws. b is a plus noise, c independent; all hidden, x = {a: 0.9, b: 0.9}."""
    rng = random.Random(1)
    xs = []
    for _ in range(5_000):
        a = rng.random()
        xs.append({"a": a, "b": a + rng.gauss(0.0, 0.02), "c": rng.random()})
    seed(1)
    storage = ixai().storage.TreeStorage([], ["a", "b", "c"], seed=1)
    ours = ObservationalImputer(["a", "b", "c"], size=SIZE, rng=random.Random(1))
    for x in xs:
        storage.update(x)
        ours.update(x)
    for use_storage in (False, True):
        imputer = ixai().imputer.TreeImputer(lambda x: x, storage, use_storage=use_storage)
        asked = imputer.impute(["a", "b", "c"], {"a": 0.9, "b": 0.9, "c": 0.5}, n_samples=2_000)
        _spread(f"iXAI, use_storage={use_storage}", [x["b"] for x in asked])
    drawn = ours.draws({"a": 0.9, "b": 0.9, "c": 0.5}, ["a", "b", "c"], 2_000)
    _spread("ours", [float(row["b"]) for row in drawn])
    _spread("the marginal", [x["b"] for x in xs])

    print("   iSAGE of the model 10 a, squared loss, m = 20; exact: a and b about 4.2, c 0")
    model = Linear({"a": 10.0})
    records = [(x, 10.0 * x["a"]) for x in xs]
    seed(1)
    storage = ixai().storage.TreeStorage([], ["a", "b", "c"], seed=1)
    imputer = ixai().imputer.TreeImputer(as_function(model), storage, use_storage=True)
    theirs = their_sage(
        model, ["a", "b", "c"], squared, inner_samples=20, storage=storage, imputer=imputer
    )
    show("iXAI", run(theirs, records))
    sage = IncrementalSAGE(
        model,
        ["a", "b", "c"],
        imputer="observational",
        loss="squared_error",
        inner_samples=20,
        seed=1,
    )
    show("ours", run(sage, records))


def _spread(name: str, numbers: Sequence[float]) -> None:
    mean, deviation = statistics.fmean(numbers), statistics.stdev(numbers)
    print(f"   {name}: b has mean {mean:.3f}, standard deviation {deviation:.3f}")


def seeds() -> None:
    """IPFI of a, 3a - 2b, after 500 records: alone, and with a second explainer beside it."""
    model = Linear({"a": 3.0, "b": -2.0})
    for second in (False, True):
        seed(1)
        theirs = [their_pfi(model, ["a", "b"], absolute, alpha=0.01) for _ in range(1 + second)]
        ours = [
            IncrementalPFI(model, ["a", "b"], loss="absolute_error", alpha=0.01, seed=1)
            for _ in range(1 + second)
        ]
        for x, y in normal_records(model, 500):
            for each in (*theirs, *ours):
                each.explain_one(x, y)
        beside = "with a second" if second else "alone"
        print(
            f"   {beside}: iXAI {theirs[0].importance_values['a']!r} ours {ours[0].values['a']!r}"
        )
    print("   iSAGE, product draws, 500 records, in processes with PYTHONHASHSEED 1 and 2:")
    for hash_seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", f"from {__spec__.name} import product; product()"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
        )


def product() -> None:
    """Print what both give by product draws."""
    warnings.simplefilter("ignore")
    features, model = ["a", "b", "c", "k"], Linear({"a": 3.0, "b": -2.0})
    seed(1)
    storage = ixai().storage.GeometricReservoirStorage(size=SIZE)
    imputer = ixai().imputer.MarginalImputer(as_function(model), "product", storage)
    theirs = their_sage(model, features, squared, storage=storage, imputer=imputer)
    ours = IncrementalSAGE(model, features, imputer="product", loss="squared_error", seed=1)
    values = run(theirs, normal_records(model, 500)), run(ours, normal_records(model, 500))
    print(f"   iXAI a {values[0]['a']!r} ours a {values[1]['a']!r}")


def one_dict() -> None:
    """iPFI of a, of true value 1/3, when the stream gives one dict, changed in place."""
    rng, x, model = random.Random(1), {"a": 0.0}, Linear({"a": 1.0})
    theirs = their_pfi(model, ["a"], absolute, alpha=0.001)
    ours = IncrementalPFI(model, ["a"], loss="absolute_error", seed=1)
    for _ in range(5_000):
        x["a"] = rng.random()
        theirs.explain_one(x, x["a"])
        ours.explain_one(x, x["a"])
    show("iXAI", theirs.importance_values["a"])
    show("ours", ours.values["a"])


def their_pfi(model: Any, features: list[str], loss: object, *, alpha: float) -> Any:
    """Return iXAI's iPFI."""
    return ixai().explainer.IncrementalPFI(
        as_function(model), loss, features, smoothing_alpha=alpha
    )


def their_sage(
    model: Any, features: list[str], loss: object, *, inner_samples: int = 1, **options: object
) -> Any:
    """Return iXAI's iSAGE."""
    return ixai().explainer.IncrementalSage(
        as_function(model),
        loss,
        features,
        smoothing_alpha=0.001,
        n_inner_samples=inner_samples,
        **options,
    )


def as_function(model: Any) -> Callable[[dict[str, Any]], Values]:
    """Return what iXAI calls a model function."""
    return lambda x: {"output": model.predict_one(x)}


def wrong(y: object, output: Values) -> float:
    """Return the zero-one loss."""
    return float(output["output"] != y)


def absolute(y: float, output: Values) -> float:
    """Return the absolute error."""
    return abs(output["output"] - y)


def squared(y: float, output: Values) -> float:
    """Return the squared error."""
    return (output["output"] - y) ** 2


def normal_records(model: Any, n: int) -> Iterator[Record]:
    """Yield independent standard normal a, b, c, a constant k, and what the model says."""
    rng = random.Random(7)
    for _ in range(n):
        x = {**{feature: rng.gauss(0.0, 1.0) for feature in "abc"}, "k": 1.0}
        yield x, model.predict_one(x)


def run(explainer: Any, records: Any) -> Values:
    """Return the values after the records."""
    values: Values = {}
    for x, y in records:
        values = explainer.explain_one(x, y)
    return values


def show(name: str, value: float | Values, more: str = "") -> None:
    """Print one line."""
    if isinstance(value, dict):
        text = " ".join(f"{feature} {value[feature]:.3f}" for feature in sorted(value))
        print(f"   {name}: {text} {more}", flush=True)
    else:
        print(f"   {name}: {value:,.3f} {more}", flush=True)


def seed(number: int) -> None:
    """Seed what iXAI draws from."""
    random.seed(number)
    np.random.seed(number)


def ixai() -> Any:
    """Return iXAI, which tests do not need."""
    import ixai.explainer  # noqa: PLC0415
    import ixai.imputer  # noqa: PLC0415
    import ixai.storage  # noqa: PLC0415

    return ixai


if __name__ == "__main__":
    main()
