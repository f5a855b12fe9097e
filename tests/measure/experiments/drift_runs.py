"""What detectors find in the increments, values and losses of one run of a model.

A model that goes on learning changes also without a drift: so it is run without one too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, get_args

import numpy as np

from fluxplain.config import DriftSettings
from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.effect_gate import EffectGate
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.evaluate import evaluator_for
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.losses import cross_entropy
from fluxplain.forest.conversion import as_arrays
from fluxplain.schemas.change import Signal
from fluxplain.schemas.methods import Watched
from tests.kit.changes import shifts_at
from tests.kit.support import outputs_of
from tests.measure.experiments import drift_streams as streams

EMIT_EVERY = 10
"""Observations from one published value to the next: the default."""

WARM_UP = 100
"""Observations that fill the reservoirs and are not explained: the default."""


class Variant(NamedTuple):
    """A detector, the signal that it watches, and the smallest change that is published."""

    title: str
    signal: Signal
    detector: str
    parameters: dict[str, Any]
    min_effect: float

    def alarms(self, features: Mapping[str, Floats]) -> dict[str, list[int]]:
        """Return feature → where it changed; the features of a method are watched side by side."""
        settings = DetectorSettings(self.signal, self.detector, self.parameters)
        watches = {feature: SignalWatch(settings, "") for feature in features}
        gates = {feature: EffectGate(self.min_effect) for feature in features}
        found: dict[str, list[int]] = {feature: [] for feature in features}
        for t, numbers in enumerate(zip(*features.values(), strict=True)):
            for (feature, watch), number in zip(watches.items(), numbers, strict=True):
                others = sum(abs(each.mean) for each in watches.values() if each is not watch)
                for shift in shifts_at(watch, t, float(number)):
                    change = watch.change(shift, stream="", seq=t, ts=None, method="loss")
                    if gates[feature].passed(change, others) is not None:
                        found[feature].append(t)
        return found


ADWIN = {"delta": 2e-3, "grace_period": 10, "min_window_length": 5}
"""River's defaults."""


def variants(method: Watched, series: int) -> dict[str, Variant]:
    """Return the detectors compared, where so many series are watched; the first is the default."""
    settings, least = DriftSettings().of(method, series), DriftSettings().min_effect
    assert settings is not None
    default = settings.signal, settings.detector, settings.parameters
    return {
        "default": Variant("default", *default, least),
        "adwin": Variant("ADWIN on increments", "increment", "adwin", ADWIN, 0.0),
        "values": Variant("ADWIN on values, as in the paper", "value", "adwin", ADWIN, 0.0),
    }


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
    """Return what each detector alarms at: detector → method → feature → alarms.

    Without a drift the model is ``"frozen"`` or ``"learning"``; or the stream is ``"drifting"``.
    Records are learned first (``pretraining``), then explained: ``before`` the drift, or where it
    would come, and in all.
    """
    drifts = kind == "drifting"
    scenario = (DRIFTS if drifts else STILL)[name]
    increments, values = signals(
        scenario.stream(seed, pretraining + (before if drifts else records)),
        as_arrays(scenario.model(seed)),
        pretraining=pretraining,
        records=records,
        learns=kind != "frozen",
        seed=seed,
    )
    series = sum(map(len, increments.values()))
    found: dict[str, dict[str, dict[str, Alarms]]] = {}
    for method in get_args(Watched):
        for key, variant in variants(method, series).items():
            watched = (values if variant.signal == "value" else increments).get(method)
            if watched is not None:
                found.setdefault(key, {})[method] = _alarms(variant, watched, before)
    return found


def _alarms(variant: Variant, features: Mapping[str, Floats], before: int) -> dict[str, Alarms]:
    every = 1 if variant.signal == "increment" else EMIT_EVERY
    begin = WARM_UP // every
    found = variant.alarms({feature: each[begin:] for feature, each in features.items()})
    counted = {}
    for feature, places in found.items():
        seqs = [(begin + t) * every + every - 1 for t in places]
        after = [seq - before for seq in seqs if seq >= before]
        counted[feature] = len(seqs) - len(after), len(after), after[0] if after else None
    return counted
