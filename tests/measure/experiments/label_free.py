"""Our own, label-free: which method sees a sudden drift first if labels come 2,000 records late.

A model learns, and is explained by all four methods with their defaults. Only iPDP and iSHAP need
no label. KS watches the inputs of the same run. As in the table of drifts, an alarm counts only if
the same feature and method alarm later, or never, without the drift.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from deploy.docs.words import table
from tests.measure.experiments import drift_streams as streams
from tests.measure.experiments.drift_windows import alarms, ks
from tests.measure.experiments.experiment import Report, Results, Task
from tests.measure.experiments.streams import Record
from tests.measure.late_labels import Records, default_alarms, signals

WATCHED = {
    "ishap": "iSHAP",
    "ipdp": "iPDP",
    "ipfi": "iPFI",
    "isage": "iSAGE",
    "loss": "loss",
    "ks": "KS, inputs",
}

LABELLED = ("ipfi", "isage", "loss")
"""Methods that wait for labels."""

PRETRAINING = 6_000
"""Records that the model has learned before the run, with their labels at once."""

BEFORE, AFTER = 3_000, 3_000
"""Observations before the drift and from there on."""

DELAY = 2_000
"""Observations after its own one at which a label comes."""

FIRST_SEED = 411

RUNS = 10


@dataclass(frozen=True)
class Case:
    """A stream with a drift at a record, and the same without; and its model.

    A model that has learned the stream ``successor`` takes over at the drift, if there is one.
    """

    title: str
    stream: Callable[[int, int], streams.Stream]
    control: Callable[[int, int], streams.Stream]
    model: Callable[[int, int], Any]
    categorical: tuple[str, ...] = ()
    successor: Callable[[int], streams.Stream] | None = None


def _agrawal(seed: int, at: int) -> streams.Stream:
    return streams.agrawal(seed)


def _relabelled(seed: int, at: int) -> streams.Stream:
    """Return agrawal 1; from there on the labels are those of function 2, of the same inputs."""
    return chain(islice(_agrawal(seed, at), at), islice(streams.agrawal(seed, 2), at, None))


CASES = {
    "rich": Case(
        "agrawal: only salaries above 90,000 from there on",
        streams.rich,
        _agrawal,
        streams.adaptive_tree,
        streams.AGRAWAL_CATEGORICAL,
    ),
    "misread": Case(
        "weather (real): visibility and wind speed exchanged",
        streams.misread,
        streams.bellevue,
        streams.adaptive_tree,
    ),
    "takeover": Case(
        "SINE: a model that learned another concept takes over, the stream stays",
        streams.still(streams.sine),
        streams.still(streams.sine),
        streams.adaptive_tree,
        successor=lambda seed: streams.sine(seed + 1, 1),
    ),
    "labels": Case(
        "agrawal: another function, so that only the labels change",
        _relabelled,
        _agrawal,
        streams.adaptive_tree,
        streams.AGRAWAL_CATEGORICAL,
    ),
}


def tasks(runs: int) -> list[Task]:
    """Return one task for each drift of each run."""
    sizes = {"pretraining": PRETRAINING, "before": BEFORE, "after": AFTER, "delay": DELAY}
    return [
        Task(f"{name}/run {i + 1}", run, {"name": name, **sizes, "seed": FIRST_SEED + i})
        for i in range(runs)
        for name in CASES
    ]


def run(
    *, name: str, pretraining: int, before: int, after: int, delay: int, seed: int
) -> dict[str, tuple[int, int | None]]:
    """Return method → alarms before the drift, and observations from there to the first later one.

    Delays count from 1: an alarm at the first observation after the drift has delay 1.
    """
    case, at = CASES[name], pretraining + before
    found = []
    for drifts in (True, False):
        stream = (case.stream if drifts else case.control)(seed, at)
        model = _trained(case.model(seed, at), islice(stream, pretraining))
        successors = {}
        if drifts and case.successor is not None:
            other = islice(case.successor(seed), pretraining)
            successors[before] = _trained(case.model(seed, at), other)
        records = [*islice(stream, before + after)]
        watched = signals(
            model,
            records,
            delay=delay,
            categorical=case.categorical,
            successors=successors,
            seed=seed,
        )
        found.append(default_alarms(watched) | {"ks": _input_alarms(records)})
    return {watched: _compared(found[0][watched], found[1][watched], before) for watched in WATCHED}


def _trained(model: Any, records: Iterable[Record]) -> Any:
    for x, y in records:
        model.learn_one(x, y)
    return model


def _input_alarms(records: Records) -> dict[str, list[int]]:
    return alarms(ks, {f: np.array([float(x[f]) for x, _ in records]) for f in records[0][0]})


def _compared(
    drifting: Mapping[str, list[int]], still: Mapping[str, list[int]], before: int
) -> tuple[int, int | None]:
    """Return the alarms before the drift, and after how many observations the first is its own."""
    delays = []
    for feature, places in drifting.items():
        first, without = (
            next((t for t in each if t >= before), None) for each in (places, still[feature])
        )
        if first is not None and (without is None or first < without):
            delays.append(first - before + 1)
    return sum(t < before for places in drifting.values() for t in places), min(
        delays, default=None
    )


def report(results: Results) -> Report:
    found = _frame(results)
    runs = found.run.nunique()
    tables = [
        "Observations from the drift to the first alarm: median (quartiles) and in how many of "
        f"{runs} runs there is one within {AFTER:,}; then the runs in which iSHAP is before all "
        "methods that need labels, and before iPDP:",
        _delays(found),
        f"Alarms before the drift, in {runs} runs of {BEFORE:,} observations; methods that need "
        f"labels have explained {BEFORE - DELAY:,} of these. Not all are false, since the models "
        "learn:",
        _false(found),
    ]
    return Report("\n\n".join(tables), _sentence(found, runs), lambda figure: _draw(found, figure))


def _frame(results: Results) -> Any:
    rows = [
        [*key.split("/"), watched, before, first]
        for key, result in results.items()
        for watched, (before, first) in result.items()
    ]
    columns = ["name", "run", "watched", "before", "delay"]
    return pd.DataFrame(rows, columns=columns).astype({"delay": float})


def _of(found: Any, name: str) -> Any:
    """Return the delays of one drift: a row for each run, infinite if there is no alarm."""
    of_drift = found[found.name == name]
    return of_drift.pivot(index="run", columns="watched", values="delay").fillna(np.inf)


def _is_first(delays: Any) -> Any:
    return delays.ishap < delays[[*LABELLED]].min(axis=1)


def _delays(found: Any) -> str:
    rows = []
    for name, case in CASES.items():
        delays = _of(found, name)
        runs = len(delays)
        rows.append(
            [
                case.title,
                *(_cell(delays[watched]) for watched in WATCHED),
                f"{_is_first(delays).sum()} of {runs}",
                f"{(delays.ishap < delays.ipdp).sum()} of {runs}",
            ]
        )
    return table(["drift", *WATCHED.values(), "before labels", "before iPDP"], rows)


def _cell(delays: Any) -> str:
    is_seen = np.isfinite(delays)
    if not is_seen.any():
        return "never"
    low, middle, high = (
        f"{each:,.0f}" if np.isfinite(each) else "never"
        for each in np.quantile(delays, (0.25, 0.5, 0.75), method="nearest")
    )
    return f"{middle} ({low}–{high}); {is_seen.sum()} of {len(delays)}"


def _false(found: Any) -> str:
    counts = found.groupby(["name", "watched"])["before"].sum()
    rows = [
        [case.title, *(str(counts[name, watched]) for watched in WATCHED)]
        for name, case in CASES.items()
    ]
    return table(["drift", *WATCHED.values()], rows)


def _sentence(found: Any, runs: int) -> str:
    delays = {name: _of(found, name) for name in CASES}
    first = {name: int(_is_first(each).sum()) for name, each in delays.items()}
    earlier = {
        watched: _counted({n: int((d[watched] < d.ishap).sum()) for n, d in delays.items()})
        for watched in ("ipdp", "ks")
    }
    return (
        f"Labels come {DELAY:,} observations late, and the model learns as late. In runs of "
        f"{runs}, iSHAP alarms before iPFI, iSAGE and the loss for {_counted(first)}. Where only "
        "the labels change, nothing can be seen before they come, and iSHAP has no advantage: the "
        "model must learn first. Where another model takes over, those that need labels do not "
        "wait for those of the drift: the labels that come then, of older observations, already "
        "judge the new model. iSHAP is not alone without labels: iPDP is earlier for "
        f"{earlier['ipdp']}; KS on the inputs for {earlier['ks']}. The paper prints no such "
        "figures."
    )


def _counted(runs: Mapping[str, int]) -> str:
    return ", ".join(f"{CASES[name].title} ({count})" for name, count in runs.items())


def _draw(found: Any, figure: Figure) -> None:
    """Draw the delay of each run."""
    figure.set_size_inches(7, 4)
    axes = figure.subplots()
    for place, (watched, title) in enumerate(WATCHED.items()):
        rows = [(_of(found, name)[watched], i) for i, name in enumerate(CASES)]
        delays = np.concatenate([each.clip(upper=AFTER) for each, _ in rows])
        heights = np.concatenate([np.full(len(each), i + 0.1 * (place - 2)) for each, i in rows])
        axes.plot(delays, heights, "osv^<>"[place], alpha=0.5, ms=4, label=title)
    axes.axvline(DELAY, color="grey", lw=0.8)
    axes.set_yticks(range(len(CASES)), [each.title for each in CASES.values()], fontsize=6)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"delay (observations; {AFTER:,}: not seen)")
    figure.legend(loc="outside lower center", ncols=6, fontsize=7)
