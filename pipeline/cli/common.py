"""The Typer app, shared options, loading of settings, and output."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from fluxplain.cli.interruption import importing
from fluxplain.cli.progress_lines import ProgressLines
from fluxplain.config import Caller, Config, ConfigError, load_config
from fluxplain.errors import NotYetError
from fluxplain.kafka.client import AccessError, BrokerError, no_topics
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.exits import EXIT_FAILED, EXIT_NOT_YET, EXIT_REFUSED
from fluxplain.kafka.ownership.registered import RegisteredError
from fluxplain.kafka.topics.create import missing_topics
from fluxplain.results.published import Published, from_files, from_topics
from fluxplain.schemas import BadRecordError, Change, parse_stream, stream_name

app = typer.Typer(
    name="fluxplain",
    help="Explain online models on Kafka: what they rely on, and when that changes."
    "\n\nStart with `fluxplain demo`, or with `fluxplain init` for your own stream.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

PREPARE, RUN, FEED, LOOK = "Set up", "Run", "Feed data", "View results"
"""Panels of `--help`."""

console = Console()

DEFAULT_CONFIG = Path("fluxplain.toml")

ConfigPath = Annotated[
    Path,
    typer.Option("--config", "-c", metavar="FILE", help="Settings file; see `fluxplain init`."),
]
Local = Annotated[
    Path | None,
    typer.Option(
        "--local", metavar="DIR", help="Read the files of `fluxplain local` instead of topics."
    ),
]
OneStream = Annotated[
    str | None,
    typer.Option(metavar="TOPIC-PARTITION", help="The stream; by default one with new data."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print each record's JSON.")]
OnePartition = Annotated[
    int | None, typer.Option(min=0, help="The stream's partition; by default all.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def group(name: str, panel: str, text: str | None = None) -> typer.Typer:
    """Add a group of commands to the app; without a text, its callback is a command too."""
    added = typer.Typer() if text is None else typer.Typer(no_args_is_help=True, help=text)
    app.add_typer(added, name=name, rich_help_panel=panel)
    return added


def dataclass_options(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the fields of a command's dataclass parameters into options."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    flat: list[inspect.Parameter] = []
    for name, each in signature.parameters.items():
        if is_dataclass(each.annotation):
            groups[name] = each.annotation
            flat.extend(inspect.signature(groups[name], eval_str=True).parameters.values())
        else:
            flat.append(each)

    @wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
        command(**given)

    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in flat]
    vars(run)["__signature__"] = signature.replace(parameters=keywords)
    return run


def load(config: Path, role: Caller | None = None) -> Config:
    """Load the settings; importing the model and functions that they name may take long."""
    with importing():
        return load_config(config, role)


def load_reader(config: Path) -> Config:
    """Load settings for a command that only reads topics, and resolve the broker's address."""
    return resolve(load(config, "reader"))


Reader = Callable[..., Iterator[Published]]
"""Yields the records of the given topics."""


def topic_reader(settings: Config) -> Reader:
    """Return a reader of what the topics hold now."""
    return lambda *topics: from_topics(settings, topics)


def open_reader(local: Path | None, config: Path) -> tuple[Reader, Config | None]:
    """Return a reader of the files of ``fluxplain local``; or one of topics, and the settings."""
    if local is not None:
        return (lambda *topics: from_files(local, topics)), None
    settings = load_reader(config)
    return topic_reader(settings), settings


def changes_of(read: Reader) -> Iterator[Change]:
    """Yield all changes that a reader finds."""
    return (record for record, _ in read(Change.TOPIC) if isinstance(record, Change))


def partition_of(settings: Config, stream: str) -> int:
    """Return the partition of the stream that --stream names."""
    expected = settings.topic(settings.source)
    try:
        topic, partition = parse_stream(stream)
    except BadRecordError as error:
        raise ConfigError(f"--{error}") from None
    if topic != expected:
        example = stream_name(expected, 0)
        raise ConfigError(f"--stream is {stream!r}, but must be a stream such as {example}")
    return partition


def ready(settings: Config) -> Config:
    """Resolve the broker's address; raise BrokerError if topics are missing."""
    settings = resolve(settings)
    missing = missing_topics(settings)
    if missing:
        raise no_topics(settings, missing)
    return settings


def say(text: str) -> None:
    """Print a line without markup; it stays one line for those who copy it."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    _print_to_stderr(text, "yellow")


def say_error(error: object) -> None:
    """Print an error to stderr."""
    _print_to_stderr(f"Error: {error}", "red")


def of_system(error: OSError) -> str:
    """Return the message for an error of the operating system."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


def _print_to_stderr(text: str, style: str) -> None:
    Console(stderr=True, soft_wrap=True).print(text, style=style, markup=False, highlight=False)


@contextmanager
def status_for_supervisor() -> Iterator[None]:
    """Exit with a status that lets the supervisor decide whether to restart this process."""
    try:
        yield
    except (RegisteredError, BrokerError, NotYetError) as error:
        say_error(error)
        is_refusal = isinstance(error, RegisteredError | AccessError)
        raise typer.Exit(EXIT_REFUSED if is_refusal else EXIT_NOT_YET) from None
    except OSError as error:  # no user's mistake: there may be room again, or memory, or a file
        say_error(of_system(error))
        raise typer.Exit(EXIT_FAILED) from None


def progress_bar(*columns: ProgressColumn) -> Progress:
    """Return a progress bar on stderr, with columns between the bar and the elapsed time."""
    shown = [TextColumn("{task.description}", markup=False), BarColumn(), *columns]
    return ProgressLines(*shown, TimeElapsedColumn(), console=Console(stderr=True))


def check_out(out: Path, endings: tuple[str, ...], *, ignore_case: bool = False) -> None:
    """Raise ConfigError unless a file to write has one of the endings and its folder exists."""
    if not (out.name.lower() if ignore_case else out.name).endswith(endings):
        raise ConfigError(f"--out is '{out}', but must end with {' or '.join(endings)}")
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"--out is '{out}', but there is no folder '{out.parent}'")


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Name the option where its file cannot be written; leave errors of other files as they are."""
    try:
        yield
    except OSError as error:
        # a file that is written aside has the name in its own; a full disk is told without one
        if error.filename is not None and out.name not in str(error.filename):
            raise
        reason = error.strerror or error
        raise ConfigError(f"--out is '{out}', but cannot be written: {reason}") from None
