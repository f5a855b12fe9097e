"""``fluxplain init``: settings for a file or a topic of observations, or an example of all."""

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from fluxplain.cli import common as cli
from fluxplain.cli.init_roles import Roles
from fluxplain.cli.init_topic import Topic, proposal_for, say_sample, say_what_is_needed
from fluxplain.config import ConfigError
from fluxplain.config.base import is_bare_key
from fluxplain.schemas.wording import printable
from fluxplain.sources.first_rows import sample_of
from fluxplain.sources.proposal import Proposal

TEMPLATE = Path(__file__).with_name("template.toml")

NO_CHANGES: Mapping[str, str] = MappingProxyType({})


@cli.app.command(rich_help_panel=cli.PREPARE)
@cli.dataclass_options
def init(
    roles: Roles,
    topic: Topic,
    source: Annotated[
        str | None,
        typer.Argument(
            help="A CSV file (.csv, .tsv, .txt) with a header, or a Parquet file, whose columns "
            "become features. Without a file or a topic the settings have examples."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Settings file to write.")
    ] = cli.DEFAULT_CONFIG,
) -> None:
    """Write a commented configuration file.

    Given a file of observations, the command proposes settings from its first rows: features with
    their types, label, ids, times, and the policy for missing values. Given a topic, it does so
    from the newest messages. It prints what it found; you can correct the settings.
    """
    if out.exists():
        raise ConfigError(f"{out} already exists: remove it, or give another name with --out")
    if topic.from_topic is not None:
        if source is not None:
            raise ConfigError(f"{source} and --from-topic contradict each other: give one of them")
        _from_topic(topic, roles, out)
    elif topic.bootstrap_servers is not None:
        raise ConfigError("--bootstrap-servers needs --from-topic, the topic to read")
    elif source is not None:
        _from_file(source, roles, out)
    else:
        _write(out, TEMPLATE.read_text())
        cli.say(f"Wrote {out}. Set your brokers, features, label and model there, then run")
        _say_commands(out, "topics create", "check")


def _from_file(source: str, roles: Roles, out: Path) -> None:
    proposal = roles.proposal(sample_of(source))
    _write(out, settings_of(proposal, roles.model))
    say_proposal(proposal)
    options = {"--id": proposal.id, "--ts": proposal.ts}
    given = [
        part for option, name in options.items() if name is not None for part in (option, name)
    ]
    config = [] if out == cli.DEFAULT_CONFIG else ["-c", str(out)]
    command = shlex.join(["fluxplain", "local", source, *given, "--out", "results", *config])
    cli.say(f"Wrote {out}. Next:\n  {command}")


def _from_topic(topic: Topic, roles: Roles, out: Path) -> None:
    sample, servers = topic.sample(TEMPLATE)
    proposal = proposal_for(sample, topic, roles)
    own = {'bootstrap_servers = "localhost:9092"\n': f"bootstrap_servers = {_text(servers)}\n"}
    if sample.are_observations and topic.prefix is not None:
        own['prefix = "fluxplain."\n'] = f"prefix = {_text(topic.prefix)}\n"
    _write(out, settings_of(proposal, roles.model, own))
    say_sample(sample, topic)
    say_proposal(proposal)
    say_what_is_needed(sample, topic, proposal)
    cli.say(f"Wrote {out}. Next:")
    _say_commands(out, "topics create", "check", "up")


def _say_commands(out: Path, *commands: str) -> None:
    for command in commands:
        cli.say(f"  fluxplain {command} -c {out}")


def _write(out: Path, text: str) -> None:
    """Write the settings whole or not at all."""
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    with cli.writing(out):
        try:
            with temporary.open("x", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(out)
        finally:
            temporary.unlink(missing_ok=True)


def settings_of(
    proposal: Proposal, model: str | None = None, own: Mapping[str, str] = NO_CHANGES
) -> str:
    """Return the commented settings with what was proposed, and the user's own model.

    ``own`` are further lines of the template → those to write instead.
    """
    features = "".join(f'{_key(name)} = "{kind}"\n' for name, kind in proposal.features.items())
    for name, reason in proposal.left_out.items():
        features += f"# {_key(name)} is left out: {reason}\n"
    factory, params = _model_for(proposal)
    if model is not None:
        factory, params = model, ""
    changes = {
        **own,
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
        cli.say(f"  without {printable(name) or 'the column without a name'}: {reason}")
    for name, doubt in proposal.doubts.items():
        cli.say(f"  look at {printable(name)}: {printable(doubt)}")
    if proposal.label_type != "none":
        cli.say(f"label: {printable(proposal.label or 'y')} ({proposal.label_type})")
    for use, column in (("id", proposal.id), ("time", proposal.ts)):
        if column is not None:
            cli.say(f"{use}: {printable(column) or 'the column without a name'}")
    if proposal.has_missing:
        cli.say("Some values are missing: they are imputed (missing.policy).")
