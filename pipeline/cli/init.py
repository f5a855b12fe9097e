"""``fluxplain init``: settings for a file of observations, or an example of all settings."""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fluxplain.cli import common as cli
from fluxplain.config import ConfigError
from fluxplain.config.base import is_bare_key
from fluxplain.sources import SourceError
from fluxplain.sources.first_rows import sample_of
from fluxplain.sources.proposal import Named, Proposal, label_among, proposal_of

TEMPLATE = Path(__file__).with_name("template.toml")


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

    def proposal(self, source: str) -> Proposal:
        """Return what a file's columns are, asking for the label if it has no usual name."""
        if self.no_label and self.label is not None:
            raise ConfigError("--label and --no-label contradict each other: give one of them")
        columns = sample_of(source)
        label = None
        if not self.no_label:
            label = self.label or label_among(columns) or _asked([each.name for each in columns])
        return proposal_of(columns, Named(label or None, self.id_, self.ts))


@cli.app.command(rich_help_panel=cli.PREPARE)
@cli.dataclass_options
def init(
    roles: Roles,
    source: Annotated[
        str | None,
        typer.Argument(
            help="A CSV file (.csv, .csv.gz) with a header, or a Parquet file, whose columns "
            "become features. Without a file the settings have examples."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Settings file to write.")
    ] = cli.DEFAULT_CONFIG,
) -> None:
    """Write a commented configuration file.

    Given a file of observations, the command proposes settings from its first rows: features with
    their types, label, ids, times, and the policy for missing values. It prints what it found; you
    can correct the settings.
    """
    if out.exists():
        raise ConfigError(f"{out} already exists: remove it, or give another name with --out")
    if source is None:
        _write(out, TEMPLATE.read_text())
        cli.say(f"Wrote {out}. Set your brokers, features, label and model there, then run")
        for command in ("topics create", "check"):
            cli.say(f"  fluxplain {command} -c {out}")
        return
    proposal = roles.proposal(source)
    _write(out, settings_of(proposal, roles.model))
    say_proposal(proposal)
    options = {"--id": proposal.id, "--ts": proposal.ts}
    given = [
        part for option, name in options.items() if name is not None for part in (option, name)
    ]
    config = [] if out == cli.DEFAULT_CONFIG else ["-c", str(out)]
    command = shlex.join(["fluxplain", "local", source, *given, "--out", "results", *config])
    cli.say(f"Wrote {out}. Next:\n  {command}")


def _asked(names: list[str]) -> str:
    """Ask for the label's column, empty for none; raise SourceError if nobody can answer."""
    listed = ", ".join(names)
    if not sys.stdin.isatty():
        raise SourceError(f"name the label with --label, or give --no-label; the columns: {listed}")
    cli.say(f"Columns: {listed}")
    answer: str = typer.prompt("Which column is the label? (none: press Enter)", default="")
    return answer


def _write(out: Path, text: str) -> None:
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"cannot write {out}: {error.strerror or error}") from None


def settings_of(proposal: Proposal, model: str | None = None) -> str:
    """Return the commented settings with what was proposed, and the user's own model."""
    features = "".join(f'{_key(name)} = "{kind}"\n' for name, kind in proposal.features.items())
    for name, reason in proposal.left_out.items():
        features += f"# {_key(name)} is left out: {reason}\n"
    factory, params = _model_for(proposal)
    if model is not None:
        factory, params = model, ""
    changes = {
        'amount = "numeric"\nhour = "numeric"\ncountry = "categorical"\n': features,
        'type = "boolean"\n': f'type = "{proposal.label_type}"\n',
        'factory = "river.forest:ARFClassifier"\n': f"factory = {_text(factory)}\n",
        "n_models = 10\n": params,
    }
    if proposal.has_missing:
        changes['policy = "dead-letter"\n'] = 'policy = "impute"\n'
    if proposal.label is not None:
        changes['# column = "fraud"\n'] = f"column = {_text(proposal.label)}\n"
    text = TEMPLATE.read_text()
    for old, new in changes.items():
        text = text.replace(old, new, 1)
    return text


def _model_for(proposal: Proposal) -> tuple[str, str]:
    """Return a model for the labels, and its parameters."""
    if proposal.label_type == "none":
        steps = '["river.preprocessing:MinMaxScaler", "river.anomaly:HalfSpaceTrees"]'
        return "fluxplain.models:from_river", f"steps = {steps}\n"
    if proposal.label_type != "number":
        return "river.forest:ARFClassifier", "n_models = 10\n"
    params = "n_models = 10\n"
    if "categorical" in proposal.features.values():
        params += "# the default, linear models in the leaves, takes no categories\n"
        params += 'leaf_prediction = "mean"\n'
    return "river.forest:ARFRegressor", params


def _key(name: str) -> str:
    return name if is_bare_key(name) else _text(name)


def _text(value: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def say_proposal(proposal: Proposal) -> None:
    """Print what was found in a file."""
    kinds = [*proposal.features.values()]
    numeric, categorical = kinds.count("numeric"), kinds.count("categorical")
    cli.say(f"{numeric} numeric and {categorical} categorical features")
    for name, reason in proposal.left_out.items():
        cli.say(f"  without {name}: {reason}")
    if proposal.label is not None:
        cli.say(f"label: {proposal.label} ({proposal.label_type})")
    for use, column in (("id", proposal.id), ("time", proposal.ts)):
        if column is not None:
            cli.say(f"{use}: {column}")
    if proposal.has_missing:
        cli.say("Some values are missing: they are imputed (missing.policy).")
