"""Prints an estimate: what each role takes, what one partition can do, what a rate needs."""

from collections.abc import Iterator

from rich.table import Column, Table

from fluxplain.cli import common as cli
from fluxplain.cli.doctor.estimate import BUSY, DAY_S, Estimate
from fluxplain.cli.doctor.measure import Measured
from fluxplain.config import Config

MB, GB = 1e6, 1e9

FACTORS = (2, 5, 10)
"""How much more seldom than now the report considers to explain."""


FEW = 10.0
"""Records a second below which a rate is shown with its decimals."""


def show_estimate(config: Config, measured: Measured, rate: float | None) -> None:
    """Print what was measured, and for a rate of observations a second what it needs."""
    estimate = Estimate(config, measured)
    cli.say(f"\nMeasured {measured.records:,} observations, after {measured.warm:,} to warm up:")
    cli.console.print(_table(estimate, measured))
    slowest = estimate.slowest
    cli.say(
        f"One partition: about {_number(estimate.rate)} records a second if each role has a core "
        f"(the slowest is {slowest.name}), {_number(estimate.rate_of_one_core)} if all share one "
        "core."
    )
    cli.say(
        f"Explaining takes {estimate.explaining:.0%} of the CPU time; the rest predicts, learns "
        "and publishes the predictions."
    )
    at = rate or estimate.rate
    for line in (*_disk(estimate, at), *_settings(config, estimate)):
        cli.say(line)
    if rate is not None:
        for line in _advice(config, estimate, rate):
            cli.say(line)


def _table(estimate: Estimate, measured: Measured) -> Table:
    names = ("CPU of a record", "memory", "checkpoint")
    table = Table("role", *(Column(name, justify="right") for name in names), box=None)
    for load in estimate.loads:
        memory, cost = estimate.memory_bytes[load.name], measured.roles[load.name]
        size = f"{cost.checkpoint_bytes / MB:,.1f} MB"
        table.add_row(load.name, f"{1000 * load.seconds:.2f} ms", f"{memory / MB:,.0f} MB", size)
    return table


def _disk(estimate: Estimate, rate: float) -> Iterator[str]:
    sizes = {topic: size for topic, size in estimate.disk_a_day(rate).items() if size >= MB}
    listed = ", ".join(f"{topic} {size / GB:,.2f}" for topic, size in sizes.items())
    total = sum(sizes.values()) / GB
    per = 1e9 * total / (rate * DAY_S) / 1000
    yield (
        f"Disk: {per:,.1f} kB a record and copy; at {_number(rate)} records a second "
        f"{total:,.1f} GB a day ({listed}), and the records in features."
    )


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= FEW else f"{rate:.3g}"


def _settings(config: Config, estimate: Estimate) -> Iterator[str]:
    own = config.explain.every
    bought = ", ".join(
        f"{own * factor} → {_number(estimate.rate_at(factor))} records a second"
        for factor in FACTORS
    )
    yield f"explain.every (now {own}) buys: {bought}."
    if config.model.shards == 1 and estimate.slowest.name == "model":
        rate = estimate.rate_with_shards(2)
        yield f"model.shards = 2 buys {_number(rate)} records a second, with the same results."


def _advice(config: Config, estimate: Estimate, rate: float) -> Iterator[str]:
    partitions = estimate.partitions_for(rate)
    share = rate * estimate.slowest.seconds
    yield (
        f"For {_number(rate)} records a second the slowest role needs {share:.0%} of a core; "
        f"plan for at most {BUSY:.0%}:"
    )
    if partitions == 1:
        yield "  one partition is enough."
    else:
        yield (
            f"  {partitions} partitions of features, each with its own model "
            f"(topics.features_partitions = {partitions}, and as many workers of model and drift)"
        )
        every = estimate.every_for(rate)
        if every is None:
            yield "  explain.every does not suffice: predicting and learning alone take too long"
        else:
            value = config.explain.every * every
            yield f"  or one partition and explain.every = {value}: one of {value} is explained"
            budget = estimate.budget_ms_for(rate)
            if estimate.slowest.name == "model" and budget is not None:
                yield (
                    f"  or explain.budget_ms = {budget:.2g} with control.topic = true: fewer are "
                    "explained only when it takes longer"
                )
    if (workers := estimate.explainers_for(rate)) > 1:
        yield f"  and {workers} workers of the explainer, if every record is explained."
