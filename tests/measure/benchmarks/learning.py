"""Predicting and learning of models as arrays, beside River's objects and beside MOA.

Each side has a model of its own and learns the same records. Sides take turns in blocks of 50
records, so that each runs as it would alone.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from river import ensemble, forest, tree

from fluxplain.forest import as_arrays
from tests.measure.benchmarks.case import Record, asked
from tests.measure.benchmarks.library_streams import agrawal, friedman, rbf
from tests.measure.benchmarks.timing import BLOCK, Figure, Run, Stopwatch, faster

Step = Callable[[dict[str, Any], Any], Any]
"""Predicts and learns a record; returns the prediction."""


def step_of(model: Any) -> Step:
    """Return what a model of River's interface does with a record."""
    ask = asked(model)

    def step(x: dict[str, Any], y: Any) -> Any:
        predicted = ask(x)
        model.learn_one(x, y)
        return predicted

    return step


def in_turns(
    steps: Mapping[str, Step], records: Iterator[Record], trained: int, measured: int
) -> tuple[Stopwatch, int]:
    """Let all sides learn; return their times, and of how many records predictions differ.

    The latter compares the first two sides.
    """
    watch, order, differing = Stopwatch(), list(steps), 0
    for begin in range(0, trained + measured, BLOCK):
        block, timer = list(itertools.islice(records, BLOCK)), watch
        if begin < trained:
            timer = Stopwatch()
        given = {side: [timer.time(side, steps[side], x, y) for x, y in block] for side in order}
        first, second, *_ = (given[side] for side in steps)
        differing += sum(a != b for a, b in zip(first, second, strict=True))
        order = [*order[1:], *order[:1]]
    return watch, differing


def beside_river(
    run: Run,
    name: str,
    model: Any,
    records: Iterator[Record],
    sizes: tuple[int, int],
    bar: str | None = None,
) -> Iterator[Figure]:
    """Measure a model as arrays beside River's; ``sizes`` are records before and while it does."""
    run.clock.say(name)
    steps = {"arrays": step_of(as_arrays(model)), "river": step_of(model)}
    watch, differing = in_turns(steps, records, *sizes)
    title = f"{name}: predict + learn, faster than River"
    yield faster(title, watch, ("arrays",), ("river",), bar)
    yield Figure.of(f"{name}: predictions that differ", differing, sum(sizes), "{:,}", "0")


def forests(run: Run) -> Iterator[Figure]:
    """Measure predicting and learning of trees and forests, beside River's objects."""
    arf = partial(forest.ARFClassifier, seed=1)
    hat = tree.HoeffdingAdaptiveTreeClassifier(seed=1)
    hatr = tree.HoeffdingAdaptiveTreeRegressor(seed=1)
    bagging = ensemble.BaggingClassifier(tree.HoeffdingTreeClassifier(), n_models=10, seed=1)
    long, short = (4000, 4000), (800, 400)
    for name, model, records, sizes, bar in (
        ("ARF-10, agrawal", arf(n_models=10), agrawal(), long, "at least 6"),
        ("tree, agrawal", tree.HoeffdingTreeClassifier(), agrawal(), long, "at least 4"),
        ("ARF-50, RBF 72", arf(n_models=50), rbf(72), short, "at least 6"),
        ("HAT, agrawal", hat, agrawal(), long, None),
        ("bagging of 10 trees, agrawal", bagging, agrawal(), long, None),
        ("ARF-10 regressor, friedman", forest.ARFRegressor(seed=1), friedman(), long, None),
        ("tree regressor, friedman", tree.HoeffdingTreeRegressor(), friedman(), long, None),
        ("HAT regressor, friedman", hatr, friedman(), long, None),
    ):
        yield from beside_river(run, name, model, records, sizes, bar)


def beside_moa(run: Run) -> Iterator[Figure]:
    """Measure predicting and learning of ARF-10, beside MOA's by CapyMOA 0.15.1.

    CapyMOA gets the values as arrays, one record after the other, as from a stream.
    """
    for n_models in (10, 50):
        name = f"ARF-{n_models}, agrawal"
        run.clock.say(name)
        model = forest.ARFClassifier(n_models=n_models, seed=1)
        steps = {"arrays": step_of(as_arrays(model)), "river": step_of(model)}
        steps["moa"] = moa_step(list(next(agrawal())[0]), n_models)
        watch, _ = in_turns(steps, agrawal(), 4000, 2000)
        yield faster(f"{name}: predict + learn, faster than MOA", watch, ("arrays",), ("moa",))
        yield faster(f"{name}: MOA, faster than River", watch, ("moa",), ("river",))


def moa_step(features: Sequence[str], n_models: int) -> Step:
    """Return what MOA's forest does with a record."""
    # of the extra
    from capymoa.classifier import AdaptiveRandomForestClassifier  # noqa: PLC0415
    from capymoa.core import LabeledInstance  # noqa: PLC0415
    from capymoa.stream import Schema  # noqa: PLC0415

    schema = Schema.from_custom([*features, "class"], "class", {"class": ["0", "1"]})
    model = AdaptiveRandomForestClassifier(schema, ensemble_size=n_models, random_seed=1)

    def step(x: dict[str, Any], y: Any) -> Any:
        values = np.fromiter(x.values(), np.float64, len(x))
        instance = LabeledInstance.from_array(schema, values, y)
        predicted = model.predict_proba(instance)
        model.train(instance)
        return predicted

    return step
