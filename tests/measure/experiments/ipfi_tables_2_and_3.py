"""iPFI, Tables 2 and 3: error of iPFI against interval PFI, the model learning a drifting stream.

At the end of each interval of 2,000 records iPFI is compared with the interval PFI, the batch PFI
of that interval by the model at its end; the figures are quartiles of these errors. One run is one
stream, as in the paper.

What the text leaves open is as in the authors' published scripts: zero-one loss, reservoirs of
1,000 and explanations from the second record on, sudden is a width of 1 % of the stream and gradual
one of 20 %, and elec2 is shuffled, so that the drift is the only one. Their second stream starts at
its own first record when the drift comes; ours goes on in the same place.

The scripts do not say which functions of agrawal make fu. 2 and fu. 3. fu. 2 goes from River's
function 5 to 6, which use the features that the paper's figures highlight. For fu. 3 three pairs
are run, and the importances that the authors published for the end of their runs
(``result_summary.csv``) tell which one is meant: 8 to 1 is nearest.

One stream has few intervals, so each median is uncertain. Where the authors' file has the values at
the end of a run (of elec2 for five streams), the errors at that place are compared, too.

As in the scripts, and against the talk, the model learns a record before iPFI explains it. The
interval PFI is of records that the model knows, so iPFI must be too: for unseen ones importances
are others, which no smoothing brings together.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from deploy.docs.words import table
from tests.measure.experiments.errors import (
    difference_interval,
    median_and_iqr,
    median_interval,
    paper_rows,
    paper_table,
    printed,
    span,
    thousandths,
)
from tests.measure.experiments.experiment import Report, Results, Task
from tests.measure.experiments.ipfi_drift_runs import DRAWN_EVERY, STREAMS, cell_key, follow

PARTS = ("whole", "before", "after")

Quartiles = tuple[float, float]
"""Median and IQR."""

Cell = tuple[str, str, float]
"""Stream, sampling and α."""

SURE = 2.0
"""Standard errors of a difference that is not by chance."""

FAST = 0.01
"""The larger α."""

PAPER = {
    (stream, sampling, float(alpha)): parts
    for (stream, sampling, alpha), parts in paper_table("ipfi-table-2").items()
}
"""Table 2 without the data sets that are not here."""

ENDS: dict[tuple[str, str, float], list[float]] = {}
"""The same → the error at the end of each stream that the authors published runs of, from the mean
of ten runs."""
for _stream, _sampling, _alpha, _, _error in paper_rows("ipfi-table-2-ends"):
    ENDS.setdefault((_stream, _sampling, float(_alpha)), []).append(float(_error))

TABLE_3 = {
    "B, agrawal function drift": ("agrawal fu. 1", "geometric", 0.001),
    "B, agrawal feature drift": ("agrawal fe. 1", "geometric", 0.001),
    "C, elec2 feature drift, uniform": ("elec2 fe. 1", "uniform", 0.001),
    "C, elec2 feature drift, geometric": ("elec2 fe. 1", "geometric", 0.001),
}
"""Its rows, which are also in Table 2."""

PARAMETERS = {
    "trees": 50,
    "alphas": [0.001, 0.01],
    "reservoir_size": 1000,
    "realizations": 10,
    "interval": 2000,
}

FU_3 = "agrawal fu. 3"

FU_3_PAIRS = {
    "8 to 1": FU_3,
    "8 to 5": f"{FU_3} from 8 to 5",
    "3 to 4": f"{FU_3} from 3 to 4",
}
"""Functions before and after the drift that may be meant by fu. 3 → name of the stream."""

FU_3_END = {"salary": 0.292, "commission": 0.159, "age": 0.302, "loan": 0.007}
"""The authors' interval PFI at the end of fu. 3, mean of their runs."""

FIRST_SEEDS = {"elec2 fe. 1": 3}
"""Streams of the first run, where it is not one."""


