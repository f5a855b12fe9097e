"""Options of ``fluxplain init`` and ``try`` that say what the columns are."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from fluxplain.cli import common as cli
from fluxplain.config import ConfigError
from fluxplain.sources import SourceError
from fluxplain.sources.first_rows import Column
from fluxplain.sources.proposal import Named, Proposal, label_among, proposal_of


@dataclass(kw_only=True)
class Roles:
    """Options that say which columns are no features, and which model learns."""

    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The label; by default a column with a usual name."),
    ] = None
    no_label: Annotated[
        bool, typer.Option("--no-label", help="No column is a label: detect anomalies.")
    ] = False
    id_: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The observations' ids.")
    ] = None
    ts: Annotated[str | None, typer.Option(metavar="COLUMN", help="The observations' times.")] = (
        None
    )
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="A River class, or a class or function of your own, as module:name from the "
            "working directory; by default a forest.",
        ),
    ] = None

    def proposal(self, columns: Sequence[Column]) -> Proposal:
        """Return what columns are, asking for the label if it has no usual name."""
        if self.no_label and self.label is not None:
            raise ConfigError("--label and --no-label contradict each other: give one of them")
        label = None
        if not self.no_label:
            label = self.label or label_among(columns) or _asked([each.name for each in columns])
        return proposal_of(columns, Named(label or None, self.id_, self.ts))


def _asked(names: list[str]) -> str:
    """Ask for the label's column, empty for none; raise SourceError if nobody can answer."""
    listed = ", ".join(names)
    if not sys.stdin.isatty():
        raise SourceError(f"name the label with --label, or give --no-label; the columns: {listed}")
    cli.say(f"Columns: {listed}")
    answer: str = typer.prompt("Which column is the label? (none: press Enter)", default="")
    return answer
