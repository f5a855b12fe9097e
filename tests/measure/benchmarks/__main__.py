"""The command ``python -m tests.measure.benchmarks``: one line a figure, and all as files."""

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from deploy.kafka.cluster import say as tell
from tests.kit.command import Clock, execute, say
from tests.measure.benchmarks import (
    checkpoints,
    dashboard,
    fence,
    latency,
    learning,
    library,
    memory,
    metrics,
    pipeline,
    producer,
    reasons,
    report,
    scaling,
    shap_trees,
    sizing,
    stage,
    variance,
)
from tests.measure.benchmarks.timing import Measure, Run

PARTS: dict[str, Measure] = {
    "forests": learning.forests,
    "moa": learning.beside_moa,
    "checkpoints": checkpoints.forests_held,
    "pfi": library.pfi_and_training,
    "full": library.full_sets,
    "relatives": library.relatives,
    "stage": stage.explaining_in_the_stage,
    "features": library.by_features,
    "reasons": reasons.share_of_reasons,
    "shap": shap_trees.beside_shap,
    "variance": variance.error_for_time,
    "producer": producer.two_clients,
    "pipeline": pipeline.throughput,
    "fence": fence.with_and_without,
    "latency": latency.at_rates,
    "workers": scaling.two_workers,
    "shards": scaling.two_shards,
    "memory": memory.long_stream,
    "sizing": sizing.roles_and_topics,
    "streams": sizing.further_streams,
    "metrics": metrics.counting,
    "dashboard": dashboard.page,
    "beside": dashboard.beside_the_pipeline,
}


def bench(
    parts: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(PARTS)}; all by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder for the results: each part as JSON, and a table."
        ),
    ] = None,
) -> None:
    """Measure the cost of explaining, compared with learning and with other libraries."""
    unknown = sorted(set(parts or ()) - set(PARTS))
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(PARTS)}")
    work = partial(_work, parts or list(PARTS), out)
    execute("bench", lambda folder, _: work(folder), passed="every part was measured")


def _work(parts: Sequence[str], out: Path | None, folder: Path) -> Sequence[str]:
    run, machine = Run(folder, Clock(tell)), report.machine()
    say(", ".join(f"{name} {value}" for name, value in machine.items()))
    for name in parts:
        run.clock.say(f"{name} …")
        figures = []
        for figure in PARTS[name](run):
            figures.append(figure)
            say(figure.line())
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            report.Part(name, inspect.getdoc(PARTS[name]) or "", machine, figures).write(out)
            report.write_table(out, list(PARTS))
    return []


if __name__ == "__main__":
    typer.run(bench)
