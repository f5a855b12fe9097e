"""Generates the reference of commands and options, by Typer."""

import subprocess
import sys

PROGRAM = ("-m", "typer", "fluxplain.cli.main", "utils", "docs", "--name", "fluxplain")


def reference() -> str:
    """Return all commands with their help."""
    command = [sys.executable, *PROGRAM]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout  # noqa: S603
    _, _, without_title = text.partition("\n")
    return without_title.strip()
