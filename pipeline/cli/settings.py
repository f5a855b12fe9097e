"""Commands about the settings that a pipeline is registered with."""

from contextlib import closing
from typing import Annotated

import typer

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, load, ready, say
from pipeline.config import Config
from pipeline.kafka.checkpoints import fingerprint_of, identity_of
from pipeline.kafka.client import cluster
from pipeline.kafka.register import Fingerprint, Register

PANEL = "Prepare"

settings_app = typer.Typer(
    no_args_is_help=True,
    help="See and replace the settings that a running pipeline is registered with.",
)
app.add_typer(settings_app, name="settings", rich_help_panel=PANEL)


@settings_app.command("show")
def settings_show(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Compare these settings with the registered ones, which all workers must have.

    The first worker of a pipeline registers its settings in the topic `register`. Only settings and
    versions count that decide what is published.
    """
    settings, here = _here(load(config))
    with closing(Register(settings)) as register:
        registered = register.read()
    if registered.fingerprint is None:
        say("Nothing is registered yet: the first worker registers its settings.")
        return
    differences = registered.fingerprint.differences(here)
    say(f"Registered settings: number {registered.number}.")
    for each in differences or ["nothing"]:
        say(f"  differs here: {each}")


@settings_app.command("replace")
def settings_replace(
    config: ConfigPath = DEFAULT_CONFIG,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Register these settings, or versions, instead of the present ones.

    **Stop all workers first**, then replace, then start them with the new settings. Workers that
    still run end by themselves. Nothing is taken over from the state: it is built again from the
    beginning of the log; where that is gone, a model starts cold. Records that follow carry another
    `incarnation`, since the same `seq` can come again with other content. To keep what a model has
    learned, see `fluxplain model export`.
    """
    settings, here = _here(load(config))
    with closing(Register(settings)) as register:
        registered = register.read()
        before = registered.fingerprint
        differences = before.differences(here) if before else []
        if before is not None and not differences:
            say("These settings are the registered ones: nothing to replace.")
            return
        for each in differences:
            say(f"  differs here: {each}")
        if not yes:
            prefix = settings.topics.prefix
            typer.confirm(f"Replace the settings of the pipeline {prefix}?", abort=True)
        say(f"Registered settings: number {register.replace(here)}.")


def _here(config: Config) -> tuple[Config, Fingerprint]:
    settings = ready(config)
    return settings, fingerprint_of(settings, identity_of(settings, cluster(settings)))
