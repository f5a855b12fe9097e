"""What detectors find in the increments, values and losses of one run of a model.

A model that goes on learning changes also without a drift: so it is run without one too.
"""

import random
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, get_args

import numpy as np

from fluxplain.config import DriftSettings
from fluxplain.drift.agreement import agreement
from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.effect_gate import EffectGate
from fluxplain.drift.follow_up import Shift
from fluxplain.drift.noticed import noticed
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.evaluate import evaluator_for
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.losses import cross_entropy
from fluxplain.forest.conversion import as_arrays
from fluxplain.schemas.change import Signal
from fluxplain.schemas.methods import Watched
from tests.measure.experiments import drift_streams as streams
from tests.measure.experiments.drift_windows import alarms, ks, mean, psi, shapley

EMIT_EVERY = 10
"""Observations from one published value to the next: the default."""

WARM_UP = 100
"""Observations that fill the reservoirs and are not explained: the default."""


class Variant(NamedTuple):
    """A detector, the signal that it watches, and the smallest change that is published."""

    signal: Signal
    detector: str
    parameters: dict[str, Any]
    min_effect: float

    def alarms(
        self,
        features: Mapping[str, Floats],
        trends: Mapping[str, Floats],
        loss_changed: Sequence[int | None] = (),
    ) -> dict[str, list[int]]:
        """Return feature → where it changed; the features of a method are watched side by side.

        The trends, if any, are watched too, as in the pipeline. ``loss_changed`` has for each
        observation where the last change of the loss noticed before it began.
        """
        settings = DetectorSettings(self.signal, self.detector, self.parameters)
        trend = replace(settings, signal="trend")
        main = {feature: SignalWatch(settings, "") for feature in features}
        watches = [(f, watch, features[f].tolist()) for f, watch in main.items()]
        signs = {feature: [*map(agreement, each.tolist())] for feature, each in trends.items()}
        watches += [(f, SignalWatch(trend, ""), each) for f, each in signs.items()]
        gates = {feature: EffectGate(self.min_effect) for feature in features}
        found: dict[str, list[int]] = {feature: [] for feature in features}
        for t in range(len(watches[0][2])):
            began = loss_changed[t] if loss_changed else None
            for feature, watch, numbers in watches:
                for shift in watch.update(t, numbers[t], None, loss_changed_seq=began):
                    if not isinstance(shift, Shift):
                        continue
                    others = sum(abs(main[each].mean) for each in main if each != feature)
                    change = noticed(
                        shift,
                        signal=watch.signal,
                        stream="",
                        seq=t,
                        ts=None,
                        method="loss",
                        value=main[feature].mean,
                    )
                    if gates[feature].passed(change, others) is not None:
                        found[feature].append(t)
        return found

    def changes_before(self, numbers: Floats) -> list[int | None]:
        """Return for each number where the last change that was noticed before it began."""
        watch = SignalWatch(DetectorSettings(self.signal, self.detector, self.parameters), "")
        began: int | None = None
        found = []
        for t, number in enumerate(numbers.tolist()):
            found.append(began)
            for shift in watch.update(t, number, None):
                began = shift.begins_seq if isinstance(shift, Shift) else began
        return found


ADWIN = {"delta": 2e-3, "grace_period": 10, "min_window_length": 5}
"""River's defaults."""


def default(method: Watched, series: int) -> Variant:
    """Return the default detector of a method, where so many series are watched."""
    settings, least = DriftSettings().of(method, series), DriftSettings().min_effect
    assert settings is not None
    return Variant(settings.signal, settings.detector, settings.parameters, least)


UNIMPORTANT = "AR 0.9, frozen model, a feature shifts on which nothing depends"
"""Its explanations should not change."""


@dataclass(frozen=True)
class Scenario:
    """A stream, and the model that learns it.

    Both are made of a seed and the number of records before the drift. ``changing`` are the
    features that change, or whose effect does; ``control`` names the stream of :data:`STILL` that
    it is without. A model that does not learn is frozen after its first records.
    """

    title: str
    stream: Callable[[int, int], streams.Stream]
    changing: tuple[str, ...] = ()
    model: Callable[[int, int], Any] = streams.forest_of_five
    control: str = "agrawal"
    learns: bool = True