def tasks(runs: int) -> list[Task]:
    return [
        Task(
            f"{name}/stream {seed}",
            follow,
            {"stream_parameters": parameters, **PARAMETERS, "seed": seed},
        )
        for name, parameters in STREAMS.items()
        for seed in range(1, max(runs, FIRST_SEEDS.get(name, 1)) + 1)
    ]


def report(results: Results) -> Report:
    errors = {cell: _errors(results, *cell) for cell in PAPER}
    ours = {cell: [median_and_iqr(part) for part in parts] for cell, parts in errors.items()}
    above = [
        (cell, part, distance)
        for cell, part, distance in _distances(errors)
        if round(ours[cell][PARTS.index(part)][0], 3) > PAPER[cell][PARTS.index(part)][0]
    ]
    surely = [cell for cell, _, distance in above if distance > SURE]
    total = len(PAPER) * len(PARTS)
    sentence = " ".join(
        [
            _table_3_sentence(errors, results),
            f"Of the {total} medians of Table 2, {len(above)} are above the printed ones, "
            f"{len(surely)} of them by more than two standard errors of the difference: that of a "
            "median of so few intervals is large, about 0.93 IQR / √n.",
            _noise_sentence(results, [cell[-1] for cell in surely]),
            _fu_3_sentence(results),
        ]
    )
    text = f"{_table_3(errors)}\n\n{_table(results)}"
    return Report(text, sentence, partial(_draw, results))


