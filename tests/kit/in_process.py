"""Runs commands of fluxplain that end, in this process: its libraries are loaded already."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from fluxplain.cli.main import main

Ended = subprocess.CompletedProcess[str]


def run(folder: Path, *arguments: object, **environment: str) -> Ended:
    """Run a command in a folder."""
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
        if name.partition(".")[0] in {"fluxplain", "tests"}:
            continue  # the folder may be that of the repository
        if folder.resolve() in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
            del sys.modules[name]  # another test has a module of this name in its own folder
    return Ended(argv, int(end.value.code or 0), out.getvalue(), error.getvalue())


def run_with(config: Path, *words: str, **environment: str) -> Ended:
    """Run a command with settings, in their folder; what librdkafka itself prints is not told."""
    return run(config.parent, *words, "--config", config, **{"COLUMNS": "1000", **environment})
