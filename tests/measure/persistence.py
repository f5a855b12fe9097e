"""Measures whether confirmed changes of real streams last, and what carries those just noticed.

``python -m tests.measure.persistence`` runs the whole pipeline with its defaults on the weather and
on elec2, in their order, with four models each. DATA names the folder of both files, by default
../shared/data.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
import orjson
import typer

from fluxplain.config import Config
from fluxplain.drift.agreement import agreement
from fluxplain.local import LocalPipeline
from fluxplain.schemas.change import Change
from fluxplain.schemas.explanation import Explanation
from tests.kit.command import Clock
from tests.kit.support import singles
from tests.measure.experiments import drift_streams
from tests.measure.experiments.streams import Record, elec2, weather

STREAMS = {"weather": weather, "elec2": elec2}

MODELS = {
    "forest of five": "forest_of_five",
    "adaptive tree": "adaptive_tree",
    "logistic regression": "logistic",
    "naive Bayes": "bayes",
}

LATER = 2_000
"""Observations in which the step should persist: from the notice on, and from the outcome on."""

LASTS = 0.8
"""Share of the stated step that should persist."""

CARRIERS = 3
"""Observations that carry most of a change."""

Key = tuple[str, str | None, str]
"""Method, feature and signal."""

Numbers = Mapping[Key, Mapping[int, float]]
"""What is watched, by offset."""


class Found(NamedTuple):
    """The changes of explanations in one run.

    Attributes
    ----------
    noticed, confirmed
        How many.
    since_notice, since_outcome
        Of each confirmed change with as many later observations, the share of the stated step that
        is left in their mean.
    carried
        Of each noticed change, the share of the step that is due to three observations.
    """

    noticed: int
    confirmed: int
    since_notice: Sequence[float]
    since_outcome: Sequence[float]
    carried: Sequence[float]


def persistence(
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 2,
) -> None:
    """Print how many changes are noticed and confirmed, and how much of each step persists."""
    clock, cases = Clock(), [*product(STREAMS, MODELS)]
    print(
        f"| stream | model | noticed | confirmed | {LASTS:.0%} of the step persists over the "
        f"{LATER:,} observations after the notice | after the outcome | share of the three "
        "largest: median, most |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    everything = []
    with ProcessPoolExecutor(processes) as pool:
        for names, found in zip(cases, pool.map(_run, cases), strict=True):
            print(_line(*names, found), flush=True)
            everything.append(found)
    print(_line("all", "", _together(everything)))
    clock.say(f"{len(cases)} runs")


def _together(several: Sequence[Found]) -> Found:
    return Found(
        sum(each.noticed for each in several),
        sum(each.confirmed for each in several),
        [share for each in several for share in each.since_notice],
        [share for each in several for share in each.since_outcome],
        [share for each in several for share in each.carried],
    )


def _line(stream: str, model: str, found: Found) -> str:
    lasting = [
        f"{sum(share >= LASTS for share in shares)} of {len(shares)}"
        for shares in (found.since_notice, found.since_outcome)
    ]
    carried = f"{np.median(found.carried):.0%}, {max(found.carried):.0%}" if found.carried else "–"
    return (
        f"| {stream} | {model} | {found.noticed} | {found.confirmed} | {' | '.join(lasting)} | "
        f"{carried} |"
    )


def _run(case: tuple[str, str]) -> Found:
    stream, model = case
    records = STREAMS[stream]()
    config = Config(
        features=dict.fromkeys(records[0][0], "numeric"),
        label={"type": "integer"},
        model={"factory": f"{drift_streams.__name__}:{MODELS[model]}"},
    )
    return found_in(*_published(config, records))


def _published(config: Config, records: Sequence[Record]) -> tuple[Numbers, Sequence[Change]]:
    numbers: dict[Key, dict[int, float]] = defaultdict(dict)
    changes = []
    for record in singles(LocalPipeline(config).run(_values(records))):
        if isinstance(record, Explanation):
            _note(record, numbers)
        elif isinstance(record, Change) and record.kind == "drift" and record.method != "loss":
            changes.append(record)
    return numbers, changes


def _values(records: Sequence[Record]) -> Iterator[bytes]:
    return (orjson.dumps({"x": x, "y": y}) for x, y in records)


def _note(record: Explanation, numbers: dict[Key, dict[int, float]]) -> None:
    of = {"increment": record.increments, "trend": [*map(agreement, record.trends or ())]}
    for signal, several in of.items():
        key = record.method, record.feature, signal
        numbers[key].update(zip(record.seqs, several, strict=bool(several)))


def found_in(numbers: Numbers, changes: Sequence[Change]) -> Found:
    """Return what became of the changes; those of which nothing is known before have no step."""
    changes = [each for each in changes if each.before is not None]
    noticed = [each for each in changes if each.status == "noticed"]
    confirmed = [each for each in changes if each.status == "confirmed"]
    return Found(
        len(noticed),
        len(confirmed),
        _persisting(numbers, [(each, each.seq) for each in confirmed]),
        _persisting(numbers, [(each, each.status_seq or 0) for each in confirmed]),
        [_carried(numbers, each) for each in noticed],
    )


def _of(numbers: Numbers, change: Change, first: int, last: int) -> Any:
    series = numbers[change.method or "", change.feature, change.signal or ""]
    return np.array([number for seq, number in series.items() if first <= seq <= last])


def _persisting(numbers: Numbers, since: Sequence[tuple[Change, int]]) -> list[float]:
    """Return which share of each step is left after an offset, where enough observations follow."""
    shares = []
    for change, seq in since:
        assert change.before is not None
        assert change.after is not None
        later = _of(numbers, change, seq + 1, seq + LATER)
        if len(later) == LATER:
            shares.append((later.mean() - change.before) / (change.after - change.before))
    return shares


def _carried(numbers: Numbers, change: Change) -> float:
    """Return which share of the step since the change is due to its three largest numbers."""
    assert change.after_seq is not None
    assert change.before is not None
    off = _of(numbers, change, change.after_seq, change.seq) - change.before
    largest = np.sort(off * np.sign(off.sum()))[-CARRIERS:]
    return float(largest.sum() / abs(off.sum()))


if __name__ == "__main__":
    typer.run(persistence)
