"""The metrics as the table in ``deploy/README.md`` has them."""

import re
from pathlib import Path
from typing import NamedTuple

README = Path(__file__).parents[2] / "deploy" / "README.md"

ROW = re.compile(r"\| `(\w+)` \| (gauge|counter|histogram) \|(.*?)\| (.+) \|")


class Documented(NamedTuple):
    """One row; of a histogram without its own label ``le``."""

    type: str
    labels: frozenset[str]
    meaning: str


def documented_metrics() -> dict[str, Documented]:
    """Return name → row, in order; of counters with their ``_total``."""
    rows = map(ROW.fullmatch, README.read_text(encoding="utf-8").splitlines())
    return {
        row[1]: Documented(row[2], frozenset(re.findall(r"`(\w+)`", row[3])), row[4])
        for row in rows
        if row
    }


def runbook_anchors() -> list[str]:
    """Return what links to the entries of the runbook end with."""
    _, _, runbook = README.read_text(encoding="utf-8").partition("\n### Runbook\n")
    entries = re.findall(r"^#### (.+)$", runbook, flags=re.MULTILINE)
    return [each.lower().replace(" ", "-") for each in entries]
