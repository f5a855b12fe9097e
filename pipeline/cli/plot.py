"""Commands that plot published records: figures for print, and a report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluxplain.cli import common as cli
from fluxplain.cli.interruption import until_interrupted
from fluxplain.config import ConfigError
from fluxplain.monitor import figures
from fluxplain.results.change_context import ChangeContext, strongest
from fluxplain.results.feature_names import FeatureNames
from fluxplain.results.lookup import find_drift
from fluxplain.results.selection import NothingToPlotError, SelectedResults, Selection
from fluxplain.results.stream_results import Alphas
from fluxplain.schemas.methods import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

plot_app = cli.group(
    "plot",
    cli.LOOK,
    "Plot results as figures or as a report.\n\n"
    "Plots use all records that the topics hold now or, with `--local`, the files of `fluxplain "
    "local`. The same records give the same file, byte for byte.",
)


# Typer cannot repeat an option of literals
MethodName = StrEnum("MethodName", {name.upper(): name for name in METHODS})  # type: ignore[misc]

Methods = Annotated[
    list[MethodName] | None, typer.Option("--method", help="Only this method; repeatable.")
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the figure or report.")]


@dataclass(kw_only=True)
class Picture:
    """Options of a figure."""

    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="File to write: .png, .svg or .pdf."),
    ]
    title: Title = None
    width: Annotated[
        float, typer.Option(metavar="INCHES", min=5.0, max=30.0, help="Width of the figure.")
    ] = 7.2
    dpi: Annotated[int, typer.Option(min=30, max=1200, help="Pixels per inch of a PNG file.")] = 200

    def write(self, draw: "Callable[..., Figure]") -> None:
        """Draw the figure and save it with these options."""
        cli.check_out(self.out, (".png", ".svg", ".pdf"), ignore_case=True)
        own = {} if self.title is None else {"title": self.title}
        with until_interrupted():
            figure = draw(width_in=self.width, **own)
            with cli.writing(self.out):
                figures.save(figure, self.out, dpi=self.dpi)
            cli.say(f"Wrote {self.out}")


@dataclass(kw_only=True)
class Source:
    """Options for the source of the records and their smoothing rate."""

    local: cli.Local = None
    config: cli.ConfigPath = cli.DEFAULT_CONFIG
    alpha: Annotated[
        float | None,
        typer.Option(help="The smoothing rate to show; by default the first."),
    ] = None

    def open(self, *, units: bool = False) -> tuple[cli.Reader, FeatureNames, Alphas]:
        """Return a reader of the records, the names that it gives to features, and the alphas.

        With ``units``, the names have their units.
        """
        read, settings = cli.open_reader(self.local, self.config)
        names = FeatureNames.configured(settings)
        names = names.with_units() if units else names
        if settings is None or self.alpha is not None:
            return names.reading(read), names, Alphas.only(self.alpha)
        return names.reading(read), names, Alphas.configured(settings)


@dataclass(kw_only=True)
class Records(Source):
    """Options that select records."""

    stream: cli.OneStream = None
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", metavar="NAME", help="Only this feature; repeatable."),
    ] = None
    first: Annotated[
        int, typer.Option("--from", metavar="SEQ", min=0, help="First observation.")
    ] = 0
    last: Annotated[
        int | None, typer.Option("--to", metavar="SEQ", min=0, help="Last observation.")
    ] = None

    def select(
        self, methods: Sequence[str] | None, *, units: bool = False
    ) -> tuple[cli.Reader, Selection, Alphas]:
        """Return a reader of the records, their selection, and the smoothing rates to show."""
        read, names, alphas = self.open(units=units)
        if self.last is not None and self.last < self.first:
            raise ConfigError(f"--to is {self.last}, but must be at least --from, {self.first}")
        selection = Selection(
            streams=frozenset() if self.stream is None else frozenset({self.stream}),
            methods=frozenset(methods or ()),
            features=frozenset(map(names.of, self.feature or ())),
            first_seq=self.first,
            last_seq=self.last,
        )
        return read, selection, alphas


@plot_app.command()
@cli.dataclass_options
def importance(picture: Picture, records: Records, method: Methods = None) -> None:
    """Plot each feature's importance over time.

    The figure also shows standard errors and changes.
    """

    def draw(**options: Any) -> "Figure":
        published = read("explanations", "changes")
        view = SelectedResults(published, selection, alphas=alphas).view
        return figures.importance_figure(view, **options)

    read, selection, alphas = records.select(method)
    picture.write(draw)


@plot_app.command()
@cli.dataclass_options
def pdp(picture: Picture, records: Records) -> None:
    """Plot each feature's effect on the prediction.

    The figure shows the current iPDP curve, with earlier ones fading. With `explain.ipdp.ice`, it
    also shows the ICE curves of the last observations. Pairs, such as `--feature "age|salary"`, are
    plotted as maps.
    """

    def draw(**options: Any) -> "Figure":
        from fluxplain.monitor.figures import effect_figures  # noqa: PLC0415  slow to load

        view = SelectedResults(read("explanations"), selection, alphas=alphas).view
        if curves := effect_figures.effects_of(view):
            return effect_figures.curves_figure(curves, **options)
        if surfaces := effect_figures.surfaces_of(view):
            return effect_figures.surfaces_figure(surfaces, **options)
        raise NothingToPlotError("there are no iPDP curves to plot")

    read, selection, alphas = records.select(["ipdp"], units=True)
    picture.write(draw)


@plot_app.command()
@cli.dataclass_options
def change(
    change_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="The change's id, or at least its first 4 digits."),
    ],
    picture: Picture,
    source: Source,
) -> None:
    """Plot one change with its context.

    The figure shows the explanation around the change with its means before and after, the model's
    loss, the curve before and after, and the movement of all features' importances.
    """

    def draw(**options: Any) -> "Figure":
        context = ChangeContext(find_drift(cli.changes_of(read), change_id))
        streams = frozenset({context.change.stream})
        around = Selection(streams=streams, first_seq=context.window.begin)
        SelectedResults(read("predictions", "explanations"), around, [context], alphas=alphas)
        return figures.story_figure(context, **options)

    read, _, alphas = source.open()
    picture.write(draw)


@plot_app.command()
@cli.dataclass_options
def report(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write: .html.")],
    records: Records,
    method: Methods = None,
    title: Title = None,
    stories: Annotated[
        int, typer.Option(min=0, max=100, help="Number of changes with a figure, clearest first.")
    ] = 10,
) -> None:
    """Write an HTML report.

    The report is one file with a summary, importances, curves, changes and figures of changes. It
    needs no network and no scripts, and can be printed. Tables repeat what the figures show.
    """
    cli.check_out(out, (".html",), ignore_case=True)
    read, selection, alphas = records.select(method)
    with until_interrupted():
        changes = cli.changes_of(read)
        wanted = [each for each in changes if selection.fits(each, of_all_features=True)]
        contexts = map(ChangeContext, strongest(wanted, stories))
        published = read("predictions", "explanations", "changes")
        results = SelectedResults(published, selection, contexts, alphas=alphas)
        page = figures.report_page(results, title=title)
        with cli.writing(out):
            out.write_text(page, encoding="utf-8")
        cli.say(f"Wrote {out}")
