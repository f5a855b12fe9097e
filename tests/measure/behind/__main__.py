"""Runs the streams, and prints how many runs name what is behind a change."""

import argparse
import inspect
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import orjson

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Change, Record
from fluxplain.schemas.change import Condition, Region
from fluxplain.schemas.record import Value
from tests.measure.behind import corruptions, streams
from tests.measure.behind.corruptions import Corruption
from tests.measure.behind.streams import BEGIN, Stream
from tests.measure.kept import Kept

WITHIN = 2_000
"""Rows after the first corrupt one in which changes may be due to it."""

SAME = 200
"""Rows between a change with the corruption and the same one without, at most."""


def records_of(
    stream: Stream, seed: int, methods: Sequence[str], begin: int = 0, end: int | None = None
) -> list[Record]:
    """Return what is published about a stream, or its observations from ``begin`` to ``end``."""
    config = Config.model_validate(
        {
            "seed": seed,
            "features": stream.features,
            "label": {"type": stream.label},
            "model": stream.model,
            "explain": {"loss": stream.loss, "methods": list(methods)},
        }
    )
    rows = islice(stream.rows(seed), begin, end)
    return [*LocalPipeline(config).run(orjson.dumps({"x": x, "y": y}) for x, y in rows)]


def changes_of(stream: Stream, seed: int, methods: Sequence[str]) -> list[Change]:
    """Return the changes that began with the stream's or later."""
    return [
        each
        for each in records_of(stream, seed, methods)
        if isinstance(each, Change) and each.method and (each.after_seq or 0) > BEGIN - 200
    ]


def explained(stream: Stream, seed: int, methods: Sequence[str]) -> list[Change]:
    """Return those of explanations."""
    return [each for each in changes_of(stream, seed, methods) if each.feature]


def holds(condition: Condition, value: Value) -> bool:
    """Return whether a value meets a condition."""
    if condition.op in {"==", "!="}:
        return (value == condition.value) == (condition.op == "==")
    return (float(value) <= float(condition.value)) == (condition.op == "<=")


def overlap(region: Region, stream: Stream, seed: int) -> float:
    """Return how many observations are in both regions, of those in one of them."""
    both = either = 0
    for x, _ in stream.rows(seed + 1000):
        found = all(holds(each, x[each.feature]) for each in region.conditions)
        truth = stream.is_in_region is not None and stream.is_in_region(x)
        both, either = both + (found and truth), either + (found or truth)
    return both / max(either, 1)


def causes(runs: int, methods: Sequence[str], kept: Kept) -> None:
    """The cause that the largest change of each run names."""
    for name, stream in streams.CAUSES.items():
        kinds = Counter(
            kept.run(f"{name}/{seed}", partial(_cause, stream, seed, methods))
            for seed in range(runs)
        )
        kept.say(f"cause {name}: {dict(kinds)}")


def _cause(stream: Stream, seed: int, methods: Sequence[str]) -> str:
    known = [c for c in changes_of(stream, seed, methods) if c.cause]
    largest = max(known, key=lambda c: c.effect_size or 0.0, default=None)
    return "none" if largest is None or largest.cause is None else largest.cause.kind


def regions(runs: int, methods: Sequence[str], kept: Kept) -> None:
    """Runs that name a region, and those in which it overlaps with the truth.

    Columns: ``named``; ``lossy``, the loss or the errors changed; ``largest`` and ``best``, the
    overlap is at least 80 % for the largest change, for any.
    """
    for name, stream in streams.REGIONS.items():
        found = [
            kept.run(f"{name}/{seed}", partial(_region, stream, seed, methods))
            for seed in range(runs)
        ]
        n = {column: sum(each[column] for each in found) for column in found[0]}
        told = f", of the largest change {n['largest']} and of any {n['best']} with 80 % overlap"
        kept.say(
            f"region {name}: named in {n['named']} of {runs} runs"
            f"{told if stream.is_in_region else ''}; in {n['lossy']} the loss or the errors changed"
        )


def _region(stream: Stream, seed: int, methods: Sequence[str]) -> dict[str, bool]:
    changes = changes_of(stream, seed, methods)
    found = sorted((c for c in changes if c.region), key=lambda c: c.effect_size or 0.0)
    overlaps = [overlap(c.region, stream, seed) for c in found if c.region]
    return {
        "named": bool(found),
        "lossy": any(c.method == "loss" for c in changes),
        "largest": bool(overlaps) and overlaps[-1] >= 0.8,
        "best": max(overlaps, default=0.0) >= 0.8,
    }


class Verdict(NamedTuple):
    """Whether corrupt rows caused a change, and were named by the first one, or by a later one."""

    caused: bool
    by_first: bool
    by_any: bool


