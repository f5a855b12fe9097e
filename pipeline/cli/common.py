"""What the commands share: options, output, and how mistakes are shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline.config import Asker, Config, load_config
from pipeline.kafka.client import AccessError, BrokerError, no_topics
from pipeline.kafka.embedded import resolve
from pipeline.kafka.exits import EXIT_NOT_YET, EXIT_REFUSED
from pipeline.kafka.register import RegisteredError
from pipeline.kafka.topics import missing_topics
from pipeline.loading import ended_by_ctrl_c

app = typer.Typer(
    name="fluxplain",
    help="Explains models in flux: what an online model on Kafka relies on, and when that changes."
    "\n\nStart with `fluxplain demo`, or `fluxplain init` for your own stream.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

console = Console()

ConfigPath = Annotated[
    Path,
    typer.Option("--config", "-c", metavar="FILE", help="Settings, as `fluxplain init` writes."),
]

DEFAULT_CONFIG = Path("fluxplain.toml")


def load(config: Path, role: Asker | None = None) -> Config:
    """Return the settings; what they refer to may take long to be imported."""
    with ended_by_ctrl_c():
        return load_config(config, role)


def ready(settings: Config) -> Config:
    """Return the settings for a broker that answers and has all topics."""
    settings = resolve(settings)
    missing = missing_topics(settings)
    if missing:
        raise no_topics(settings, missing)
    return settings


def say(text: str) -> None:
    """Print a line as it is."""
    console.print(text, markup=False, highlight=False)


def warn(text: str) -> None:
    """Print a line of what is no error, but hardly meant."""
    Console(stderr=True, soft_wrap=True).print(text, style="yellow", markup=False, highlight=False)


@contextmanager
def broker_may_come_back() -> Iterator[None]:
    """Exit with what tells a supervisor whether to start this again."""
    try:
        yield
    except RegisteredError as error:
        Console(stderr=True, soft_wrap=True).print(f"Error: {error}", markup=False, highlight=False)
        raise typer.Exit(EXIT_REFUSED) from None
    except BrokerError as error:
        Console(stderr=True).print(f"Error: {error}", markup=False, highlight=False)
        again = not isinstance(error, AccessError)
        raise typer.Exit(EXIT_NOT_YET if again else EXIT_REFUSED) from None
