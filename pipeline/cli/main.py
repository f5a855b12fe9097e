"""Entry point of the command ``fluxplain``."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from fluxplain import __version__
from fluxplain.cli.common import app, console, of_system, say_error
from fluxplain.errors import UserError
from fluxplain.loading.deferred import defer

# each module adds its commands; --help shows them in this order
from fluxplain.cli import init, setup  # noqa: F401 # isort: skip
from fluxplain.cli.doctor import command  # noqa: F401 # isort: skip
from fluxplain.cli import model_commands, run, feed, try_file  # noqa: F401 # isort: skip
from fluxplain.cli import live, look, note_commands, why, dead_letters, plot, export  # noqa: F401 # isort: skip


def main() -> NoReturn:
    """Run a command; a user's mistake gives a message, not a stack trace."""
    defer()
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
