"""Puts very many unusable records among good ones, and sees that the good ones do not notice.

``make hostile`` or ``python -m tests.measure.hostile --help``. Each hostile record must become
exactly one dead letter. All that is published must be bit for bit what the local pipeline publishes
of the same stream; and of the good ones, but for the offsets, what it publishes of a stream of them
alone.
"""

import hashlib
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.schemas import FIRST_INCARNATION, DeadLetter
from fluxplain.schemas.dead_letter import MAX_BYTES
from tests.fuzz.audit import Audit
from tests.fuzz.hostile import hostile
from tests.kit import settings as kit
from tests.kit.command import Clock, execute, say
from tests.kit.comparison import compare
from tests.kit.kafka_pipeline import KafkaPipeline, Published, identity, reference
from tests.kit.poisoned import Feeder, feed_joined, joined_problems, peaks
from tests.kit.streams import observations

SETTINGS: dict[str, Any] = {
    **kit.SETTINGS,
    "model": {"factory": "river.tree:HoeffdingTreeClassifier", "params": {"grace_period": 100}},
}
"""All methods, with a model that learns and costs little."""

LETTERS = DeadLetter.TOPIC

TIMEOUT_S = 1200.0

MOST_GROWTH_BYTES = 250 * 1024 * 1024
"""Of a worker that meets bombs: unpacked batches, and what is read ahead."""

ANNOUNCED = 3
"""Absent models a round that are announced, waited for and withdrawn."""

