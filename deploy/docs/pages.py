"""Fills the generated parts of the documentation's pages."""

import re
from functools import cache
from pathlib import Path

from deploy.docs import commands, ksql, records, settings

FOLDER = Path(__file__).parent

BEGIN, END = "<!-- from the code: ", "<!-- end -->"

_PART = re.compile(f"({BEGIN}(.+?) -->\n).*?({END})", re.DOTALL)


@cache
def parts() -> dict[str, str]:
    """Return name of a part → its generated text."""
    return {
        "settings": settings.tables(),
        "detectors": settings.detectors(),
        "commands": commands.reference(),
        "streams of ksqlDB": ksql.statements(),
        **{f"fields of {name}": table for name, table in records.tables().items()},
    }


def filled(page: str) -> str:
    """Return a page with its generated parts up to date.

    Raises
    ------
    KeyError
        If it has a part that nothing generates.
    """
    return _PART.sub(lambda found: f"{found[1]}\n{parts()[found[2]]}\n\n{found[3]}", page)