STATIONARY = {
    "agrawal": Scenario("agrawal", lambda seed, _: streams.agrawal(seed)),
    "hyperplane": Scenario(
        "hyperplane",
        lambda seed, _: streams.hyperplane(seed, None),
        model=streams.adaptive_tree,
    ),
    "sea": Scenario("SEA", streams.still(streams.sea), model=streams.adaptive_tree),
    "led": Scenario("LED", streams.still(streams.led), model=streams.bayes),
    "rbf": Scenario("RBF", streams.still(streams.rbf), model=streams.adaptive_tree),
    "mixed": Scenario("Mixed", streams.still(streams.mixed), model=streams.adaptive_tree),
    "sine": Scenario("SINE", streams.still(streams.sine), model=streams.adaptive_tree),
    "ar": Scenario(
        "AR 0.9", streams.still(streams.autocorrelated), model=streams.logistic, learns=False
    ),
    "elec2": Scenario("elec2 resampled", lambda seed, _: streams.resampled(seed)),
    "days": Scenario("elec2 resampled by days", streams.days),
    "weather": Scenario("weather resampled", streams.bellevue_resampled),
}

RESAMPLED = ("elec2", "days", "weather")
"""Streams that no drift is compared with."""

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
        "agrawal, virtual drift: salaries above 90,000",
        streams.rich,
        ("salary", "commission", "age"),
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
    "sea": Scenario(
        "SEA, sudden: the limit rises from 8 to 9.5",
        streams.abrupt(streams.sea),
        ("x1", "x2"),
        streams.adaptive_tree,
        "sea",
    ),
    "led": Scenario(
        "LED, three segments exchanged with noise",
        streams.abrupt(streams.led),
        ("x1", "x2", "x3", "x8", "x9", "x10"),
        streams.bayes,
        "led",
    ),
    "rbf": Scenario(
        "RBF, gradual within 2,000: other centres",
        streams.slow(streams.rbf, 2_000),
        ("x1", "x2", "x3", "x4"),
        streams.adaptive_tree,
        "rbf",
    ),
    "mixed": Scenario(
        "Mixed, sudden: classes exchanged",
        streams.abrupt(streams.mixed),
        ("x1", "x2", "x3", "x4"),
        streams.adaptive_tree,
        "mixed",
    ),
    "sine": Scenario(
        "SINE, gradual within 2,000",
        streams.slow(streams.sine, 2_000),
        ("x1", "x2"),
        streams.adaptive_tree,
        "sine",
    ),
    "ar": Scenario(
        "AR 0.9, frozen model, sudden: another feature decides",
        streams.abrupt(streams.autocorrelated),
        ("x1", "x3"),
        streams.logistic,
        "ar",
        learns=False,
    ),
    "learned": Scenario(
        "AR 0.9, learning model, sudden: another feature decides",
        streams.abrupt(streams.autocorrelated),
        ("x1", "x3"),
        streams.logistic,
        "learned",
    ),
    "shifted": Scenario(
        "AR 0.9, frozen model, virtual drift of the feature that decides",
        streams.abrupt(streams.raised(1)),
        ("x1",),
        streams.logistic,
        "ar",
        learns=False,
    ),
    "reversing": Scenario(
        "an effect changes its sign, the loss does not change",
        streams.reversing,
        ("x1",),
        streams.Reversing,
        "reversing",
    ),
    "swinging": Scenario(
        "AR 0.9, an effect changes its sign, the loss does not change",
        partial(streams.reversing, correlation=0.9),
        ("x1",),
        streams.Reversing,
        "swinging",
    ),
    "misread": Scenario(
        "weather, visibility and wind speed exchanged",
        streams.misread,
        ("feat_4", "feat_5"),
        control="bellevue",
    ),
    "elec2": Scenario(
        "elec2, vicprice begins to vary", streams.electricity, ("vicprice",), control="vicprice"
    ),
    "unimportant": Scenario(
        UNIMPORTANT,
        streams.abrupt(streams.raised(4)),
        ("x4",),
        streams.logistic,
        "ar",
        learns=False,
    ),
}

STILL = {name: each for name, each in STATIONARY.items() if name not in RESAMPLED} | {
    "rotating": DRIFTS["rotating"],
    "learned": DRIFTS["learned"],
    "reversing": DRIFTS["reversing"],
    "swinging": DRIFTS["swinging"],
    "vicprice": DRIFTS["elec2"],
    "bellevue": Scenario("weather as it is", streams.bellevue),
}
"""Streams without a drift: that of some would come after the last record."""

Features = dict[str, Floats]
"""Feature → numbers; the loss has one feature, ``""``."""


