"""Runs of iPFI, Tables 2 and 3: errors against the interval PFI on a stream that drifts."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from river import forest
from river.datasets import synth

from fluxplain.baselines import IntervalPFI
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPFI, explain_together
from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.forest.conversion import as_arrays
from tests.measure.experiments.errors import error
from tests.measure.experiments.ipfi_table_1 import SAMPLINGS, realized
from tests.measure.experiments.streams import Record, drifting, elec2, shuffled, switched

AGRAWAL = {"data": "agrawal", "records": 20_000, "width": 200}

ELEC2 = {
    "data": "elec2",
    "records": 40_000,
    "at": 20_000,
    "pairs": [["nswprice", "nswdemand"]],
}

STREAMS: dict[str, dict[str, Any]] = {
    "agrawal fu. 1": AGRAWAL | {"functions": [1, 2], "at": 10_000},
    "agrawal fu. 2": AGRAWAL | {"functions": [5, 6], "at": 10_000},
    "agrawal fu. 2, early": AGRAWAL | {"functions": [5, 6], "at": 5_000},
    "agrawal fu. 2, late": AGRAWAL | {"functions": [5, 6], "at": 15_000},
    "agrawal fu. 3": AGRAWAL | {"functions": [8, 1], "at": 10_000},
    "agrawal fu. 3 from 8 to 5": AGRAWAL | {"functions": [8, 5], "at": 10_000},
    "agrawal fu. 3 from 3 to 4": AGRAWAL | {"functions": [3, 4], "at": 10_000},
    "agrawal fe. 1": AGRAWAL
    | {"functions": [2, 2], "pairs": [["elevel", "car"], ["age", "salary"]], "at": 10_000},
    "stagger fu. 1": {"data": "stagger", "records": 10_000, "width": 100}
    | {"functions": [1, 2], "at": 5_000},
    "elec2 fe. 1": ELEC2 | {"width": 400},
    "elec2 fe. 1, gradual": ELEC2 | {"width": 8_000},
}

DRAWN_EVERY = 250


def stream(
    *,
    data: str,
    records: int,
    at: int,
    width: int,
    seed: int,
    functions: Sequence[int] = (0, 0),
    pairs: Sequence[Sequence[str]] = (),
) -> Iterator[Record]:
    """Yield a stream with function drift, feature drift or both."""
    before, after = (_without_drift(data, function, seed) for function in functions)
    drifted = drifting(before, switched(after, pairs), at=at, width=width, seed=seed)
    return islice(drifted, records)


def _without_drift(data: str, function: int, seed: int) -> Iterator[Record]:
    if data == "elec2":
        return iter(shuffled(elec2(), seed))
    generator = {"agrawal": synth.Agrawal, "stagger": synth.STAGGER}[data]
    return iter(generator(classification_function=function, seed=seed))


def follow(
    *,
    stream_parameters: dict[str, Any],
    trees: int,
    alphas: list[float],
    reservoir_size: int,
    realizations: int,
    interval: int,
    seed: int,
) -> dict[str, Any]:
    """Return the errors at the end of each interval, and the course of the importances.

    Returns
    -------
    ``ends``: the intervals' last records, counted from 1; ``errors``: for each sampling and α one
    at each end; ``noise``: likewise, the error to expect from the smoothing alone;
    ``interval``: the interval PFI there; ``ipfi``: sampling → for the first α the values after
    every ``DRAWN_EVERY`` records; ``accuracy``: of the model.
    """
    model = as_arrays(forest.ARFClassifier(n_models=trees, binary_split=True, seed=seed))
    records = stream(**stream_parameters, seed=seed)
    first, *rest = records
    features = list(first[0])
    options: dict[str, Any] = {"reservoir_size": reservoir_size, "warm_up": 1}
    explainers = {
        sampling: realized(model, features, realizations, seed, sampler=sampling, **options)
        for sampling in SAMPLINGS
    }
    # the mean of the realizations' smoothed increments is their smoothed mean
    means = {
        (sampling, alpha): ExponentialMeans(len(features), [alpha])
        for sampling in SAMPLINGS
        for alpha in alphas
    }
    truth = IntervalPFI(model, features, interval=interval, loss="zero_one", seed=seed)
    together = [each for realized in explainers.values() for each in realized]
    errors: dict[str, list[float]] = {cell_key(*cell): [] for cell in means}
    noise: dict[str, list[float]] = {cell_key(*cell): [] for cell in means}
    recent = {sampling: deque[Floats](maxlen=interval) for sampling in SAMPLINGS}
    course: dict[str, list[list[float]]] = {sampling: [] for sampling in SAMPLINGS}
    intervals, ends, right = [], [], 0
    for t, (x, y) in enumerate([first, *rest], 1):
        right += model.predict_one(x) == y
        model.learn_one(x, y)
        explain_together(together, x, y)
        values = truth.explain_one(x, y)
        for sampling, explainers_of in explainers.items():
            if (increments := _mean_increments(explainers_of)) is not None:
                recent[sampling].append(increments)
        for (sampling, alpha), mean in means.items():
            if recent[sampling]:
                mean.update(recent[sampling][-1][None])
            if t % interval == 0:
                ours = dict(zip(features, mean.values[0].tolist(), strict=True))
                errors[cell_key(sampling, alpha)].append(error(ours, values))
                noise[cell_key(sampling, alpha)].append(smoothing_noise(recent[sampling], alpha))
            if t % DRAWN_EVERY == 0 and alpha == alphas[0]:
                course[sampling].append([round(value, 4) for value in mean.values[0].tolist()])
        if t % interval == 0:
            ends.append(t)
            intervals.append([round(value, 4) for value in values.values()])
    return {
        "features": features,
        "ends": ends,
        "errors": errors,
        "noise": noise,
        "interval": intervals,
        "ipfi": course,
        "accuracy": right / (len(rest) + 1),
    }


def smoothing_noise(increments: Iterable[Floats], alpha: float) -> float:
    """Return the error that smoothing alone leaves where neither model nor data change.

    The smoothed mean of independent increments has the variance α / (2 − α) of a single one. The
    mean distance of a normal number from its centre is √(2/π) standard deviations; these are
    summed over the features, as shares of all importance. The interval PFI is of the same records,
    so less is left where the smoothing counts about as many as the interval has (α = 0.001).
    """
    each = np.array([*increments])
    deviations = each.std(axis=0) * np.sqrt(alpha / (2.0 - alpha))
    total = np.maximum(each.mean(axis=0), 0.0).sum()
    return float(np.sqrt(2.0 / np.pi) * deviations.sum() / total) if total > 0.0 else 0.0


def cell_key(sampling: str, alpha: float) -> str:
    """Return the name of a sampling and an α among the errors of a run."""
    return f"{sampling}/{alpha}"


def _mean_increments(realized: list[IncrementalPFI]) -> Floats | None:
    """Return the mean of what the realizations added last; None while they warm up."""
    increments = [list(each.increments.values()) for each in realized]
    return np.mean(increments, axis=0) if increments[0] else None