def _distances(
    errors: Mapping[Cell, Sequence[Sequence[float]]],
) -> Iterator[tuple[Cell, str, float]]:
    """Yield by how many standard errors each median is above the printed one."""
    for cell, parts in errors.items():
        for part, mine, paper in zip(PARTS, parts, PAPER[cell], strict=True):
            theirs = max(len(mine) // FIRST_SEEDS.get(cell[0], 1), 1)
            distance = _standard_errors(median_and_iqr(mine), paper, len(mine), theirs)
            yield cell, part, distance


def _standard_errors(ours: Quartiles, paper: Quartiles, n: int, of_paper: int) -> float:
    """Return by how many standard errors of the difference a median is above the printed one.

    Of n normal numbers with the quartiles Q1 and Q3, the median has the standard error
    1.253 / 1.349 (Q3 − Q1) / √n. The paper's are counted as the intervals of one stream.
    """
    std_error = 1.253 / 1.349 * np.hypot(ours[1] / np.sqrt(n), paper[1] / np.sqrt(of_paper))
    return float((ours[0] - paper[0]) / std_error) if std_error > 0.0 else 0.0


def _runs_of(results: Results, stream: str) -> list[Any]:
    return [result for key, result in results.items() if key.startswith(f"{stream}/")]


def _errors(
    results: Results, name: str, sampling: str, alpha: float, what: str = "errors"
) -> list[list[float]]:
    """Return the errors of the intervals of all runs, for each part of the stream."""
    runs, at = _runs_of(results, name), STREAMS[name]["at"]
    ends = np.concatenate([result["ends"] for result in runs])
    errors = np.concatenate([result[what][cell_key(sampling, alpha)] for result in runs])
    return [each.tolist() for each in (errors, errors[ends <= at], errors[ends > at])]


def _table(results: Results) -> str:
    head = ["stream", "streams", "accuracy", "sampling", "α"]
    head += [text for part in PARTS for text in (f"{part}: median (IQR)", "paper")]
    head += ["smoothing noise", "at the end: ours, median", "paper's runs"]
    rows = []
    for (name, sampling, alpha), papers in _with_all_pairs():
        cells = [median_and_iqr(part) for part in _errors(results, name, sampling, alpha)]
        figures = [printed(*each) for pair in zip(cells, papers, strict=True) for each in pair]
        runs, key = _runs_of(results, name), cell_key(sampling, alpha)
        accuracy = np.mean([result["accuracy"] for result in runs])
        noise = np.median([each for result in runs for each in result["noise"][key]])
        ends = thousandths(float(np.median([result["errors"][key][-1] for result in runs])))
        theirs = ENDS.get((name, sampling, alpha), [])
        their_ends = span(min(theirs), max(theirs)) if len(theirs) > 1 else ""
        their_ends = their_ends or "".join(map(thousandths, theirs)) or "–"
        row = [name, str(len(runs)), f"{accuracy:.1%}", sampling, str(alpha), *figures]
        rows.append([*row, thousandths(float(noise)), ends, their_ends])
    return table(head, rows)


def _with_all_pairs() -> Iterator[tuple[Cell, Sequence[Quartiles]]]:
    """Yield all rows of the paper, those of fu. 3 for each pair of functions."""
    for (name, sampling, alpha), papers in PAPER.items():
        for stream_name in FU_3_PAIRS.values() if name == FU_3 else (name,):
            yield (stream_name, sampling, alpha), papers


def _table_3(errors: Mapping[Cell, Sequence[Sequence[float]]]) -> str:
    head = ["Table 3", "part", "ours: median (IQR)", "its 95 % interval", "paper"]
    head += ["standard errors above it"]
    distances = {(cell, part): distance for cell, part, distance in _distances(errors)}
    rows = [
        [
            name,
            part,
            printed(*median_and_iqr(mine)),
            span(*median_interval(mine)),
            printed(*paper),
            f"{distances[cell, part]:.1f}",
        ]
        for name, cell in TABLE_3.items()
        for part, mine, paper in zip(PARTS, errors[cell], PAPER[cell], strict=True)
    ]
    return table(head, rows)


def _table_3_sentence(errors: Mapping[Cell, Sequence[Sequence[float]]], results: Results) -> str:
    names = {cell: name for name, cell in TABLE_3.items()}
    surely = [
        f"{names[cell]}, {part} ({thousandths(median_and_iqr(mine)[0])}, printed "
        f"{thousandths(PAPER[cell][PARTS.index(part)][0])})"
        for cell, part, distance in _distances({cell: errors[cell] for cell in names})
        if distance > SURE
        for mine in [errors[cell][PARTS.index(part)]]
    ]
    verdict = (
        f"worse, above the printed median by more than two standard errors are {'; '.join(surely)}"
        if surely
        else "equal, no median is above the printed one by more than two standard errors"
    )
    first, later = _first_and_later(results)
    elec2 = TABLE_3["C, elec2 feature drift, geometric"]
    ends = [result["errors"][cell_key(*elec2[1:])][-1] for result in _runs_of(results, elec2[0])]
    return (
        f"Table 3: {verdict}. elec2, geometric, ends with errors of "
        f"{thousandths(min(ends))} to {thousandths(max(ends))} in {len(ends)} streams, those of "
        f"the authors' {len(ENDS[elec2])} with {thousandths(min(ENDS[elec2]))} to "
        f"{thousandths(max(ENDS[elec2]))}; 95 % interval of the difference of the medians "
        f"{span(*difference_interval(ends, ENDS[elec2]))}. The smoothing alone leaves up to "
        f"{thousandths(_median_noise(results, elec2))} there. In the first interval after the "
        "start or the drift, when the smoothed value still holds what an older model did, the "
        f"median error of Table 3's rows is {thousandths(first)}, in the others "
        f"{thousandths(later)}."
    )


def _median_noise(results: Results, cell: Cell) -> float:
    return float(np.median(_errors(results, *cell, "noise")[0]))


def _noise_sentence(results: Results, surely: Sequence[float]) -> str:
    """Return what smoothing over few records explains of the rows with the larger α."""
    cells = [cell for cell in PAPER if cell[-1] == FAST]
    noise, all_errors = [], []
    below = 0
    for cell in cells:
        floors, errors = _errors(results, *cell, "noise"), _errors(results, *cell)
        noise += floors[0]
        all_errors += errors[0]
        pairs = zip(floors, PAPER[cell], strict=True)
        below += sum(paper[0] < float(np.median(floor)) for floor, paper in pairs)
    ends = [(result, cell) for cell in cells for result in _runs_of(results, cell[0])]
    ours = [result["errors"][cell_key(*cell[1:])][-1] for result, cell in ends]
    theirs = [error for cell in cells for error in ENDS.get(cell, [])]
    return (
        f"{surely.count(FAST)} of these have α = {FAST}, where about 200 records count: for an "
        "unchanging model and independent records the smoothing alone leaves an error of "
        f"{thousandths(float(np.median(noise)))}, ours are "
        f"{thousandths(float(np.median(all_errors)))} (medians), and {below} of the "
        f"{len(cells) * len(PARTS)} printed medians of α = {FAST} are "
        "below what it leaves in the same intervals, which one stream reaches by luck. At the end "
        f"of the streams ours are {thousandths(min(ours))} to {thousandths(max(ours))}, in the "
        f"authors' published runs {thousandths(min(theirs))} to {thousandths(max(theirs))}."
    )


def _fu_3_sentence(results: Results) -> str:
    offs = {}
    for pair, name in FU_3_PAIRS.items():
        result = _runs_of(results, name)[0]
        end = dict(zip(result["features"], result["interval"][-1], strict=True))
        offs[pair] = sum(abs(end.get(feature, 0.0) - value) for feature, value in FU_3_END.items())
    nearest = min(offs, key=lambda pair: offs[pair])
    others = ", ".join(f"{pair} by {thousandths(off)}" for pair, off in offs.items())
    return (
        f"fu. 3: the importances at the end of the authors' runs are nearest to those of the "
        f"functions {nearest} (off by the sum over salary, commission, age and loan: {others})."
    )


def _first_and_later(results: Results) -> tuple[float, float]:
    """Return the median error of Table 3's rows in first intervals, and in the others."""
    parts: dict[bool, list[float]] = {True: [], False: []}
    for name, sampling, alpha in TABLE_3.values():
        for result in _runs_of(results, name):
            at, ends = STREAMS[name]["at"], result["ends"]
            firsts = (ends[0], next(end for end in ends if end > at))
            for end, each in zip(ends, result["errors"][cell_key(sampling, alpha)], strict=True):
                parts[end in firsts].append(each)
    return median_and_iqr(parts[True])[0], median_and_iqr(parts[False])[0]


def _draw(results: Results, figure: Figure) -> None:
    """Draw the course of the first run of each stream of Table 3, as the paper's Figures 3, 4."""
    figure.set_size_inches(9, 6)
    panels = figure.subplots(2, 2, sharey=True)
    for axes, (title, (name, sampling, _)) in zip(panels.flat, TABLE_3.items(), strict=True):
        result = results[f"{name}/stream 1"]
        course, ends = np.array(result["ipfi"][sampling]), [0, *result["ends"]]
        intervals = np.array([result["interval"][0], *result["interval"]])
        order = np.argsort(-course.max(axis=0))
        for place, feature in enumerate(order):
            color = f"C{place}" if place < 4 else "0.7"
            label = result["features"][feature] if place < 4 else None
            times = DRAWN_EVERY * np.arange(1, len(course) + 1)
            axes.plot(times, course[:, feature], color=color, label=label, zorder=2 - place / 10)
            axes.plot(ends, intervals[:, feature], color=color, ls="--", drawstyle="steps-pre")
        axes.axvline(STREAMS[name]["at"], color="0.3", lw=0.8)
        axes.set_title(title, fontsize=9)
        axes.legend(fontsize=7, loc="upper left")
    figure.supxlabel("records; dashed: interval PFI", fontsize=9)
    figure.supylabel("iPFI, α = 0.001", fontsize=9)


RUNS = 1
