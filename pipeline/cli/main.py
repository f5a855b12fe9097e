"""The command line, ``fluxplain``."""

import os
import sys
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from pipeline import __version__
from pipeline.cli.common import app, console
from pipeline.config import ConfigError
from pipeline.kafka.client import BrokerError
from pipeline.kafka.producer import DeliveryError
from pipeline.sources import SourceError
from pipeline.supervisor import WorkerRefusedError

# each adds its commands, and --help shows them in this order
# isort: off
from pipeline.cli import (  # noqa: F401
    setup,
    settings,
    run,
    model,
    alerts,
    feed,
    dashboard,
    look,
    streams,
    plot,
    story,
    export,
)
# isort: on

USER_ERRORS = (ConfigError, BrokerError, DeliveryError, SourceError, WorkerRefusedError)
"""What a person can mend: shown as a message, never as a stack trace."""


def main() -> NoReturn:
    """Run a command; a user's mistake gives a message, not a stack trace."""
    try:
        app()
    except BrokenPipeError:
        # whoever reads our output has enough, as in `fluxplain tail … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        Console(stderr=True).print(f"Error: {name}{error.strerror}", style="red", markup=False)
        sys.exit(2)
    except USER_ERRORS as error:
        Console(stderr=True).print(f"Error: {error}", style="red", markup=False, highlight=False)
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
