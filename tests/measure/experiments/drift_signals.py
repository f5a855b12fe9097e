"""What is watched on a stream: every increment and every loss, from one run of the model."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluxplain.evaluate import evaluator_for
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.losses import cross_entropy
from tests.kit.support import outputs_of
from tests.measure.experiments.streams import Record

EMIT_EVERY = 10
"""Observations from one published value to the next: the default."""

WARM_UP = 100
"""Observations that fill the reservoirs and are not explained: the default."""

Signals = dict[str, dict[str, NDArray[np.float64]]]
"""Method → feature → numbers; the loss is a method with one feature, ``""``."""


def signals(
    stream: Iterable[Record],
    model: Any,
    *,
    pretraining: int,
    records: int,
    categorical: Sequence[str],
    learns: bool,
    seed: int,
    alpha: float = 0.001,
) -> tuple[Signals, Signals]:
    """Return what the pipeline would watch, with its default settings.

    Parameters
    ----------
    stream, model
        The observations, and what learns them.
    pretraining
        Observations that are learned before anything is explained.
    records
        Observations that are explained.
    categorical
        Features that are categories.
    learns
        Whether the model goes on learning while it is explained.
    seed
        Of the explanations.
    alpha
        Their smoothing.

    Returns
    -------
    The increments and losses, one for each explained observation, and the smoothed values, one
    for every tenth. Both are 0 while the reservoirs fill.
    """
    stream = iter(stream)
    features: list[str] = []
    for x, y in islice(stream, pretraining):
        features = features or list(x)
        model.learn_one(x, y)
    ask, loss = evaluator_for(model), cross_entropy
    common: dict[str, Any] = {"alpha": alpha, "seed": seed, "evaluator": ask}
    explainers: dict[str, IncrementalPFI | IncrementalSAGE | IncrementalPDP] = {
        "ipfi": IncrementalPFI(model, features, loss=loss, **common),
        "isage": IncrementalSAGE(model, features, loss=loss, **common),
        "ipdp": IncrementalPDP(model, features, categorical=categorical, **common),
    }
    increments = {method: np.zeros((records, len(features))) for method in explainers}
    values = {method: np.zeros((records // EMIT_EVERY, len(features))) for method in explainers}
    losses = np.zeros(records)
    for t, (x, y) in enumerate(islice(stream, records)):
        [prediction] = outputs_of(ask, x, [{}])
        losses[t] = loss(y, prediction)
        explain_together([*explainers.values()], x, y)
        for method, explainer in explainers.items():
            known = explainer.increments
            if known:
                increments[method][t] = [known[feature] for feature in features]
            if t % EMIT_EVERY == EMIT_EVERY - 1:
                values[method][t // EMIT_EVERY] = [*explainer.values.values()]
        if learns:
            model.learn_one(x, y)
    return _by_feature(increments, features) | {"loss": {"": losses}}, _by_feature(values, features)


def _by_feature(numbers: dict[str, NDArray[np.float64]], features: Sequence[str]) -> Signals:
    return {method: dict(zip(features, table.T, strict=True)) for method, table in numbers.items()}
