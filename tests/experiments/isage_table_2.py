"""iSAGE, Table 2: iSAGE and sliding-window SAGE against the values of frozen forests.

The paper's stream switches between frozen forests, each of a concept of the Agrawal generator, so
that the values that an explanation should have are known at each record. The error at a record is
Σ_j (value - truth)² (MSE) or Σ_j |value - truth| (MAE) over the features; so the paper must have
summed, since a mean of .372 absolute has a mean square of .138 at least, and .057 is printed.

What the paper does not print: the stream has 17,000 records, of which the first 2,000, the
largest window, are not counted. A switch goes to each of the other five concepts alike; the six are
functions 1 to 6 (River's 0 to 5). The truth is of 10,000 new records.

Section 0.D.3.2 says m = 1 for both, the caption of Figure 9 m = 4; the library's default is 5.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pipeline.explain import IncrementalSAGE, explain_together
from tests.experiments.array_sage import Floats, Places, array_sage, interventional, random_draws
from tests.experiments.experiment import Line, Report, Task
from tests.experiments.forests import (
    CONCEPTS,
    Forests,
    as_arrays,
    concept_records,
    switching_stream,
    trained_forests,
)
from tests.experiments.streams import Record

SWITCHES = {"low": 0.0001, "middle": 0.0002, "high": 0.0005}
WINDOWS = (100, 500, 1000, 2000)
LENGTH = 17_000
SETTLE = max(WINDOWS)
STRIDES = 20
TRUTH_RECORDS, TRUTH_SAMPLES = 10_000, 10
SAMPLES = (1, 4, 5)
WINDOW_SAMPLES = (1, 5)
DEFAULT = 5

PAPER: dict[str, dict[str, dict[str, tuple[float, ...]]]] = {
    "MSE": {
        "iSAGE": {
            "low": (0.057, 0.015, 0.013, 0.015),
            "middle": (0.103, 0.027, 0.027, 0.034),
            "high": (0.094, 0.034, 0.038, 0.051),
        },
        "sliding window": {
            "low": (0.066, 0.049, 0.078, 0.139),
            "middle": (0.139, 0.191, 0.320, 0.582),
            "high": (0.151, 0.248, 0.420, 0.690),
        },
    },
    "MAE": {
        "iSAGE": {
            "low": (0.372, 0.197, 0.164, 0.153),
            "middle": (0.459, 0.254, 0.225, 0.226),
            "high": (0.454, 0.284, 0.275, 0.305),
        },
        "sliding window": {
            "low": (0.384, 0.227, 0.219, 0.261),
            "middle": (0.492, 0.335, 0.361, 0.480),
            "high": (0.505, 0.452, 0.575, 0.811),
        },
    },
}
"""Error → method → frequency → windows; the sliding window at 20 times the cost."""

Errors = dict[str, dict[str, list[float]]]
"""Error → method → windows."""


def run(*, seed: int, length: int) -> dict[str, Errors]:
    """Return the errors of one run.

    Parameters
    ----------
    seed
        Of the forests, their training records, and the streams.
    length
        Records of each stream.

    Returns
    -------
    Frequency → errors; under ``"floor"`` what m draws alone leave, with any smoothing, in place
    of the windows.
    """
    forests = trained_forests(seed)
    rng = np.random.default_rng(seed)
    truth, floor = ground_truth(forests, rng, seed)
    errors = {"floor": floor}
    for place, (frequency, probability) in enumerate(SWITCHES.items()):
        records, concepts = switching_stream(probability, length, len(SWITCHES) * seed + place)
        wanted = truth[concepts]
        estimates = incremental_estimates(forests, records, concepts, seed)
        for m in WINDOW_SAMPLES:
            estimates[f"sliding window, m = {m}"] = [
                window_estimates(forests, records, concepts, window, m, rng) for window in WINDOWS
            ]
        errors[frequency] = {
            "MSE": {method: [_mse(e - wanted) for e in es] for method, es in estimates.items()},
            "MAE": {method: [_mae(e - wanted) for e in es] for method, es in estimates.items()},
        }
    return errors


def _mse(differences: Floats) -> float:
    return float((differences[SETTLE:] ** 2).sum(axis=1).mean())


def _mae(differences: Floats) -> float:
    return float(np.abs(differences[SETTLE:]).sum(axis=1).mean())


def ground_truth(forests: Forests, rng: np.random.Generator, seed: int) -> tuple[Floats, Errors]:
    """Return the SAGE values of each concept's forest, and how far those of m draws are off.

    The m draws are the first of the ten, so that the difference has little noise.
    """
    truth: list[Floats] = []
    off: dict[int, list[Floats]] = {m: [] for m in SAMPLES}
    for concept in range(CONCEPTS):
        # a seed that no other stream has
        records = concept_records(concept, 10**6 + CONCEPTS * seed + concept, TRUTH_RECORDS)
        features, xs, ys = as_arrays(records)
        forests.used = concept
        ask = partial(forests.probabilities, features)
        orders, chosen = random_draws(rng, len(xs), len(features), TRUTH_SAMPLES)
        hidden = interventional(xs, chosen)
        truth.append(array_sage(ask, xs, ys, orders, hidden).mean(axis=0))
        for m in SAMPLES:
            values = array_sage(ask, xs, ys, orders, hidden[:, :, :m]).mean(axis=0)
            off[m].append(values - truth[-1])
    floor: Errors = {
        "MSE": {
            f"m = {m}": [float((np.array(each) ** 2).sum() / CONCEPTS)] for m, each in off.items()
        },
        "MAE": {f"m = {m}": [float(np.abs(each).sum() / CONCEPTS)] for m, each in off.items()},
    }
    return np.array(truth), floor


def incremental_estimates(
    forests: Forests, records: Sequence[Record], concepts: Places, seed: int
) -> dict[str, list[Floats]]:
    """Return iSAGE's values at each record: method → windows, each of shape (records, features)."""
    explainers = {
        (m, window): IncrementalSAGE(
            forests,
            list(records[0][0]),
            loss="cross_entropy",
            alpha=2.0 / (window + 1.0),
            inner_samples=m,
            seed=seed,
            evaluator=forests,
        )
        for m in SAMPLES
        for window in WINDOWS
    }
    values = np.empty((len(explainers), len(records), len(records[0][0])))
    for t, (x, y) in enumerate(records):
        forests.used = concepts[t]
        for i, each in enumerate(explain_together(list(explainers.values()), x, y)):
            values[i, t] = list(each.values())
    by_samples = values.reshape(len(SAMPLES), len(WINDOWS), *values.shape[1:])
    return {f"iSAGE, m = {m}": list(each) for m, each in zip(SAMPLES, by_samples, strict=True)}