SHOWN = 15
"""Strange doings of workers that are named."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """Good observations with hostile ones among them, in order: the value at offset i.

    `ranks` holds offset of each good one → how many good ones are before it.
    """

    values: Sequence[bytes]
    ranks: dict[int, int]

    @property
    def good(self) -> list[bytes]:
        return [self.values[offset] for offset in self.ranks]

    @property
    def hostile(self) -> dict[int, bytes]:
        """Offset → value of the others."""
        return {i: value for i, value in enumerate(self.values) if i not in self.ranks}


def mix(good: Sequence[bytes], bad: Sequence[bytes], seed: int) -> Mixture:
    """Put the bad ones among the good ones at random.

    Examples
    --------
    >>> mixture = mix([b"a", b"b"], [b"?", b"!"], seed=1)
    >>> sorted(mixture.values), mixture.good
    ([b'!', b'?', b'a', b'b'], [b'a', b'b'])
    """
    total = len(good) + len(bad)
    places = sorted(random.Random(f"mix/{seed}").sample(range(total), len(good)))
    ranks = {offset: rank for rank, offset in enumerate(places)}
    rest = iter(bad)
    values = [good[ranks[i]] if i in ranks else next(rest) for i in range(total)]
    return Mixture(values, ranks)


@dataclass(slots=True)
class Outcome:
    """What is wrong, sentences about the first of that, records by topic, and seconds in all."""

    problems: list[str]
    examples: Sequence[str]
    counts: dict[str, int] = field(default_factory=dict)
    took_s: float = 0.0


def run(pipeline: KafkaPipeline, mixture: Mixture, clock: Clock | None = None) -> Outcome:
    """Feed everything into a pipeline whose workers run, and check what it publishes."""
    began_at = time.monotonic()
    pipeline.send(mixture.values)

    def progress() -> None:
        if clock:
            clock.progress(lambda: f"{pipeline.messages:,} messages published")

    pipeline.wait_until_idle(timeout_s=TIMEOUT_S, each=progress)
    took_s = time.monotonic() - began_at
    outcome = check(pipeline.config, mixture, pipeline.published, pipeline.messages)
    outcome.counts, outcome.took_s = pipeline.counts(), took_s
    if pipeline.workers.deaths:
        outcome.problems.append(f"workers died: {pipeline.workers.deaths}")
    return outcome


def check(config: Config, mixture: Mixture, published: Published, messages: int) -> Outcome:
    """Compare what was published, in so many messages, with what must be."""
    letters = {key: values for key, values in published.items() if key[0] == LETTERS}
    others = {key: values for key, values in published.items() if key[0] != LETTERS}
    expected = _by_rank(reference(config, mixture.good), range(len(mixture.ranks)))
    repeated = messages - sum(map(len, published.values()))
    whole = reference(config, mixture.values)
    exact = compare(published, whole)
    # repetitions are counted here, since the verifier takes them for granted
    good = compare(_by_rank(others, mixture.ranks), expected)
    wrong = list(_wrong_letters(letters, config.topic("features"), mixture.hostile))
    problems = [f"{len(wrong):,} dead letters are wrong"] if wrong else []
    problems += [f"of the good ones: {problem}" for problem in good.problems()]
    problems += [f"beside the reference: {problem}" for problem in exact.problems()]
    problems += [f"{repeated:,} messages came twice"] if repeated else []
    return Outcome(problems, [*wrong[:3], *good.examples, *exact.examples])


COUNTED = (
    *("id", "incident", "detail", "after_seq", "replay_seq", "delay_bound"),
    *("rank_before", "rank_after", "returns_to"),
)
"""What a change says in offsets, of which hostile records take some too, or derives from them."""


OFFSETS = ("seq", "seqs", "previous_seq", "status_seq", "loss_changed_seq", "since")
"""What is an offset, in a record or in a part of one."""


def _by_rank(published: Published, ranks: dict[int, int] | range) -> Published:
    """Return the records as if only good ones had been fed."""
    mapped: Published = {}
    for values in published.values():
        for value in values:
            fields = _ranked(ranks, orjson.loads(value))
            if "kind" in fields:
                fields |= dict.fromkeys(COUNTED)
            again = orjson.dumps(fields)
            mapped.setdefault(identity(_topic(fields), again), set()).add(again)
    return mapped


def _ranked(ranks: dict[int, int] | range, fields: Any, name: str = "") -> Any:
    """Return the fields with ranks in the place of offsets, however deep these are."""
    if isinstance(fields, list):
        return [_ranked(ranks, each, name) for each in fields]
    if isinstance(fields, dict):
        return {key: _ranked(ranks, each, key) for key, each in fields.items()}
    return _rank(ranks, fields) if name in OFFSETS else fields


def _wrong_letters(letters: Published, topic: str, bad: dict[int, bytes]) -> Iterator[str]:
    """Describe dead letters that are missing, too many or not what they should be."""
    expected = {
        (LETTERS, topic, 0, offset, None, FIRST_INCARNATION): value for offset, value in bad.items()
    }
    for key in letters.keys() - expected.keys():
        yield f"not fed as hostile: {key}"
    for key, value in expected.items():
        if key not in letters:
            yield f"no dead letter for offset {key[3]}: {value[:200]!r}"
        elif len(letters[key]) > 1:
            yield f"{len(letters[key])} different dead letters for offset {key[3]}"
        elif problem := _wrong(next(iter(letters[key])), value):
            yield f"the dead letter for offset {key[3]} {problem}: {value[:200]!r}"


def _wrong(published: bytes, value: bytes) -> str | None:
    letter = DeadLetter.decode(published)
    if not letter.reason.strip():
        return "has no reason"
    if letter.sha256 != hashlib.sha256(value).hexdigest():
        return "has another digest"
    if letter.original() != value[:MAX_BYTES] or letter.truncated != (len(value) > MAX_BYTES):
        return "has other bytes"
    return None


def _rank(ranks: dict[int, int] | range, seq: int | None) -> int | None:
    if seq is None:
        return None
    # a hostile one's gets a number that the reference has not
    return ranks[seq] if seq in ranks else -1 - seq


def _topic(fields: dict[str, Any]) -> str:
    if "kind" in fields:
        return "changes"
    if "contributions" in fields:
        return "reasons"
    return "explanations" if "method" in fields else "predictions"


def command(
    hostile_records: Annotated[int, typer.Option("--hostile", min=1)] = 100_000,
    good: Annotated[int, typer.Option(min=1, help="Number of usable observations.")] = 5_000,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of poison in joined topics.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the records and their order.")] = 1,
) -> None:
    """Feed hostile records among good ones; each must become a dead letter and change nothing."""

    def work(folder: Path, clock: Clock) -> Sequence[str]:
        clock.say(f"making {hostile_records:,} hostile records (seed {seed})")
        mixture = mix(observations(good), list(hostile(hostile_records, seed)), seed)
        with Cluster(brokers=1, tell=clock.say) as cluster:
            path = kit.write_config(folder / "hostile.toml", SETTINGS)
            with KafkaPipeline(path, cluster.bootstrap_servers, folder) as pipeline:
                clock.say(f"feeding {len(mixture.values):,} records")
                outcome = run(pipeline, mixture, clock)
            _print(outcome, len(mixture.values))
            clock.say(f"{rounds} rounds of poison in features, labels and control, joined")
            problems = [*outcome.problems, *_poisoned(folder, cluster.bootstrap_servers, rounds)]
        if not outcome.counts["changes"]:
            problems.append("no change: the stream shows too little")
        return problems

    execute(
        "hostile",
        work,
        passed="every hostile record is one dead letter, and nothing else is different",
    )


def _poisoned(folder: Path, bootstrap_servers: str, rounds: int) -> list[str]:
    """Return what poison in joined topics does that it must not."""
    settings = {
        **SETTINGS,
        "topics": {"prefix": "poisoned.", "features_partitions": 4, "partitions": 4},
        "label": {"type": "integer", "topic": True, "wait": 100},
        "control": {"topic": True},
    }
    state, models = folder / "poisoned", folder / "models"
    state.mkdir()
    models.mkdir()
    settings["model"] = {**settings["model"], "version": "v1", "directory": str(models)}
    path = kit.write_config(folder / "poisoned.toml", settings)
    audit = Audit(folder / "audit")
    good = observations(500 + 50 * rounds)
    roles = ("join", *ROLES)
    with KafkaPipeline(
        path, bootstrap_servers, state, roles=roles, environment=audit.environment
    ) as pipeline:
        first = Feeder(pipeline, "features")
        first.good(*good[:500])
        pipeline.wait_until_idle(timeout_s=TIMEOUT_S)
        before, heard = peaks(pipeline), audit.heard
        inputs = feed_joined(pipeline, good[500:], rounds, announced=ANNOUNCED)
        pipeline.wait_until_idle(timeout_s=TIMEOUT_S)
        after = peaks(pipeline)
        inputs[0].messages[:0] = first.messages
        problems = [f"in joined topics: {each}" for each in joined_problems(pipeline, inputs)]
        if pipeline.workers.deaths:
            problems.append(f"workers died of poison: {pipeline.workers.deaths}")
        strange = audit.strange(heard, [state, models])
        problems += [f"a worker did: {each}" for each in strange[:SHOWN]]
    problems += [
        f"{name} grew from {before[name]:,} to {after[name]:,} bytes"
        for name in before
        if after[name] - before[name] > MOST_GROWTH_BYTES
    ]
    records = sum(len(each.messages) for each in inputs)
    say(
        f"{records:,} records in joined topics, among them bombs, forged headers, paths in "
        f"control, and {ANNOUNCED * rounds:,} absent models, announced and withdrawn"
    )
    sizes = (f"{name} {before[name] / 1e6:.0f} and {after[name] / 1e6:.0f} MB" for name in before)
    say(f"most resident memory before the poison and after it: {', '.join(sizes)}")
    return problems


def _print(outcome: Outcome, records: int) -> None:
    say("")
    rate = records / outcome.took_s
    say(f"{records:,} records in {outcome.took_s:.0f} s: {rate:,.0f} a second")
    say(", ".join(f"{n:,} {name}" for name, n in outcome.counts.items()))
    for example in outcome.examples:
        say(example)


if __name__ == "__main__":
    typer.run(command)
