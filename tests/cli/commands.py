"""Runs commands of fluxplain as people do, in a folder with settings."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from fluxplain.schemas import OUTPUTS
from tests.kit.in_process import Ended, run
from tests.kit.kafka_pipeline import Published, identity
from tests.kit.preloaded import bare_path

SOURCE = "river:Agrawal?classification_function=1"

SERVERS = "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS"
NOWHERE = {SERVERS: "127.0.0.1:1"}
NO_BROKER = "no broker answers at 127.0.0.1:1"


def start(
    folder: Path, *arguments: str, stdout: int = subprocess.DEVNULL, **environment: str
) -> "subprocess.Popen[bytes]":
    """Start a command in a process of its own."""
    own: Mapping[str, str] = {"PYTHONPATH": bare_path(), "COLUMNS": "120", **environment}
    return subprocess.Popen(
        [sys.executable, "-m", "fluxplain.cli", *arguments],
        cwd=folder,
        stdout=stdout,
        stderr=(folder / "stderr.log").open("ab"),
        env={**os.environ, **own},
    )


def run_here(*arguments: object) -> Ended:
    """Run a command in the working directory."""
    return run(Path(), *arguments)


def refusal(*arguments: object) -> str:
    """Return why a command refuses to run in the working directory."""
    result = run_here(*arguments)
    assert result.returncode == 2, result
    *_, reason = result.stderr.partition("Error: ")
    assert reason, result.stderr
    return reason.rstrip()


def one_line(text: str) -> str:
    return " ".join(text.split())


def files(folder: Path) -> Published:
    published: Published = {}
    for topic in OUTPUTS:
        for line in (folder / f"{topic}.jsonl").read_bytes().splitlines():
            published.setdefault(identity(topic, line), set()).add(line)
    return published
