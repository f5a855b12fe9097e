"""Entry point of the command ``fluxplain``: it imports only the module of the command to run."""

import os
import sys
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from fluxplain import __version__
from fluxplain.cli.common import app, console, of_system, say_error
from fluxplain.cli.interruption import importing
from fluxplain.errors import UserError
from fluxplain.loading.deferred import defer

MODULES = {
    **dict.fromkeys(["check", "settings", "topics"], "setup"),
    **dict.fromkeys(["alerts", "broker", "demo", "up", "worker"], "run"),
    **dict.fromkeys(["local", "replay"], "feed"),
    **dict.fromkeys(["dashboard", "streams", "watch"], "live"),
    **dict.fromkeys(["explain-change", "tail"], "look"),
    **dict.fromkeys(["acknowledge", "mute"], "note_commands"),
    "checkpoints": "checkpoint_commands",
    "dead-letters": "dead_letters",
    "doctor": "doctor.command",
    "export": "export",
    "init": "init",
    "model": "model_rollback",
    "plot": "plot",
    "try": "try_file",
    "why": "why",
}
"""Command → the module that adds it."""

ALL = "commands"
"""The module that adds all commands, as ``--help`` and a misspelled name need."""


def main() -> NoReturn:
    """Run a command; a user's mistake gives a message, not a stack trace."""
    defer()
    with importing():
        import_module(f"fluxplain.cli.{MODULES.get(' '.join(sys.argv[1:2]), ALL)}")
    try:
        app()
    except BrokenPipeError:
        # the reader of our output has ended, as in `fluxplain tail … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        say_error(of_system(error))
        sys.exit(2)
    except UserError as error:
        say_error(error)
        sys.exit(2)
    sys.exit(0)


@app.callback(invoke_without_command=True)
def version_option(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Explain models in flux."""
    if version:
        console.print(__version__, highlight=False)
        raise typer.Exit