def signals(
    stream: streams.Stream,
    model: Any,
    *,
    pretraining: int,
    records: int,
    learns: bool,
    seed: int,
) -> dict[str, dict[str, Features]]:
    """Return what the detectors watch, by signal and method, with the pipeline's defaults.

    Each signal has one number for each explained observation, but the smoothed ``"value"`` one for
    every tenth. Explanations are 0 while the reservoirs fill. ``"input"`` has the observations and
    the sizes of Shapley values.
    """
    features: list[str] = []
    recent: deque[Any] = deque(maxlen=WARM_UP)
    for x, y in islice(stream, pretraining):
        features = features or list(x)
        recent.append(x)
        model.learn_one(x, y)
    ask, rng = evaluator_for(model), random.Random(seed)
    common: dict[str, Any] = {"alpha": 0.001, "seed": seed, "evaluator": ask}
    categorical = [feature for feature in streams.AGRAWAL_CATEGORICAL if feature in features]
    ipdp = IncrementalPDP(model, features, categorical=categorical, **common)
    explainers: dict[str, IncrementalPFI | IncrementalSAGE | IncrementalPDP] = {
        "ipfi": IncrementalPFI(model, features, loss=cross_entropy, **common),
        "isage": IncrementalSAGE(model, features, loss=cross_entropy, **common),
        "ipdp": ipdp,
    }
    found: dict[tuple[str, str], Floats] = defaultdict(lambda: np.zeros((records, len(features))))
    losses = np.zeros(records)
    for t, (x, y) in enumerate(islice(stream, records)):
        prediction, sizes = shapley(ask, x, rng.choice(recent), rng)
        losses[t] = cross_entropy(y, prediction)
        explain_together([*explainers.values()], x, y)
        row = {("input", "inputs"): x, ("input", "shap"): sizes, ("trend", "ipdp"): ipdp.trends}
        for method, explainer in explainers.items():
            row["increment", method] = explainer.increments
            row["value", method] = explainer.values
        for key, numbers in row.items():
            if numbers:
                found[key][t] = [numbers[feature] for feature in features]
        recent.append(x)
        if learns:
            model.learn_one(x, y)
    named: dict[str, dict[str, Features]] = defaultdict(dict)
    for (signal, method), columns in found.items():
        each = columns[EMIT_EVERY - 1 :: EMIT_EVERY] if signal == "value" else columns
        named[signal][method] = dict(zip(features, each.T, strict=True))
    named["increment"]["loss"] = {"": losses}
    return named


Alarms = tuple[int, int, int | None]
"""Before the drift, from there on, and after how many records the first of these was."""

Found = dict[str, dict[str, dict[str, Alarms]]]
"""Detector → method → feature → alarms."""


def run(kind: str, name: str, *, pretraining: int, before: int, records: int, seed: int) -> Found:
    """Return what each detector alarms at.

    Without a drift the model is ``"frozen"`` or ``"learning"``; or the stream is ``"drifting"``.
    Records are learned first (``pretraining``), then explained: ``before`` the drift, or where it
    would come, and in all.
    """
    drifts = kind == "drifting"
    scenario = (DRIFTS if drifts else STATIONARY | STILL)[name]
    at = pretraining + (before if drifts else records)
    watched = signals(
        scenario.stream(seed, at),
        as_arrays(scenario.model(seed, at)),
        pretraining=pretraining,
        records=records,
        learns=kind != "frozen" and scenario.learns,
        seed=seed,
    )
    return {
        detector: {
            method: {
                feature: _counted(each, EMIT_EVERY if detector == "values" else 1, before)
                for feature, each in features.items()
            }
            for method, features in methods.items()
        }
        for detector, methods in _alarms(watched).items()
    }


def _alarms(
    watched: Mapping[str, Mapping[str, Features]],
) -> dict[str, dict[str, dict[str, list[int]]]]:
    """Return detector → method → feature → places of the alarms in the watched numbers."""
    begun: dict[str, dict[str, Features]] = {
        signal: {
            method: {
                feature: each[WARM_UP // (EMIT_EVERY if signal == "value" else 1) :]
                for feature, each in features.items()
            }
            for method, features in methods.items()
        }
        for signal, methods in watched.items()
    }
    increments, trends = begun["increment"], begun["trend"]
    series = sum(map(len, increments.values())) + sum(map(len, trends.values()))
    loss_changed = default("loss", series).changes_before(increments["loss"][""])
    adwin = Variant("increment", "adwin", ADWIN, 0.0)
    inputs, sizes = begun["input"]["inputs"], begun["input"]["shap"]
    return {
        "default": {
            method: default(method, series).alarms(
                increments[method],
                trends.get(method, {}),
                () if method == "loss" else loss_changed,
            )
            for method in get_args(Watched)
            if method in increments
        },
        "adwin": {"loss": adwin.alarms(increments["loss"], {})},
        "values": {
            method: adwin._replace(signal="value").alarms(values, {})
            for method, values in begun["value"].items()
        },
        "psi": {"inputs": alarms(psi, inputs)},
        "ks": {"inputs": alarms(ks, inputs)},
        "shap": {"shap": alarms(mean, sizes)},
    }


def _counted(places: list[int], every: int, before: int) -> Alarms:
    """Return the alarms before and after a record, and how long after it the first one was."""
    seqs = [WARM_UP + t * every + every - 1 for t in places]
    after = [seq - before for seq in seqs if seq >= before]
    return len(seqs) - len(after), len(after), after[0] if after else None
