"""Commands that show what is published."""

import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Annotated

import typer
from rich.live import Live

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, console, load
from pipeline.config import Config, ConfigError
from pipeline.interruption import until_interrupted
from pipeline.kafka.embedded import resolve
from pipeline.kafka.lag import LagMonitor
from pipeline.kafka.reader import TopicReader, read_to_end
from pipeline.monitor.history import History
from pipeline.monitor.rates import Rates
from pipeline.monitor.tail import line
from pipeline.monitor.text import printable
from pipeline.monitor.watch import WatchView
from pipeline.outputs import OUTPUTS
from schemas import RECORDS, BadRecordError, DeadLetter, parse_stream, stream_name
from schemas.explanation import Method

PANEL = "Look"

TOPICS = tuple(record.TOPIC for record in RECORDS)


@app.command(rich_help_panel=PANEL)
def tail(  # noqa: PLR0917  options of a command
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
    stream: Annotated[
        str | None,
        typer.Option(metavar="TOPIC-PARTITION", help="With --seqs; by default partition 0."),
    ] = None,
    seqs: Annotated[
        str | None,
        typer.Option(metavar="FIRST-LAST", help="Of features: only these, and end."),
    ] = None,
) -> None:
    """Print the records of a topic as they come, until Ctrl-C; or observations by their seq.

    Those of one partition come in their order.
    """
    settings = resolve(load(config, "reader"))
    name = topic.removeprefix(settings.topics.prefix)
    if name not in {*TOPICS, settings.source}:
        raise ConfigError(f"there is no topic {topic!r}: use one of {', '.join(TOPICS)}")
    if seqs is not None:
        if name != settings.source:
            raise ConfigError(f"--seqs is of {settings.source} only, not of {name}")
        _print_observations(settings, stream, seqs, as_json=as_json)
        return
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
    method: Annotated[Method | None, typer.Option(help="Which method; by default all.")] = None,
    feature: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose band to draw; by default the most important."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="Which smoothing rate; by default the first of the settings."),
    ] = None,
) -> None:
    """Show live what the model relies on, how that moved, its loss, the lag and the last changes.

    Beside each importance, with its standard error, stands its course; more columns make it longer.
    Below, one course is drawn in its band of two standard errors; a wide terminal shows several, a
    low one none. `fluxplain explain-change ID` tells more of a change, `fluxplain streams` of all
    streams.
    """
    settings = load(config, "reader")
    _check_shown(settings, stream, {"method": method, "feature": feature, "alpha": alpha})
    settings = resolve(settings)
    rates = Rates.first(settings) if alpha is None else Rates(alpha)
    history = History(rates=rates)
    with (
        until_interrupted(),
        TopicReader(settings, list(OUTPUTS), from_beginning=True) as reader,
        LagMonitor(settings) as lag,
        Live(console=console, auto_refresh=False, screen=console.is_terminal) as live,
    ):
        while True:
            messages = reader.poll(0.25)
            now = time.monotonic()
            for message in messages:
                _add(history, stream, reader.name(message), message.value(), now)
            view = WatchView(
                history,
                stream=stream,
                method=method,
                feature=feature,
                alpha=rates.of(stream or history.current),
                lags=lag.latest,
                now=now,
            )
            live.update(view, refresh=True)


def _check_shown(
    settings: Config, stream: str | None, shown: Mapping[str, str | float | None]
) -> None:
    """Raise ``ConfigError`` if something is to be shown that is never published."""
    if stream is None:
        shared = [settings, *settings.own_streams.values()]
    else:
        shared = [settings.of_stream(_partition(settings, stream))]
    published: Mapping[str, list[Sequence[str | float]]] = {
        "method": [each.explain.methods for each in shared],
        "feature": [each.explained for each in shared],
        "alpha": [each.explain.alphas for each in shared],
    }
    for option, value in shown.items():
        known = list(dict.fromkeys(chain.from_iterable(published[option])))
        if value is not None and value not in known:
            listed = ", ".join(map(str, known))
            raise ConfigError(f"--{option} is {value}, but the settings have {listed}")


def _partition(settings: Config, stream: str) -> int:
    expected = settings.topic(settings.source)
    try:
        topic, partition = parse_stream(stream)
    except BadRecordError as error:
        raise ConfigError(f"--{error}") from None
    if topic != expected:
        example = stream_name(expected, 0)
        raise ConfigError(f"--stream is {stream!r}, but it must be as --stream {example}")
    return partition


def _print_observations(settings: Config, stream: str | None, seqs: str, *, as_json: bool) -> None:
    expected = settings.topic(settings.source)
    partition = 0 if stream is None else _partition(settings, stream)
    found = re.fullmatch(r"(\d{1,18})-(\d{1,18})", seqs)
    if not found:
        raise ConfigError(f"--seqs is {seqs!r}, but it must be as --seqs 2400-2627")
    first, last = map(int, found.groups())
    printed = 0
    with until_interrupted():
        for message in read_to_end(settings, settings.source, {partition: first}):
            seq = message.offset() or 0
            if seq > last:
                break
            if seq >= first:
                printed += 1
                text = _printed(settings.source, message.value(), as_json=True)
                print(text if as_json else f"{seq}  {printable(text)}")
    if not printed:
        raise ConfigError(f"{expected}-{partition} has no observations {seqs}, or no longer")


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


def _add(history: History, stream: str | None, name: str, value: bytes | None, now: float) -> None:
    # what somebody else wrote into our topics is no reason to stop showing them
    with suppress(BadRecordError):
        record = OUTPUTS[name].decode(value)
        # of many streams, those that nobody asked for would take much memory
        if stream in {None, getattr(record, "stream", None)} or isinstance(record, DeadLetter):
            history.add(record, now)
