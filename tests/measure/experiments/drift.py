"""Our own, after iPDP, Section 4.1: false alarms of ADWIN without a drift, and its delay after one.

The table behind the defaults of the detectors.

The model runs once over each stream; all settings of ADWIN are fed with the same increments, values
and losses. A model that goes on learning changes also without a drift: an alarm counts as found
only if the same feature and method alarm later, or never, when the drift does not come.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import mean, median
from typing import Any, get_args

from matplotlib.figure import Figure

from deploy.docs.words import table
from fluxplain.config import DriftSettings
from fluxplain.drift.detectors import ADWIN_DEFAULTS
from fluxplain.schemas.methods import Watched
from tests.measure.experiments.drift_runs import (
    DELTAS,
    DRIFTS,
    SIGNALS,
    STATIONARY,
    STILL,
    VARIANTS,
    WARM_UP,
    Variant,
    run,
)
from tests.measure.experiments.experiment import Report, Results, Task

HEAD = ("signal", "δ", "grace period", "smallest window")

NAMES = {"ipfi": "iPFI", "isage": "iSAGE", "ipdp": "iPDP", "loss": "loss"}

PRETRAINING = 5_000
BEFORE, AFTER = 5_000, 5_000
"""Observations that are explained before the drift and from there on."""

FROZEN = 20_000
"""Observations that are explained by a frozen model."""

FIRST_SEED = 211
"""The defaults were chosen on the seeds 1 to 8, 101 to 108 and 201 to 204: these are others. Only
that iSAGE has 0.002 instead of 0.001, neither of which had a false alarm on those, followed from
these: one sudden drift was found 15 records too late."""

TARGET = 300
"""Records within which a sudden function drift must be found."""

DEFAULT = "default"
"""The variant that has, of each method, the alarms with the default settings."""

Found = Mapping[tuple[str, str], list[dict[str, Any]]]
"""Kind and name → what :func:`run` gave, each time."""

Delay = int | None
"""After how many records there was an alarm, if there was one."""

Delays = dict[str, list[Delay]]
"""Method → in each run, the delay of the first of the features that alarmed."""


def tasks(runs: int) -> list[Task]:
    """Return one task for each stream of each run: frozen, learning and drifting."""
    around = {"pretraining": PRETRAINING, "before": BEFORE, "records": BEFORE + AFTER}
    cases = [
        *(("frozen", name, around | {"before": FROZEN, "records": FROZEN}) for name in STATIONARY),
        *(("learning", name, around) for name in STILL),
        *(("drifting", name, around) for name in DRIFTS),
    ]
    return [
        Task(
            f"{kind}/{name}/run {i + 1}",
            run,
            {"kind": kind, "name": name, **sizes, "seed": FIRST_SEED + i},
        )
        for i in range(runs)
        for kind, name, sizes in cases
    ]


def report(results: Results) -> Report:
    found = _grouped(results)
    rates = _rates(found, "frozen", DEFAULT, FROZEN)
    worst = max(rate for case in rates.values() for rate in case.values())
    delays = {name: _delays(found, DEFAULT, name) for name in DRIFTS}
    first = {name: _earliest(methods) for name, methods in delays.items()}
    missed = [name for name in DRIFTS if None in first[name]]
    unseen = [name for name in DRIFTS if None in delays[name]["loss"]]
    later = [name for name in DRIFTS if _middle(first[name]) > _middle(delays[name]["loss"])]
    late = [delay for delay in first["sudden"] if delay is None or delay > TARGET]
    runs = len(first["sudden"])
    sentence = (
        f"With the defaults ({_named()}), chosen on other seeds but for the δ of iSAGE, the "
        f"worst feature, method and stream have {worst:.2f} false alarms in 100,000 records "
        f"with a frozen model. Drifts that no explanation finds in at least one of {runs} "
        f"runs: {_titles(missed)}. A sudden function drift is found later than {TARGET} "
        f"records, or not, in {len(late)} of {runs} runs. The loss misses in at least one run: "
        f"{_titles(unseen)}; its median delay is shorter than that of the first explanation "
        f"for: {_titles(later)}. The paper prints no such figures."
    )
    tables = [
        f"With the defaults, the median delay in records (and in how many of {runs} runs it is "
        f"within {AFTER:,} and shorter than without the drift), by the first of the features "
        "that must change; below it, when these features alarm without the drift:",
        _default_table(found),
        "False alarms in 100,000 records of the feature that has most, frozen model "
        f"({runs} × {FROZEN:,} records of each stream; in each cell iPFI, iSAGE, iPDP, loss):",
        _rate_table(found, "frozen", FROZEN),
        "Alarms in 100,000 records of the feature that has most, the model learning beside it "
        f"({runs} × {BEFORE + AFTER:,} records, after {PRETRAINING:,} that it has learned):",
        _rate_table(found, "learning", BEFORE + AFTER),
        "Median delay as above, for all settings:",
        _delay_table(found),
    ]
    return Report("\n\n".join(tables), sentence, partial(_draw, found))


def _grouped(results: Results) -> Found:
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    defaults = _defaults()
    for key, result in results.items():
        kind, name, _ = key.split("/")
        default = {method: result[variant.key][method] for method, variant in defaults.items()}
        found[kind, name].append(result | {DEFAULT: default})
    return found


def _defaults() -> dict[str, Variant]:
    """Return method → the variant that the default settings are."""
    variants = {}
    for method in get_args(Watched):
        settings = DriftSettings().of(method)
        assert settings is not None
        names = ("delta", "grace_period", "min_window_length")
        variants[method] = Variant(settings.signal, *(settings.parameters[name] for name in names))
    return variants


def _named() -> str:
    defaults = _defaults()
    each = ", ".join(f"{NAMES[m]}: {v.signal}, δ = {v.delta:g}" for m, v in defaults.items())
    any_ = defaults["ipfi"]
    return f"{each}; grace period {any_.grace}, smallest window {any_.smallest}"


def _rates(found: Found, kind: str, variant: str, records: int) -> dict[str, dict[str, float]]:
    """Return stream → method → alarms in 100,000 records of the feature that has most."""
    rates: dict[str, dict[str, float]] = {}
    for name in STATIONARY:
        runs = [result[variant] for result in found[kind, name]]
        rates[name] = {
            method: 1e5
            / (records - WARM_UP)
            * max(mean(sum(each[method][feature][:2]) for each in runs) for feature in features)
            for method, features in runs[0].items()
        }
    return rates


def _firsts(runs: Sequence[Any], variant: str, name: str) -> dict[str, list[list[Delay]]]:
    """Return method → in each run, the first alarm of each feature that must change."""
    changing = {"loss": ("",)}
    return {
        method: [
            [result[variant][method][f][2] for f in changing.get(method, DRIFTS[name].changing)]
            for result in runs
        ]
        for method in runs[0][variant]
    }


def _without(found: Found, variant: str, name: str) -> dict[str, list[list[Delay]]]:
    """Return when the features alarm without the drift."""
    return _firsts(found["learning", DRIFTS[name].control], variant, name)


def _delays(found: Found, variant: str, name: str) -> Delays:
    """Return the delays after a drift; None where all are as long as without it, or there is none.

    Until the drift both streams have the same records, but for elec2, where ``vicprice`` stays
    constant longer in the earlier records.
    """
    after = _firsts(found["drifting", name], variant, name)
    without = _without(found, variant, name)
    return {
        method: [
            _smallest(
                first
                for first, other in zip(*each, strict=True)
                if first is not None and (other is None or first < other)
            )
            for each in zip(after[method], without[method], strict=True)
        ]
        for method in after
    }


def _smallest(delays: Iterable[Delay]) -> Delay:
    return min((delay for delay in delays if delay is not None), default=None)


def _earliest(delays: Delays) -> list[Delay]:
    """Return the delay of the first explanation, in each run."""
    explained = [each for method, each in delays.items() if method != "loss"]
    return [_smallest(each) for each in zip(*explained, strict=True)]


def _middle(delays: Sequence[Delay]) -> float:
    """Return the median, with what is not found as found never."""
    return median(math.inf if delay is None else delay for delay in delays)


def _cell(delays: Sequence[Delay]) -> str:
    known = [delay for delay in delays if delay is not None]
    return f"{median(known):,.0f} ({len(known)} of {len(delays)})" if known else "–"


def _titles(names: Sequence[str]) -> str:
    return "; ".join(DRIFTS[name].title for name in names) or "none"


def _setting(variant: Variant) -> list[str]:
    """Return the cells of a setting; what is the default of a method is bold."""
    mark = "**" if variant in _defaults().values() else ""
    _, delta, grace, smallest = variant
    return [f"{mark}{variant.signal}{mark}", f"{delta:g}", f"{grace:,}", str(smallest)]


def _default_table(found: Found) -> str:
    rows = []
    for name, scenario in DRIFTS.items():
        delays, without = _delays(found, DEFAULT, name), _without(found, DEFAULT, name)
        rows += [
            [scenario.title, *(_cell(delays[method]) for method in NAMES)],
            [
                "– without the drift",
                *(_cell([*map(_smallest, without[method])]) for method in NAMES),
            ],
        ]
    return table(["stream", *NAMES.values()], rows)


def _rate_table(found: Found, kind: str, records: int) -> str:
    rows = []
    for variant in VARIANTS:
        rates = _rates(found, kind, variant.key, records)
        cells = [" / ".join(f"{rate:.1f}" for rate in each.values()) for each in rates.values()]
        rows.append([*_setting(variant), *cells])
    return table([*HEAD, *(scenario.title for scenario in STATIONARY.values())], rows)


def _delay_table(found: Found) -> str:
    rows = []
    for name, scenario in DRIFTS.items():
        for variant in VARIANTS:
            delays = _delays(found, variant.key, name)
            cells = [_cell(delays[method]) if method in delays else "" for method in NAMES]
            rows.append([scenario.title, *_setting(variant), *cells])
    return table(["stream", *HEAD, *NAMES.values()], rows)


def _draw(found: Found, figure: Figure) -> None:
    """Draw what a setting costs: false alarms against the delay after a sudden drift."""
    figure.set_size_inches(6, 3.5)
    axes = figure.subplots()
    grace, smallest = DriftSettings().grace_period, ADWIN_DEFAULTS["min_window_length"]
    for method, color in zip(NAMES, ("C0", "C1", "C2", "C7"), strict=True):
        for signal, marker in zip(SIGNALS, "o^", strict=True):
            points = []
            for delta in DELTAS:
                key = Variant(signal, delta, grace, smallest).key
                delays = _delays(found, key, "sudden").get(method, [])
                known = [delay for delay in delays if delay is not None]
                rates = _rates(found, "frozen", key, FROZEN)
                if known:
                    points.append((median(known), max(rate[method] for rate in rates.values())))
            if points:
                label = f"{NAMES[method]}, {signal}"
                axes.plot(*zip(*points, strict=True), marker + "-", color=color, ms=4, label=label)
    axes.axhline(1.0, color="#999999", lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_xlabel("median delay after a sudden function drift of agrawal (records)")
    axes.set_ylabel("false alarms of a feature in\n100,000 records, worst stream")
    if axes.lines[1:]:
        axes.legend(fontsize=7)


RUNS = 8
