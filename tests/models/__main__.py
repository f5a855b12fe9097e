"""Each kind of model through the pipeline on Kafka: ``python -m tests.models``.

On the embedded broker, or on that of ``python -m deploy.kafka run -- python -m tests.models``. What
was measured is written to ``tests/models/results``, a file for each kind, and all of it as a table.
"""

import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fluxplain.kafka.embedded import EmbeddedBroker
from tests.kit.command import Clock, execute, say
from tests.kit.settings import REAL_KAFKA
from tests.kit.waiting import FailedError
from tests.measure.benchmarks.report import machine
from tests.models.kinds import KINDS, MOST
from tests.models.run import run
from tests.models.table import RESULTS, write

RECORDS = 2000

LIBRARIES = {"scikit-learn": "sklearn", "torch": "torch"}
"""Distribution → package."""


def models(
    kinds: Annotated[
        list[str] | None, typer.Argument(help=f"{', '.join(KINDS)}; all by default.")
    ] = None,
    records: Annotated[
        int, typer.Option(min=400, max=MOST, help="Records for each kind.")
    ] = RECORDS,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the results.")] = RESULTS,
) -> None:
    """Run each kind of model through the pipeline, and compare it with the reference."""
    names = kinds or list(KINDS)
    unknown = sorted(set(names) - set(KINDS))
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(KINDS)}")
    execute("models", partial(_work, names, records, out), passed="all is as in the reference")


def _work(names: Sequence[str], records: int, out: Path, folder: Path, clock: Clock) -> list[str]:
    for name in names:
        if KINDS[name].extra and find_spec(KINDS[name].extra) is None:
            raise FailedError(f"{name} needs {KINDS[name].extra}, which is not installed")
    wrong = []
    broker = "Kafka" if REAL_KAFKA else "embedded broker"
    for name in names:
        clock.say(f"{name} …")
        with ExitStack() as stack:
            servers = REAL_KAFKA or stack.enter_context(EmbeddedBroker()).bootstrap_servers
            own = folder / name
            own.mkdir()
            # the stream's name is part of what is random
            result = run(KINDS[name], records, own, servers, broker, prefix=f"models-{name}.")
        shutil.rmtree(own)
        say(json.dumps(asdict(result), ensure_ascii=False))
        write(out, name, result, _machine())
        if result.different or result.dead_letters:
            wrong.append(
                f"{name}: {result.different} records differ, {result.dead_letters} dead letters"
            )
    return wrong


def _machine() -> dict[str, str]:
    """Return what the figures depend on."""
    found = machine()
    del found["ixai"]
    return {**found, **{name: version(name) for name in LIBRARIES if find_spec(LIBRARIES[name])}}


if __name__ == "__main__":
    typer.run(models)
