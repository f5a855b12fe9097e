"""What iXAI 0.1.3 and this library give on the same streams: the numbers of the migration note.

Run: ``pip install ixai==0.1.3``, then ``python -m tests.measure.experiments.beside_ixai``
"""

import os
import random
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from river import metrics, tree
from river.datasets import synth

from fluxplain.evaluate import Encoding
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
    differences = (river_metrics, ages, moved_feature, start, few_inner_samples, offset, classes)
    for measure in (*differences, trees, seeds, one_dict):
        print(f"{measure.__name__.replace('_', ' ')}: {measure.__doc__}", flush=True)
        measure()


def river_metrics() -> None:
    """What a metric as the loss gives with the River that is installed."""
    for metric in (metrics.Accuracy(), metrics.CrossEntropy(), metrics.MSE(), metrics.MAE()):
        try:
            their_pfi(Linear({"a": 1.0}), ["a"], metric)
        except (AttributeError, TypeError) as error:
            print(f"   {type(metric).__name__}: {type(error).__name__}: {error}")


def ages() -> None:
    """Mean age of the stored observations after 50,000 records, 20 runs."""
    geometric = partial(ixai().storage.GeometricReservoirStorage, size=SIZE)
    theirs = {
        "geometric": geometric,
        "geometric, constant_probability=1": partial(geometric, constant_probability=1.0),
        "uniform": partial(ixai().storage.UniformReservoirStorage, size=SIZE),
    }
    for name, make in theirs.items():
        seed(0)
        storages = (make() for _ in range(20))
        show(f"iXAI, {name}", mean_age(storages, lambda each: each.get_data()[0], dict))
    for kind in (GeometricReservoir, UniformReservoir):
        reservoirs = (kind(SIZE, random.Random(number)) for number in range(20))
        age = mean_age(reservoirs, lambda each: each.rows, Encoding().observe)
        show(f"ours, {kind.__name__}", age)


def mean_age(
    reservoirs: Iterable[Any],
    stored: Callable[[Any], Any],
    observe: Callable[[dict[str, Any]], Any],
) -> float:
    """Return how many records ago the stored observations came, on average."""
    means = []
    for reservoir in reservoirs:
        for t in range(50_000):
            reservoir.update(observe({"t": t}))
        means.append(statistics.fmean(50_000 - x["t"] for x in stored(reservoir)))
    return statistics.fmean(means)


def moved_feature() -> None:
    """Records 5,001 on have a in [10, 11), before in [0, 1); iPFI of a 1,000 later, 20 runs."""
    model = Linear({"a": 1.0})
    theirs, ours = [], []
    for number in range(20):
        rng = random.Random(number)
        values = [rng.random() + 10.0 * (t >= 5_000) for t in range(6_000)]
        records = [({"a": a}, a) for a in values]
        pfi = their_pfi(model, ["a"], absolute, number=number, alpha=0.01)
        theirs.append(run(pfi, records)["a"])
        mine = IncrementalPFI(model, ["a"], loss="absolute_error", alpha=0.01, seed=number)
        ours.append(run(mine, records)["a"])
    show("iXAI", statistics.fmean(theirs))
    show("ours", statistics.fmean(ours))
    print("   true value: 0.333")


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

    model = AgrawalRule()
    theirs = their_pfi(model, ["age"], lambda y, o: loss(y, o["output"]), number=number)
    ours = IncrementalPFI(model, ["age"], loss=loss, seed=number)
    raw = IncrementalPFI(model, ["age"], loss=loss, debias=False, warm_up=1, seed=number)
    stream = synth.Agrawal(classification_function=1, seed=number)
    for t, (x, y) in enumerate(stream.take(at[-1]), start=1):
        for explainer in (theirs, ours, raw):
            explainer.explain_one(x, y)
        if t in at:
            bounds = theirs.get_confidence_bound(0.1)
            yield t, "iXAI", _of_age(theirs.importance_values, theirs.variances, bounds)
            for name, each in (("ours", ours), ("ours, debias=False, warm_up=1", raw)):
                yield t, name, _of_age(each.values, each.variances, each.confidence(0.1))


def _of_age(values: Values, variances: Values, bounds: Values) -> tuple[float, float, float]:
    return values["age"], variances["age"], bounds["age"]


def few_inner_samples() -> None:
    """3a - 2b, c ignored, k constant; squared loss; exact values 9, 4, 0, 0; 20,000 records."""
    model = Linear({"a": 3.0, "b": -2.0})
    samples: tuple[InnerSamples, ...] = (1, 5, "all")
    sides: dict[str, Any] = {
        **{f"iXAI, m = {m}": partial(their_sage, n_inner_samples=m) for m in (1, 5)},
        **{f"ours, m = {m}": partial(our_sage, inner_samples=m) for m in samples},
    }
    for name, side in sides.items():
        sage = side(model, list("abck"))
        values = run(sage, normal_records(model, 20_000))
        show(name, values, f"variance of c's increments {sage.variances['c']:.3f}")


