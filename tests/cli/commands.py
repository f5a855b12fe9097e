"""Runs commands of fluxplain as people do, in a folder with settings."""

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from fluxplain.cli.main import main
from fluxplain.schemas import OUTPUTS
from tests.kit.kafka_pipeline import Published, identity
from tests.kit.preloaded import bare_path

SOURCE = "river:Agrawal?classification_function=1"

SERVERS = "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS"
NOWHERE = {SERVERS: "127.0.0.1:1"}
NO_BROKER = "no broker answers at 127.0.0.1:1"

Ended = subprocess.CompletedProcess[str]


def run(folder: Path, *arguments: object, **environment: str) -> Ended:
    """Run a command that ends, in this process: libraries are loaded already."""
    out, error = io.StringIO(), io.StringIO()
    argv, known = ["fluxplain", *map(str, arguments)], set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", argv)
        patch.setattr(sys, "path", [*sys.path])  # the model's folder is added
        patch.setattr(sys, "stdin", io.StringIO())
        for name, value in {"COLUMNS": "200", **environment}.items():
            patch.setenv(name, value)
        with redirect_stdout(out), redirect_stderr(error), pytest.raises(SystemExit) as end:
            main()
    for name in sys.modules.keys() - known:
        if folder.resolve() in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
            del sys.modules[name]  # another test has a module of this name in its own folder
    return Ended(argv, int(end.value.code or 0), out.getvalue(), error.getvalue())


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