def window_estimates(
    forests: Forests,
    records: Sequence[Record],
    concepts: Places,
    window: int,
    m: int,
    rng: np.random.Generator,
) -> Floats:
    """Return sliding-window SAGE's values at each record, shape (records, features).

    They are those of ``SlidingWindowSAGE``: of the last records, by the forest now in use, and
    recomputed after each twentieth of the window. Before it is full they are 0.
    """
    features, xs, ys = as_arrays(records)
    ask = partial(forests.probabilities, features)
    values = np.zeros_like(xs)
    for end in range(window, len(xs) + 1, window // STRIDES):
        forests.used = concepts[end - 1]
        last = slice(end - window, end)
        orders, chosen = random_draws(rng, window, len(features), m)
        hidden = interventional(xs[last], chosen)
        values[end - 1 :] = array_sage(ask, xs[last], ys[last], orders, hidden).mean(axis=0)
    return values


class Table2:
    """The experiment; see :class:`~tests.experiments.experiment.Experiment`."""

    name = "isage-table-2"
    title = "iSAGE and sliding-window SAGE against known values, of forests that are switched"
    source = "iSAGE, Table 2"
    runs = 20

    def tasks(self, runs: int) -> list[Task]:
        """Return one task a run."""
        return [Task(f"run {r}", run, {"seed": r, "length": LENGTH}) for r in range(runs)]

    def report(self, results: Mapping[str, Any]) -> Report:
        """Return means over the runs beside the printed ones."""
        means = {
            frequency: mean_errors([each[frequency] for each in results.values()])
            for frequency in ("floor", *SWITCHES)
        }
        lines = [
            Line(
                f"MSE of iSAGE (m = {DEFAULT}), {frequency}, windows 100, 500, 1,000, 2,000",
                _numbers(means[frequency]["MSE"][f"iSAGE, m = {DEFAULT}"]),
                _numbers(PAPER["MSE"]["iSAGE"][frequency]),
            )
            for frequency in SWITCHES
        ]
        below = _count_below(means, f"iSAGE, m = {DEFAULT}", f"sliding window, m = {DEFAULT}")
        lines.append(Line("cells in which iSAGE is below sliding-window SAGE", f"{below}", "12"))
        return Report(lines, _table(means, results), _sentence(means), partial(_draw, means))


def mean_errors(runs: Sequence[Errors]) -> Errors:
    """Return the mean of each figure over runs."""
    return {
        error: {
            method: np.mean([each[error][method] for each in runs], axis=0).tolist()
            for method in runs[0][error]
        }
        for error in runs[0]
    }


def _count_below(means: Mapping[str, Errors], method: str, other: str) -> int:
    return sum(
        ours < theirs
        for frequency in SWITCHES
        for ours, theirs in zip(
            means[frequency]["MSE"][method], means[frequency]["MSE"][other], strict=True
        )
    )


def _count_reached(means: Mapping[str, Errors], m: int) -> int:
    return sum(
        round(ours, 3) <= printed
        for frequency in SWITCHES
        for ours, printed in zip(
            means[frequency]["MSE"][f"iSAGE, m = {m}"],
            PAPER["MSE"]["iSAGE"][frequency],
            strict=True,
        )
    )


def _sentence(means: Mapping[str, Errors]) -> str:
    reached = {m: _count_reached(means, m) for m in SAMPLES}
    below = {
        m: _count_below(means, f"iSAGE, m = {m}", f"sliding window, m = {m}")
        for m in WINDOW_SAMPLES
    }
    floor = {m: means["floor"]["MSE"][f"m = {m}"][0] for m in SAMPLES}
    verdict = "Better" if reached[DEFAULT] == 12 else f"Better in {reached[DEFAULT]} of 12 cells"
    return (
        f"{verdict} with the library's m = {DEFAULT} (MSE at or below the printed one in "
        f"{reached[DEFAULT]} cells, below sliding-window SAGE in {below[DEFAULT]}), and far worse "
        f"with m = 1, as the text has it ({reached[1]} cells; below sliding-window SAGE in "
        f"{below[1]}): a single draw often gives the label no probability, and the loss is 34.5, "
        f"so that no smoothing comes below the MSE of {floor[1]:.2f} between m = 1 and the truth, "
        f"which takes ten draws (m = 4: {floor[4]:.3f}, m = 5: {floor[5]:.3f}). The printed errors "
        f"lie below that; the caption of the paper's Figure 9 says m = 4, with which ours reaches "
        f"{reached[4]} cells."
    )


def _table(means: Mapping[str, Errors], results: Mapping[str, Any]) -> str:
    head = [f"{frequency} {window:,}" for frequency in SWITCHES for window in WINDOWS]
    text = ""
    for error in PAPER:
        rows: dict[str, list[Sequence[float]]] = {}
        for method in means["low"][error]:
            kind = method.split(",")[0]
            rows[f"{method}, ours"] = [means[f][error][method] for f in SWITCHES]
            if method.endswith("m = 1"):
                rows[f"{method}, printed"] = [PAPER[error][kind][f] for f in SWITCHES]
        text += _markdown([error, *head], rows)
    text += (
        f"Standard deviation over the runs of iSAGE's MSE with m = {DEFAULT}: "
        + ", ".join(
            f"{frequency} {_numbers(_deviations(results, frequency))}" for frequency in SWITCHES
        )
        + ".\n"
    )
    return text


def _deviations(results: Mapping[str, Any], frequency: str) -> list[float]:
    method = f"iSAGE, m = {DEFAULT}"
    each = [run[frequency]["MSE"][method] for run in results.values()]
    deviations: list[float] = np.std(each, axis=0).tolist()
    return deviations


def _markdown(head: Sequence[str], rows: Mapping[str, list[Sequence[float]]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    lines += [
        f"| {name} | " + " | ".join(f"{v:.3f}" for cells in row for v in cells) + " |"
        for name, row in rows.items()
    ]
    return "\n".join(lines) + "\n\n"


def _numbers(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.3f}" for value in values)


def _draw(means: Mapping[str, Errors], figure: Figure) -> None:
    figure.set_size_inches(10, 4)
    panels = figure.subplots(1, len(SWITCHES), sharey=True)
    for axes, (frequency, probability) in zip(panels, SWITCHES.items(), strict=True):
        for kind, colour in (("iSAGE", "C0"), ("sliding window", "C1")):
            for m, style in ((DEFAULT, "-"), (1, ":")):
                values = means[frequency]["MSE"][f"{kind}, m = {m}"]
                axes.plot(WINDOWS, values, style, color=colour, label=f"{kind}, m = {m}")
            printed = PAPER["MSE"][kind][frequency]
            axes.plot(WINDOWS, printed, "x", color=colour, label=f"{kind}, printed")
        axes.set(xscale="log", yscale="log", title=f"{frequency}: {probability} switches a record")
        axes.set_xticks(WINDOWS, [str(window) for window in WINDOWS])
        axes.minorticks_off()
        axes.set_xlabel("window")
    panels[0].set_ylabel("MSE")
    panels[0].legend(fontsize="small")


EXPERIMENT = Table2()
