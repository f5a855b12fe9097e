"""Commands that draw what was published: figures for print, and a report."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, load, say
from pipeline.config import ConfigError
from pipeline.interruption import until_interrupted
from pipeline.kafka.embedded import resolve
from pipeline.monitor.lookup import UnknownChangeError, find
from pipeline.monitor.past import NothingError, Past, Selection
from pipeline.monitor.rates import Rates
from pipeline.monitor.surroundings import Story, strongest
from pipeline.published import from_files, from_topics
from schemas import Change, Record
from schemas.explanation import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL = "Look"

ENDINGS = (".png", ".svg", ".pdf")

plot_app = typer.Typer(
    no_args_is_help=True,
    help="Draw what was published, for print or as a report.\n\n"
    "From the topics, all that is there now; or, with --local, from the files that "
    "`fluxplain local` wrote. The same records give the same file.",
)
app.add_typer(plot_app, name="plot", rich_help_panel=PANEL)


class MethodName(StrEnum):
    """The methods, as an option that may be given several times needs them."""

    IPFI = "ipfi"
    ISAGE = "isage"
    IPDP = "ipdp"


Out = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="FILE", help="File to write: .png, .svg or .pdf."),
]
Local = Annotated[
    Path | None,
    typer.Option(
        "--local", metavar="DIR", help="Read what `fluxplain local` wrote, instead of topics."
    ),
]
Stream = Annotated[
    str | None,
    typer.Option(metavar="TOPIC-PARTITION", help="Which stream; by default one with new data."),
]
Features = Annotated[
    list[str] | None,
    typer.Option("--feature", metavar="NAME", help="Only this one; may be repeated."),
]
Methods = Annotated[
    list[MethodName] | None,
    typer.Option("--method", help="Only this one; may be repeated."),
]
Alpha = Annotated[
    float | None,
    typer.Option(help="Which smoothing rate, of several; by default the first."),
]
First = Annotated[int, typer.Option("--from", metavar="SEQ", min=0, help="First observation.")]
Last = Annotated[int | None, typer.Option("--to", metavar="SEQ", min=0, help="Last observation.")]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="The headline.")]
Width = Annotated[float, typer.Option(metavar="INCHES", min=5.0, max=30.0, help="Of the figure.")]
Dpi = Annotated[int, typer.Option(min=30, max=1200, help="Pixels per inch, of PNG.")]

WIDTH_IN, DPI = 7.2, 200


@plot_app.command()
def importance(  # noqa: PLR0917  options of a command
    out: Out,
    local: Local = None,
    config: ConfigPath = DEFAULT_CONFIG,
    stream: Stream = None,
    method: Methods = None,
    feature: Features = None,
    alpha: Alpha = None,
    first: First = 0,
    last: Last = None,
    title: Title = None,
    width: Width = WIDTH_IN,
    dpi: Dpi = DPI,
) -> None:
    """Draw the importance of each feature over time, with standard errors and changes."""

    def draw(read: Reader) -> "Figure":
        from pipeline.monitor.plots import importance_figure  # noqa: PLC0415  slow to load

        past = Past.of(read("explanations", "changes"), chosen)
        return importance_figure(past.state, **_given(title, width))

    read, rates = _source(local, config, alpha)
    chosen = _selection(stream, method, feature, rates, first, last)
    _draw(draw, out, dpi, read)


@plot_app.command()
def pdp(  # noqa: PLR0917
    out: Out,
    local: Local = None,
    config: ConfigPath = DEFAULT_CONFIG,
    stream: Stream = None,
    feature: Features = None,
    alpha: Alpha = None,
    first: First = 0,
    last: Last = None,
    title: Title = None,
    width: Width = WIDTH_IN,
    dpi: Dpi = DPI,
) -> None:
    """Draw how the output depends on each feature: the curves now, and earlier ones fading.

    With explain.ipdp.ice also the curves of the last observations. Pairs, such as
    --feature "age|salary", are drawn as maps.
    """

    def draw(read: Reader) -> "Figure":
        from pipeline.monitor.plots.curves import curves_figure  # noqa: PLC0415
        from pipeline.monitor.plots.effects import effects_of  # noqa: PLC0415
        from pipeline.monitor.plots.surfaces import surfaces_figure  # noqa: PLC0415

        past = Past.of(read("explanations"), chosen)
        if effects := effects_of(past):
            return curves_figure(effects, **_given(title, width))
        if surfaces := {pair: curves[-1] for pair, curves in past.curves.items()}:
            return surfaces_figure(surfaces, **_given(title, width))
        raise NothingError("there are no iPDP curves to plot")

    read, rates = _source(local, config, alpha)
    chosen = _selection(stream, [MethodName.IPDP], feature, rates, first, last)
    _draw(draw, out, dpi, read)


@plot_app.command()
def change(  # noqa: PLR0917
    change_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="The change's id, or its first 4 digits or more."),
    ],
    out: Out,
    local: Local = None,
    config: ConfigPath = DEFAULT_CONFIG,
    alpha: Alpha = None,
    title: Title = None,
    width: Width = WIDTH_IN,
    dpi: Dpi = DPI,
) -> None:
    """Draw the story of one change in one picture.

    The explanation around it with the means before and after, the model's loss, the curve before
    and after, and how the importances of all features moved.
    """

    def draw(read: Reader) -> "Figure":
        from pipeline.monitor.plots import story_figure  # noqa: PLC0415

        story = Story(_found(change_id, read("changes")))
        around = Selection(stream=story.change.stream, first_seq=story.window.begin, rates=rates)
        Past(around, [story]).take(read("predictions", "explanations"))
        return story_figure(story, title=title, width_in=width)

    read, rates = _source(local, config, alpha)
    _draw(draw, out, dpi, read)


@plot_app.command()
def report(  # noqa: PLR0917
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write: .html.")],
    local: Local = None,
    config: ConfigPath = DEFAULT_CONFIG,
    stream: Stream = None,
    method: Methods = None,
    feature: Features = None,
    alpha: Alpha = None,
    first: First = 0,
    last: Last = None,
    title: Title = None,
    stories: Annotated[
        int, typer.Option(min=0, max=100, help="Changes with a picture, the clearest ones.")
    ] = 10,
) -> None:
    """Write all of it into one HTML file: a summary, importances, curves, changes, their stories.

    It needs no network and no script, and prints; what the figures show is there as tables too.
    """
    _check_ending(out, (".html",))
    read, rates = _source(local, config, alpha)
    chosen = _selection(stream, method, feature, rates, first, last)
    with until_interrupted():
        from pipeline.monitor.plots import report_page  # noqa: PLC0415

        changes = [each for each in read("changes") if isinstance(each, Change)]
        told = strongest([each for each in changes if chosen.holds(each)], stories)
        past = Past(chosen, map(Story, told))
        past.take(read("predictions", "explanations", "changes"))
        try:
            out.write_text(report_page(past, title=title), encoding="utf-8")
        except NothingError as error:
            raise ConfigError(str(error)) from None
        say(f"Wrote {out}")


Reader = Callable[..., Iterator[Record]]
"""Yields the records of the topics that it is asked for."""


def _draw(draw: Callable[[Reader], "Figure"], out: Path, dpi: int, read: Reader) -> None:
    _check_ending(out, ENDINGS)
    with until_interrupted():
        from pipeline.monitor.plots import save  # noqa: PLC0415

        try:
            save(draw(read), out, dpi=dpi)
        except NothingError as error:
            raise ConfigError(str(error)) from None
        say(f"Wrote {out}")


def _source(local: Path | None, config: Path, alpha: float | None) -> tuple[Reader, Rates]:
    """Return what reads the records, and which smoothing rates to show."""
    if local is not None:
        return (lambda *topics: from_files(local, topics)), Rates(alpha)
    settings = resolve(load(config, "reader"))
    rates = Rates.first(settings) if alpha is None else Rates(alpha)
    return (lambda *topics: from_topics(settings, topics)), rates


def _selection(  # noqa: PLR0917
    stream: str | None,
    methods: Sequence[MethodName] | None,
    features: Sequence[str] | None,
    rates: Rates,
    first: int,
    last: int | None,
) -> Selection:
    if last is not None and last < first:
        raise ConfigError(f"--to is {last}, but must be at least --from, {first}")
    return Selection(
        stream=stream,
        methods=tuple(method for method in METHODS if methods is None or method in methods),
        features=frozenset(features) if features else None,
        first_seq=first,
        last_seq=last,
        rates=rates,
    )


def _given(title: str | None, width: float) -> dict[str, Any]:
    return {"width_in": width} | ({} if title is None else {"title": title})


def _found(change_id: str, records: Iterator[Record]) -> Change:
    try:
        found = find((each for each in records if isinstance(each, Change)), change_id)
    except UnknownChangeError as error:
        raise ConfigError(str(error)) from None
    change = found.change
    if change is None:
        ids = ", ".join(each.id for each in found.incident)
        raise ConfigError(f"{change_id} is an incident: name one of its changes, {ids}")
    if change.kind != "drift":
        raise ConfigError(f"{change.id} is a {change.kind}, of which there is no picture")
    return change


def _check_ending(out: Path, endings: tuple[str, ...]) -> None:
    if out.suffix.lower() not in endings:
        raise ConfigError(f"--out is '{out}', but must end with {' or '.join(endings)}")
    if not out.parent.is_dir():
        raise ConfigError(f"--out is '{out}', but there is no folder '{out.parent}'")