def offset() -> None:
    """The same with 100 added to the model and the target; 1,000 and 5,000 records, m = 5."""
    model = Linear({"a": 3.0, "b": -2.0}, intercept=100.0)
    for n in (1_000, 5_000):
        theirs = their_sage(model, list("abck"), n_inner_samples=5)
        show(f"iXAI, {n}", run(theirs, normal_records(model, n)))
        ours = our_sage(model, list("abck"), inner_samples=5)
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
    theirs = their_sage(model.predict_one, features, wrong)
    show("iXAI, predict_one", sum(run(theirs, rest).values()))
    ours = our_sage(model, features, loss="zero_one", inner_samples=1)
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
    given: dict[str, Any] = {"storage": storage, "imputer": imputer}
    show("iXAI", run(their_sage(model, ["a", "b", "c"], n_inner_samples=20, **given), records))
    sage = our_sage(model, ["a", "b", "c"], imputer="observational", inner_samples=20)
    show("ours", run(sage, records))


def _spread(name: str, numbers: Sequence[float]) -> None:
    mean, deviation = statistics.fmean(numbers), statistics.stdev(numbers)
    print(f"   {name}: b has mean {mean:.3f}, standard deviation {deviation:.3f}")


def seeds() -> None:
    """IPFI of a, 3a - 2b, after 500 records: alone, and with a second explainer beside it."""
    model = Linear({"a": 3.0, "b": -2.0})
    for name, count in (("alone", 1), ("with a second", 2)):
        theirs = [their_pfi(model, ["a", "b"], absolute, alpha=0.01) for _ in range(count)]
        ours = [
            IncrementalPFI(model, ["a", "b"], loss="absolute_error", alpha=0.01, seed=1)
            for _ in range(count)
        ]
        for x, y in normal_records(model, 500):
            for each in (*theirs, *ours):
                each.explain_one(x, y)
        print(f"   {name}: iXAI {theirs[0].importance_values['a']!r} ours {ours[0].values['a']!r}")
    print("   iSAGE, product draws, 500 records, in processes with PYTHONHASHSEED 1 and 2:")
    for hash_seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", f"from {__spec__.name} import product; product()"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
        )


def product() -> None:
    warnings.simplefilter("ignore")
    features, model = list("abck"), Linear({"a": 3.0, "b": -2.0})
    storage = ixai().storage.GeometricReservoirStorage(size=SIZE)
    imputer = ixai().imputer.MarginalImputer(as_function(model), "product", storage)
    theirs = their_sage(model, features, storage=storage, imputer=imputer)
    ours = our_sage(model, features, imputer="product")
    values = run(theirs, normal_records(model, 500)), run(ours, normal_records(model, 500))
    print(f"   iXAI a {values[0]['a']!r} ours a {values[1]['a']!r}")


def one_dict() -> None:
    """iPFI of a, of true value 1/3, when the stream gives one dict, changed in place."""
    rng, x, model = random.Random(1), {"a": 0.0}, Linear({"a": 1.0})
    theirs = their_pfi(model, ["a"], absolute)
    ours = IncrementalPFI(model, ["a"], loss="absolute_error", seed=1)
    for _ in range(5_000):
        x["a"] = rng.random()
        theirs.explain_one(x, x["a"])
        ours.explain_one(x, x["a"])
    show("iXAI", theirs.importance_values["a"])
    show("ours", ours.values["a"])


def wrong(y: object, output: Values) -> float:
    return float(output["output"] != y)


def absolute(y: float, output: Values) -> float:
    return abs(output["output"] - y)


def squared(y: float, output: Values) -> float:
    return (output["output"] - y) ** 2


def their_pfi(
    model: Any,
    features: list[str],
    loss: object,
    *,
    number: int = 1,
    alpha: float = 0.001,
    **more: Any,
) -> Any:
    """Return iXAI's iPFI, and seed what it draws from."""
    seed(number)
    pfi = ixai().explainer.IncrementalPFI
    return pfi(as_function(model), loss, features, smoothing_alpha=alpha, **more)


def their_sage(
    model: Any,
    features: list[str],
    loss: object = squared,
    *,
    n_inner_samples: int = 1,
    **more: Any,
) -> Any:
    """Return iXAI's iSAGE, of a model or a function, and seed what it draws from."""
    seed(1)
    function = as_function(model) if hasattr(model, "predict_one") else model
    sage = ixai().explainer.IncrementalSage
    more |= {"smoothing_alpha": 0.001, "n_inner_samples": n_inner_samples}
    return sage(function, loss, features, **more)


def our_sage(model: Any, features: list[str], **options: Any) -> IncrementalSAGE:
    return IncrementalSAGE(model, features, **{"loss": "squared_error", "seed": 1, **options})


def as_function(model: Any) -> Callable[[dict[str, Any]], Values]:
    """Return what iXAI calls a model function."""
    return lambda x: {"output": model.predict_one(x)}


def normal_records(model: Any, n: int) -> Iterator[Record]:
    """Yield independent standard normal a, b, c, a constant k, and what the model says."""
    rng = random.Random(7)
    for _ in range(n):
        x = {**{feature: rng.gauss(0.0, 1.0) for feature in "abc"}, "k": 1.0}
        yield x, model.predict_one(x)


def run(explainer: Any, records: Any) -> Values:
    values: Values = {}
    for x, y in records:
        values = explainer.explain_one(x, y)
    return values


def show(name: str, value: float | Values, more: str = "") -> None:
    if isinstance(value, dict):
        text = " ".join(f"{feature} {value[feature]:.3f}" for feature in sorted(value))
        print(f"   {name}: {text} {more}", flush=True)
    else:
        print(f"   {name}: {value:,.3f} {more}", flush=True)


def seed(number: int) -> None:
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