def corrupt(runs: int, methods: Sequence[str], kept: Kept) -> None:
    """How often changes within 2,000 rows name all corrupt rows; of 30, at least three.

    Changes that come without the corruption, too, do not count. Of these the last line says how
    many name a value as never seen before. Columns of a run: it caused a change, the first one
    named the rows, any did; and without a corruption: changes that name a value, changes.
    """
    kept.say(f"{'corruption':50} {'no change':>10} {'first names':>12} {'any names':>10}")

    @cache
    def usual(name: str, seed: int) -> list[Change]:
        return explained(_streams()[name], seed, methods)

    total = Counter[bool]()
    for name, corruption in corruptions.CORRUPTIONS.items():
        caused = []
        for seed in range(runs):

            def measure(seed: int = seed, name: str = name, of: Corruption = corruption) -> Verdict:
                return verdict_of(of, seed, methods, usual(name.partition(":")[0], seed))

            verdict = Verdict(*kept.run(f"{name}/{seed}", measure))
            caused += [verdict] if verdict.caused else []
        first, later = sum(each.by_first for each in caused), sum(each.by_any for each in caused)
        total.update(each.by_any for each in caused)
        columns = (
            f"{runs - len(caused)} of {runs}",
            *(f"{n} of {len(caused)}" for n in (first, later)),
        )
        kept.say("{:50} {:>10} {:>12} {:>10}".format(name, *columns))
    kept.say(f"named in {total[True]} of {total.total()} runs with a change")
    clean = [
        kept.run(f"{name}/{seed}", lambda name=name, seed=seed: _named(usual(name, seed)))  # type: ignore[misc]
        for name in _streams()
        for seed in range(runs)
    ]
    n, of = map(sum, zip(*clean, strict=True))
    kept.say(f"without a corruption: {n} of {of} changes name a value")


def _streams() -> dict[str, Stream]:
    return {name.partition(":")[0]: each.stream for name, each in corruptions.CORRUPTIONS.items()}


def _named(changes: Sequence[Change]) -> tuple[int, int]:
    """Return how many of some changes name a value as never seen before, and their number."""
    return sum(any(e.feature for e in c.evidence or ()) for c in changes), len(changes)


def verdict_of(
    corruption: Corruption, seed: int, methods: Sequence[str], usual: Sequence[Change]
) -> Verdict:
    """Return the verdict on a run, given the changes of the stream as it usually is."""
    found = [
        change
        for change in explained(corruption.spoiled(), seed, methods)
        if BEGIN <= change.seq < BEGIN + WITHIN and not _is_among(change, usual)
    ]
    enough = corruption.rows if corruption.rows <= 5 else 3
    named = [
        len(corruption.seqs & {each.seq for each in change.evidence or ()}) >= enough
        for change in found
    ]
    return Verdict(bool(named), any(named[:1]), any(named))


def _is_among(change: Change, usual: Sequence[Change]) -> bool:
    """Return whether a change came without the corruption, too, at about the same time."""
    return any(
        (each.feature, each.method, each.signal) == (change.feature, change.method, change.signal)
        and abs(each.seq - change.seq) < SAME
        for each in usual
    )


def regimes(runs: int, methods: Sequence[str], kept: Kept) -> None:
    """How often an earlier period is named: where concepts return, and where all are new."""
    for order in ("ABAB", "ABCD"):
        for name, stream in streams.returning(order).items():
            found = [
                kept.run(f"{order}/{name}/{seed}", partial(_regime, stream, seed, methods))
                for seed in range(runs)
            ]
            n, right = map(sum, zip(*found, strict=True))
            kept.say(f"regimes {order} {name}: named in {n} of {runs} runs, rightly in {right}")


def _regime(stream: Stream, seed: int, methods: Sequence[str]) -> tuple[bool, bool]:
    """Return whether a change names an earlier period, and whether one names the right one."""
    named = [each for each in changes_of(stream, seed, methods) if each.returns_to]
    return bool(named), any(map(_is_right, named))


def _is_right(change: Change) -> bool:
    """Return whether the named period is of the concept that begins, in a stream A B A B."""
    period, slack = change.returns_to, streams.SEGMENT // 4
    if period is None:
        return False
    places = period.begin + slack, period.end - slack, (change.after_seq or 0) + slack
    first, last, now = (place // streams.SEGMENT for place in places)
    return first == last == now - 2


PARTS = {"causes": causes, "regions": regions, "corrupt": corrupt, "regimes": regimes}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.measure.behind", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="by default all")
    parser.add_argument("--runs", type=int, default=20, help="seeds of each stream")
    parser.add_argument("--methods", nargs="+", default=["ipfi"], help="methods to run")
    parser.add_argument("--out", type=Path, help="folder of the results; a run resumes with them")
    given = parser.parse_args()
    for part in given.parts or PARTS:
        kept = Kept(given.out, "tests.measure.behind", part, {"methods": given.methods})
        PARTS[part](given.runs, given.methods, kept)
        kept.write_page("What is behind changes", inspect.getdoc(PARTS[part]) or "")


if __name__ == "__main__":
    main()
