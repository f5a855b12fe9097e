"""The explainers of the library, beside iXAI 0.1.3 and beside the learning of River's model.

Both sides explain the same records, each of a model of its own that learns them, in turns of 50
records. iXAI explains River's objects; ours explain arrays, if there are arrays for the model.
"""

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from river import compose, ensemble, forest, linear_model, naive_bayes, preprocessing, tree
from river.datasets import synth

from tests.kit.command import Clock
from tests.measure.benchmarks.case import (
    LEARNING,
    Case,
    Record,
    difference,
    explainers,
    generic_pdp,
    ixai,
    together,
)
from tests.measure.benchmarks.library_streams import (
    ELEC2,
    agrawal,
    elec2,
    friedman,
    logistic_agrawal,
    mixed_agrawal,
    rbf,
)
from tests.measure.benchmarks.timing import Figure, Run, faster, share

TALK = {3: 0.734, 8: 1.210, 9: 1.411, 14: 1.976, 16: 2.386, 33: 5.070, 72: 7.717}
"""Features → cost of iPFI ÷ cost of training, ARF-25, as the papers' talk prints it."""


def pfi_and_training(run: Run) -> Iterator[Figure]:
    """Measure iPFI of a forest of 10 trees."""
    model = forest.ARFClassifier(n_models=10, seed=1)
    case = Case(model, agrawal(), trained=5000, measured=1000)
    features = list(next(agrawal())[0])
    pfi = explainers(case.own, features)[0].explain_one
    others = {"ixai-pfi": ixai(model, features)["ixai-pfi"]}
    watch = case.run({"pfi": pfi}, others, run.clock)
    name = "iPFI, ARF-10, agrawal (d = 9)"
    yield faster(f"{name}: faster than iXAI", watch, ("pfi",), ("ixai-pfi",), "at least 20")
    yield share(
        f"{name}: share of River's predict + learn", watch, ("pfi",), LEARNING, "at most 0.05"
    )
    yield difference(name, case)


def full_set(
    run: Run,
    name: str,
    model: Any,
    records: Callable[[], Iterator[Record]],
    bar: str | None = None,
    bar_of_share: str | None = None,
    trained: int = 5000,
) -> Iterator[Figure]:
    """Measure iPFI, iSAGE and iPDP together."""
    name = f"full set, {name}"
    features = list(next(records())[0])
    case = Case(model, records(), trained=trained, measured=trained // 5)
    mine = {"together": together(case.own, features)}
    others = {**ixai(model, features), "generic-pdp": generic_pdp(model, features)}
    watch = case.run(mine, others, run.clock)
    yield faster(
        f"{name}: faster than iXAI and generic iPDP", watch, tuple(mine), tuple(others), bar
    )
    title = f"{name}: share of River's predict + learn"
    yield share(title, watch, tuple(mine), LEARNING, bar_of_share)
    yield difference(name, case)


def by_features(run: Run) -> Iterator[Figure]:
    """Measure iPFI of a forest of 25 trees on streams of 3 to 72 features, beside the talk's."""
    ratios: dict[int, float] = {}
    for name, records in _streams(run.clock).items():
        model = forest.ARFClassifier(n_models=25, seed=1)
        features = list(next(records())[0])
        d = len(features)
        case = Case(model, records(), trained=2000, measured=400)
        mine, others = {"pfi": explainers(case.own, features)[0].explain_one}, {}
        if d == max(TALK):
            others["ixai-pfi"] = ixai(model, features)["ixai-pfi"]
        watch = case.run(mine, others, run.clock)
        talk = f"; the talk's: {TALK[d]}" if d in TALK else ""
        yield share(f"iPFI ÷ training, ARF-25, {name} (d = {d}{talk})", watch, ("pfi",), ("learn",))
        ratios[d] = share("", watch, ("pfi",), ("learn",)).ratio
        if others:
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


def _streams(clock: Clock) -> dict[str, Callable[[], Iterator[Record]]]:
    streams: dict[str, Callable[[], Iterator[Record]]] = {
        "stagger": lambda: iter(synth.STAGGER(seed=1)),
        "agrawal": agrawal,
    }
    if ELEC2.is_file():
        streams["elec2"] = elec2
    else:
        clock.say(f"{ELEC2} is not there: elec2 is left out")
    for d in (14, 16, 33, 72):
        streams[f"RBF {d}"] = partial(rbf, d)
    return streams


def full_sets(run: Run) -> Iterator[Figure]:
    """Measure all three explanations, of a forest and of a linear model."""
    arf = forest.ARFClassifier(n_models=10, seed=1)
    yield from full_set(run, "ARF-10, agrawal (d = 9)", arf, agrawal, "at least 80", "at most 0.15")
    logistic = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    name = "logistic regression behind a scaler, agrawal (d = 9)"
    yield from full_set(run, name, logistic, logistic_agrawal, "at least 20")


def relatives(run: Run) -> Iterator[Figure]:
    """Measure all three explanations of further models."""
    logistic = linear_model.LogisticRegression
    scaler = preprocessing.StandardScaler
    bagged = ensemble.BaggingClassifier(logistic(), n_models=10, seed=1)
    encoder = compose.Select("elevel", "car", "zipcode") | preprocessing.OneHotEncoder()
    encoded = compose.Discard("elevel", "car", "zipcode") | preprocessing.MinMaxScaler()
    for name, model, records, bar in (
        (
            "leveraging bagging-10, agrawal",
            ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=1),
            agrawal,
            "at least 10",
        ),
        ("HAT, agrawal", tree.HoeffdingAdaptiveTreeClassifier(seed=1), agrawal, "at least 10"),
        (
            "ARF-10, agrawal, 3 categories",
            forest.ARFClassifier(seed=1),
            mixed_agrawal,
            "at least 10",
        ),
        ("ARF-10 regressor, friedman", forest.ARFRegressor(seed=1), friedman, "at least 10"),
        ("tree regressor, friedman", tree.HoeffdingTreeRegressor(), friedman, None),
        ("AMF-10, agrawal", forest.AMFClassifier(n_estimators=10, seed=1), agrawal, "at least 10"),
        ("Gaussian naive Bayes, agrawal", naive_bayes.GaussianNB(), agrawal, "at least 10"),
        ("bagged logistic regression, agrawal", scaler() | bagged, logistic_agrawal, "at least 10"),
        (
            "logistic regression behind min-max, agrawal",
            preprocessing.MinMaxScaler() | logistic(),
            logistic_agrawal,
            None,
        ),
        (
            "logistic regression behind one-hot, agrawal, 3 categories",
            (encoder + encoded) | logistic(),
            mixed_agrawal,
            None,
        ),
    ):
        run.clock.say(name)
        yield from full_set(run, name, model, records, bar, trained=2000)
    wide = forest.ARFClassifier(seed=1)
    name = "ARF-10, RBF 200"
    yield from full_set(run, name, wide, partial(rbf, 200), bar_of_share="at most 1", trained=500)
