"""All settings of ADWIN on the increments, values and losses of one run of a model.

A model that goes on learning changes also without a drift: so it is run without one too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from fluxplain.drift.detectors import DetectorSettings
from fluxplain.evaluate import evaluator_for
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.losses import cross_entropy
from tests.kit.support import outputs_of
from tests.measure.experiments import drift_streams as streams

DELTAS = (1e-2, 2e-3, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
OTHERS = ((10, 5), (10, 50), (10, 100), (100, 50))
"""Grace periods, and smallest windows: 5 is River's."""

SIGNALS = ("increment", "value")

EMIT_EVERY = 10
"""Observations from one published value to the next: the default."""

WARM_UP = 100
"""Observations that fill the reservoirs and are not explained: the default."""


class Variant(NamedTuple):
    """A signal, and the settings of ADWIN that watches it."""

    signal: str
    delta: float
    grace: int
    smallest: int

    @property
    def key(self) -> str:
        return f"{self.signal}/{self.delta:g}/{self.grace}/{self.smallest}"

    def alarms(self, numbers: Sequence[float]) -> list[int]:
        names = ("delta", "grace_period", "min_window_length")
        parameters = dict(zip(names, self[1:], strict=True))
        adwin = DetectorSettings("increment", "adwin", parameters).make("")
        found = []
        for t, number in enumerate(numbers):
            adwin.update(number)
            if adwin.drift_detected:
                found.append(t)
        return found


VARIANTS = [
    Variant(signal, delta, *others) for signal in SIGNALS for delta in DELTAS for others in OTHERS
]


@dataclass(frozen=True)
class Scenario:
    """A stream, and the model that learns it.

    The stream is made of a seed and the number of records before the drift, the model of a seed.
    ``changing`` are the features whose explanation must change after the drift; ``control`` names
    the stream of :data:`STILL` that it is without.
    """

    title: str
    stream: Callable[[int, int], streams.Stream]
    changing: tuple[str, ...] = ()
    model: Callable[[int], Any] = streams.forest_of_five
    control: str = "agrawal"


STATIONARY = {
    "agrawal": Scenario("agrawal", lambda seed, _: streams.agrawal(seed)),
    "elec2": Scenario("elec2 resampled", lambda seed, _: streams.resampled(seed)),
    "hyperplane": Scenario(
        "hyperplane",
        lambda seed, _: streams.hyperplane(seed, None),
        model=streams.adaptive_tree,
    ),
}

DRIFTS = {
    "sudden": Scenario(
        "agrawal, sudden function drift", streams.sudden, ("salary", "age", "elevel")
    ),
    "gradual": Scenario(
        "agrawal, gradual function drift within 2,000",
        partial(streams.gradual, within=2_000),
        ("salary", "age", "elevel"),
    ),
    "exchanged": Scenario(
        "agrawal, feature drift: values exchanged",
        streams.exchanged,
        ("salary", "age", "loan", "hvalue"),
    ),
    "virtual": Scenario(
        "agrawal, virtual drift: salaries above 90,000", streams.rich, ("salary", "age")
    ),
    "hyperplane": Scenario(
        "hyperplane, sudden (iPDP, 4.2)",
        streams.hyperplane,
        ("x1", "x2"),
        streams.adaptive_tree,
        "hyperplane",
    ),
    "rotating": Scenario(
        "hyperplane, rotating within 5,000",
        partial(streams.rotating, within=5_000),
        ("x1", "x2"),
        streams.logistic,
        "rotating",
    ),
    "elec2": Scenario(
        "elec2, vicprice begins to vary", streams.electricity, ("vicprice",), control="vicprice"
    ),
}

STILL = STATIONARY | {"rotating": DRIFTS["rotating"], "vicprice": DRIFTS["elec2"]}
"""Streams without a drift: that of the last two would come after the last record."""

Signals = dict[str, dict[str, Floats]]
"""Method → feature → numbers; the loss is a method with one feature, ``""``."""


def signals(
    stream: streams.Stream,
    model: Any,
    *,
    pretraining: int,
    records: int,
    learns: bool,
    seed: int,
) -> tuple[Signals, Signals]:
    """Return what the pipeline would watch, with its default settings.

    The increments and losses are one for each explained observation, the smoothed values one for
    every tenth. Both are 0 while the reservoirs fill.
    """
    features: list[str] = []
    for x, y in islice(stream, pretraining):
        features = features or list(x)
        model.learn_one(x, y)
    ask = evaluator_for(model)
    common: dict[str, Any] = {"alpha": 0.001, "seed": seed, "evaluator": ask}
    categorical = [feature for feature in streams.AGRAWAL_CATEGORICAL if feature in features]
    explainers: dict[str, IncrementalPFI | IncrementalSAGE | IncrementalPDP] = {
        "ipfi": IncrementalPFI(model, features, loss=cross_entropy, **common),
        "isage": IncrementalSAGE(model, features, loss=cross_entropy, **common),
        "ipdp": IncrementalPDP(model, features, categorical=categorical, **common),
    }
    increments = {method: np.zeros((records, len(features))) for method in explainers}
    values = {method: np.zeros((records // EMIT_EVERY, len(features))) for method in explainers}
    losses = np.zeros(records)
    for t, (x, y) in enumerate(islice(stream, records)):
        [prediction] = outputs_of(ask, x, [{}])
        losses[t] = cross_entropy(y, prediction)
        explain_together([*explainers.values()], x, y)
        for method, explainer in explainers.items():
            known = explainer.increments
            if known:
                increments[method][t] = [known[feature] for feature in features]
            if t % EMIT_EVERY == EMIT_EVERY - 1:
                values[method][t // EMIT_EVERY] = [*explainer.values.values()]
        if learns:
            model.learn_one(x, y)
    each, every = (
        {method: dict(zip(features, numbers.T, strict=True)) for method, numbers in many.items()}
        for many in (increments, values)
    )
    return each | {"loss": {"": losses}}, every


Alarms = tuple[int, int, int | None]
"""Before the drift, from there on, and after how many records the first of these was."""


def run(
    kind: str, name: str, *, pretraining: int, before: int, records: int, seed: int
) -> dict[str, dict[str, dict[str, Alarms]]]:
    """Return what all settings of ADWIN alarm at: settings → method → feature → alarms.

    Without a drift the model is ``"frozen"`` or ``"learning"``; or the stream is ``"drifting"``.
    Records are learned first (``pretraining``), then explained: ``before`` the drift, or where it
    would come, and in all.
    """
    drifts = kind == "drifting"
    scenario = (DRIFTS if drifts else STILL)[name]
    watched = signals(
        scenario.stream(seed, pretraining + (before if drifts else records)),
        scenario.model(seed),
        pretraining=pretraining,
        records=records,
        learns=kind != "frozen",
        seed=seed,
    )
    by_signal = dict(zip(SIGNALS, watched, strict=True))
    return {
        variant.key: {
            method: {f: _alarms(variant, numbers, before) for f, numbers in features.items()}
            for method, features in by_signal[variant.signal].items()
        }
        for variant in VARIANTS
    }


def _alarms(variant: Variant, numbers: Floats, before: int) -> Alarms:
    every = 1 if variant.signal == "increment" else EMIT_EVERY
    begin = WARM_UP // every
    found = variant.alarms(numbers[begin:].tolist())
    seqs = [(begin + t) * every + every - 1 for t in found]
    after = [seq - before for seq in seqs if seq >= before]
    return len(seqs) - len(after), len(after), after[0] if after else None
