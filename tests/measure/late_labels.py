"""What the default detectors find where labels come late and the model learns as late.

The pipeline's algorithms and its order, without its records: an observation is predicted, and
explained by iPDP and iSHAP, when it arrives. When its label arrives, the model of that time is
explained by iPFI and iSAGE, and learns. Unlike in the pipeline, these two replace values by those
of observations whose label is known, and iSAGE's mean prediction goes on when a model takes over.
"""

import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from fluxplain.evaluate import evaluator_for
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.importance import ImportanceExplainer
from fluxplain.explain.losses import cross_entropy
from fluxplain.explain.players import Players
from fluxplain.explain.shap import SHAP
from fluxplain.explain.storage import make_reservoir
from fluxplain.forest.conversion import as_arrays
from fluxplain.schemas.methods import METHODS, Watched
from tests.measure.experiments.drift_runs import WARM_UP, Features, default

INNER_SAMPLES = 3
"""Draws of iSHAP: the default."""

Records = Sequence[tuple[Mapping[str, Any], Any]]
"""Features and label of each observation."""

Alarms = dict[str, dict[str, list[int]]]
"""Method → feature → the observations that had arrived at each alarm, counted from 0."""


@dataclass(frozen=True)
class Signals:
    """What is watched: one number of each feature for each explained observation.

    Attributes
    ----------
    increments
        Method → feature → increments. The loss has one feature, ``""``.
    trends
        Of iPDP: feature → trends.
    errors
        1 where the prediction made at arrival was wrong, else 0, as the labels came.
    delay
        Observations that arrive between one and its label.
    """

    increments: dict[str, Features]
    trends: Features
    errors: Floats
    delay: int

    def begins(self, method: str) -> int:
        """Return how many observations have arrived when a method begins."""
        labelled = method == "loss" or METHODS[method].needs_label  # type: ignore[index]
        return self.delay if labelled else 0


class _Explainers:
    """The four methods, with the pipeline's defaults."""

    def __init__(self, model: Any, features: list[str], categorical: Collection[str], seed: int):
        common: dict[str, Any] = {"alpha": 0.001, "evaluator": evaluator_for(model)}
        rng = random.Random(seed)
        shap = SHAP(
            Players(features),
            reservoir=make_reservoir("geometric", WARM_UP, rng),
            imputer="interventional",
            categorical=categorical,
            warm_up=None,
            inner_samples=INNER_SAMPLES,
            rng=rng,
        )
        self.ipdp = IncrementalPDP(model, features, categorical=categorical, seed=seed, **common)
        self.ishap = ImportanceExplainer(model, shap, loss=cross_entropy, debias=True, **common)
        common |= {"loss": cross_entropy, "seed": seed}
        self.ipfi = IncrementalPFI(model, features, **common)
        self.isage = IncrementalSAGE(model, features, **common)

    def replace(self, model: Any) -> None:
        """Explain another model from here on; the stored observations stay."""
        evaluator = evaluator_for(model)
        for explainer in (self.ipdp, self.ishap, self.ipfi, self.isage):
            explainer.evaluator = evaluator


def signals(
    model: Any,
    records: Records,
    *,
    delay: int,
    categorical: Collection[str] = (),
    successors: Mapping[int, Any] | None = None,
    seed: int,
) -> Signals:
    """Return what is watched while the model predicts and learns the records.

    ``successors`` maps observations to models that take over when they arrive.
    """
    features = [*records[0][0]]
    model = as_arrays(model)
    explainers = _Explainers(model, features, categorical, seed)
    columns: dict[str, list[Any]] = defaultdict(list)
    served = []
    for t, (x, _) in enumerate(records):
        if successors and t in successors:
            model = as_arrays(successors[t])
            explainers.replace(model)
        served.append(_predicted(model, x))
        explain_together([explainers.ipdp, explainers.ishap], x)
        columns["ipdp"].append(_row(explainers.ipdp.increments, features))
        columns["trends"].append(_row(explainers.ipdp.trends, features))
        columns["ishap"].append(_row(explainers.ishap.increments, features))
        if t >= delay:
            known, y = records[t - delay]
            explain_together([explainers.ipfi, explainers.isage], known, y)
            columns["ipfi"].append(_row(explainers.ipfi.increments, features))
            columns["isage"].append(_row(explainers.isage.increments, features))
            columns["loss"].append([cross_entropy(y, model.predict_proba_one(known))])
            columns["errors"].append(served[t - delay] != y)
            model.learn_one(known, y)
    errors = np.array(columns.pop("errors"), float)
    named = {
        key: dict(zip([""] if key == "loss" else features, np.array(rows).T, strict=True))
        for key, rows in columns.items()
    }
    return Signals(named, named.pop("trends"), errors, delay)


def _predicted(model: Any, x: Mapping[str, Any]) -> Any:
    answer = model.predict_proba_one(x)
    return max(answer, key=answer.get, default=None)


def _row(numbers: Mapping[str, float], features: list[str]) -> list[float]:
    """Return a number of each feature, 0 while the reservoirs fill."""
    return [numbers.get(feature, 0.0) for feature in features]


def default_alarms(watched: Signals) -> Alarms:
    """Return what the default detectors of all methods and the loss alarm at."""
    begun = {
        method: {feature: each[WARM_UP:] for feature, each in features.items()}
        for method, features in watched.increments.items()
    }
    trends = {feature: each[WARM_UP:] for feature, each in watched.trends.items()}
    series = sum(map(len, begun.values())) + len(trends)
    loss_changed = default("loss", series).changes_before(begun["loss"][""])
    found: Alarms = {}
    for method in [each for each in get_args(Watched) if each in begun]:
        is_late = method not in {"loss", "ipdp", "ishap"}
        alarms = default(method, series).alarms(
            begun[method], trends if method == "ipdp" else {}, loss_changed if is_late else ()
        )
        begins = watched.begins(method) + WARM_UP
        found[method] = {f: [begins + t for t in places] for f, places in alarms.items()}
    return found
