"""Commands that show what is published."""

import sys
import time
from contextlib import suppress
from typing import Annotated

import typer
from rich.live import Live

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, console, load
from pipeline.config import ConfigError
from pipeline.interruption import until_interrupted
from pipeline.kafka.embedded import (
    resolve,
)
from pipeline.kafka.reader import TopicReader
from pipeline.monitor.history import History
from pipeline.monitor.tail import line
from pipeline.monitor.text import printable
from pipeline.monitor.watch import render
from pipeline.outputs import OUTPUTS
from schemas import RECORDS, BadRecordError

PANEL = "Look"

TOPICS = tuple(record.TOPIC for record in RECORDS)


@app.command(rich_help_panel=PANEL)
def tail(
    topic: Annotated[str, typer.Argument(help=f"One of {', '.join(TOPICS)}.")],
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: Annotated[
        bool, typer.Option("--json", help="Each record as it is on the topic.")
    ] = False,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest record there is.")
    ] = False,
    until_idle: Annotated[
        float | None,
        typer.Option(min=0.1, metavar="SECONDS", help="End when nothing came for so long."),
    ] = None,
) -> None:
    """Print the records of a topic as they come, until Ctrl-C."""
    settings = resolve(load(config))
    name = topic.removeprefix(settings.topics.prefix)
    if name not in TOPICS:
        raise ConfigError(f"there is no topic {topic!r}: use one of {', '.join(TOPICS)}")
    with (
        until_interrupted(),
        TopicReader(settings, [name], from_beginning=from_beginning) as reader,
    ):
        last = time.monotonic()
        while until_idle is None or time.monotonic() - last < until_idle:
            for message in reader.poll(0.2):
                last = time.monotonic()
                print(_printed(name, message.value(), as_json=as_json))
            sys.stdout.flush()


@app.command(rich_help_panel=PANEL)
def watch(
    config: ConfigPath = DEFAULT_CONFIG,
    stream: Annotated[
        str | None,
        typer.Option(metavar="TOPIC-PARTITION", help="Which stream; by default one with news."),
    ] = None,
) -> None:
    """Show live what the model relies on now, its loss, throughput and the latest changes."""
    settings = resolve(load(config))
    history = History(alpha=settings.explain.alphas[0])
    with (
        until_interrupted(),
        TopicReader(settings, list(OUTPUTS), from_beginning=True) as reader,
        Live(console=console, auto_refresh=False, screen=console.is_terminal) as live,
    ):
        while True:
            messages = reader.poll(0.25)
            now = time.monotonic()
            for message in messages:
                _add(history, reader.name(message), message.value(), now)
            live.update(render(history, stream=stream, now=now), refresh=True)


def _printed(name: str, value: bytes | None, *, as_json: bool) -> str:
    text = (value or b"null").decode(errors="backslashreplace")
    if as_json:
        return text
    if name not in OUTPUTS:
        return printable(text)
    try:
        return printable(line(OUTPUTS[name].decode(value)))
    except BadRecordError:
        return printable(text)


def _add(history: History, name: str, value: bytes | None, now: float) -> None:
    # what somebody else wrote into our topics is no reason to stop showing them
    with suppress(BadRecordError):
        history.add(OUTPUTS[name].decode(value), now)
