"""Runs commands of fluxplain as people do, in a folder with settings."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from typer.testing import CliRunner, Result

import fluxplain.cli.main  # noqa: F401  adds the commands
from fluxplain.cli.common import app
from fluxplain.errors import UserError
from fluxplain.schemas import OUTPUTS
from tests.kit.kafka_pipeline import Published, identity
from tests.kit.preloaded import Preloaded, bare_path

SOURCE = "river:Agrawal?classification_function=1"

SERVERS = "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS"
NOWHERE = {SERVERS: "127.0.0.1:1"}
NO_BROKER = "no broker answers at 127.0.0.1:1"

FORKS: list[Preloaded] = []
"""What commands that end are forked from."""


def run(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fluxplain.cli", *arguments]
    own = _environment("200", environment)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        process = FORKS[0].start(command, own, error, out=out, folder=folder)
        try:
            status = process.wait(120)
        finally:
            process.kill()
        for file in (out, error):
            file.seek(0)
        return subprocess.CompletedProcess(
            command, status, out.read().decode(), error.read().decode()
        )


def _environment(columns: str, own: Mapping[str, str]) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": bare_path(), "COLUMNS": columns, **own}


def start(
    folder: Path, *arguments: str, stdout: int = subprocess.DEVNULL, **environment: str
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "fluxplain.cli", *arguments],
        cwd=folder,
        stdout=stdout,
        stderr=(folder / "stderr.log").open("ab"),
        env=_environment("120", environment),
    )


def one_line(text: str) -> str:
    return " ".join(text.split())


def files(folder: Path) -> Published:
    published: Published = {}
    for topic in OUTPUTS:
        for line in (folder / f"{topic}.jsonl").read_bytes().splitlines():
            published.setdefault(identity(topic, line), set()).add(line)
    return published


def invoke(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, [*map(str, arguments)])


def refusal(*arguments: object) -> str:
    """Return why a command refuses to run."""
    result = invoke(*arguments)
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)
