"""Fills the generated parts of the documentation's pages."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from deploy.docs import ksql, records, settings

FOLDER = Path(__file__).parent

BEGIN, END = "<!-- from the code: ", "<!-- end -->"

_PART = re.compile(f"({BEGIN}(.+?) -->\n).*?({END})", re.DOTALL)


@cache
def parts() -> dict[str, str]:
    """Return name of a part → its generated text."""
    return {
        "settings": settings.tables(),
        "detectors": settings.detectors(),
        "commands": _commands(),
        "streams of ksqlDB": ksql.statements(),
        **{f"fields of {name}": table for name, table in records.tables().items()},
    }


def _commands() -> str:
    """Return all commands with their help, by Typer, without the title."""
    words = ("typer", "fluxplain.cli.commands", "utils", "docs", "--name", "fluxplain")
    command = [sys.executable, "-m", *words]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout  # noqa: S603
    return text.partition("\n")[2].strip()


def filled(page: str) -> str:
    """Return a page with its generated parts up to date; KeyError for an unknown one."""
    return _PART.sub(lambda found: f"{found[1]}\n{parts()[found[2]]}\n\n{found[3]}", page)
