"""The course of the explanations as a figure, for print."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.monitor.history import METHOD_NAMES, History, Point, StreamHistory
from schemas.explanation import Method

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe, Ito (2008), for all kinds of colour vision; without yellow, too pale for lines."""

LINE_STYLES = ("-", (0, (4, 1.5)))

GREY = "#9A9A9A"

IMPORTANT = 0.15
"""Share of the largest importance that a feature must reach, in one method, to be coloured."""

QUANTITIES: dict[Method, tuple[str, str]] = {
    "ipfi": ("loss added by replacing the feature at random", "importance [loss]"),
    "isage": ("the feature's share in the loss reduction", "importance [loss]"),
    "ipdp": ("how far the output moves with the feature", "importance [output]"),
}

WIDTH_IN = 7.2
"""Text width of a paper."""

PANEL_IN = 1.95

TOP_IN, BOTTOM_IN, GAP_IN = 0.62, 0.62, 0.42

LEFT, RIGHT = 0.095, 0.855

TEXT_PT, SMALL_PT = 8.0, 7.0

LABEL_PT = 1.2 * TEXT_PT

MAX_COLORED = int(PANEL_IN * 72 / LABEL_PT) - 1
"""Features whose labels fit beside a panel, above that of the others."""


@dataclass(frozen=True, slots=True)
class Style:
    """How the lines of one feature look."""

    color: str
    dashes: str | tuple[int, tuple[float, ...]]
    important: bool


def plot_importances(
    history: History,
    path: Path,
    *,
    drift_seq: int | None = None,
    title: str = "What the model relies on",
    stream: str | None = None,
    dpi: int = 200,
) -> None:
    """Draw one panel a method: the importance of each feature ± its standard error, over time.

    Features that matter little throughout are grey. Triangles on the axis are detected changes, and
    those at the top changes of the loss.

    Parameters
    ----------
    history
        What has been published.
    path
        The PNG file to write.
    drift_seq
        Where the stream is known to change: a dashed line; None for none.
    title
        The headline.
    stream
        Which stream; None for one that has new data.
    dpi
        Pixels per inch, at 7.2 inches of width.

    Raises
    ------
    ValueError
        If the history has no explanations of the stream.
    """
    name = stream or history.current
    state = history.streams.get(name) if name is not None else None
    if state is None or not state.latest:
        raise ValueError(f"there are no explanations of stream {name!r} to plot")
    figure = draw(state, drift_seq=drift_seq, title=title)
    figure.savefig(path, dpi=dpi, format="png")


def draw(state: StreamHistory, *, drift_seq: int | None, title: str) -> Figure:
    """Return the figure of one stream."""
    methods = state.methods
    height = TOP_IN + BOTTOM_IN + PANEL_IN * len(methods) + GAP_IN * (len(methods) - 1)
    figure = Figure(figsize=(WIDTH_IN, height), facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(methods), 1, sharex=True, squeeze=False)[:, 0]
    figure.subplots_adjust(
        left=LEFT,
        right=RIGHT,
        top=1 - TOP_IN / height,
        bottom=BOTTOM_IN / height,
        hspace=GAP_IN / PANEL_IN,
    )
    figure.text(
        LEFT, 1 - 0.12 / height, title, fontsize=10, weight="bold", va="top", parse_math=False
    )
    styles = _styles(state)
    for axes, method in zip(panels, methods, strict=True):
        _draw_panel(axes, state, method, styles)
        if drift_seq is not None:
            _mark_drift(axes, drift_seq, named=axes is panels[0])
    losses = [change.seq for change in state.changes if change.method == "loss"]
    if losses:
        _mark_losses(panels[0], losses)
    _label_time(panels[-1])
    _explain(figure, styles, height, losses=bool(losses))
    return figure


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions at least ``gap`` apart, in [low, high], as close as can be to the wanted.

    The wanted ones must be in increasing order. Least squares: neighbours that are too close are
    placed around their common mean.

    Examples
    --------
    >>> spread([0.0, 5.0, 5.2, 9.0], gap=1.0, low=0.0, high=10.0)
    [0.0, 4.6, 5.6, 9.0]
    """
    blocks: list[tuple[float, int]] = []  # mean of the wanted positions, less their gaps; size
    for i, position in enumerate(wanted):
        mean, size = position - i * gap, 1
        while blocks and blocks[-1][0] > mean:
            other, n = blocks.pop()
            mean, size = (other * n + mean * size) / (n + size), n + size
        blocks.append((mean, size))
    top = max(low, high - gap * (len(wanted) - 1))
    bases = [min(max(mean, low), top) for mean, size in blocks for _ in range(size)]
    return [base + i * gap for i, base in enumerate(bases)]


def _styles(state: StreamHistory) -> dict[str, Style]:
    """Return the styles, the same in all panels; the most important features get the first."""
    shares = dict.fromkeys(state.features, 0.0)
    for method in state.methods:
        peaks = {feature: _peak(state, feature, method) for feature in state.features}
        largest = max(peaks.values()) or 1.0
        for feature, peak in peaks.items():
            shares[feature] = max(shares[feature], peak / largest)
    styles = {}
    for rank, feature in enumerate(sorted(shares, key=lambda f: -shares[f])):
        row, column = divmod(rank, len(PALETTE))
        if shares[feature] < IMPORTANT or rank >= MAX_COLORED:
            styles[feature] = Style(GREY, "-", important=False)
        else:
            styles[feature] = Style(PALETTE[column], LINE_STYLES[row], important=True)
    return styles


def _peak(state: StreamHistory, feature: str, method: Method) -> float:
    """Return what the importance reaches for a tenth of the time, or at the end."""
    values = [abs(point.value) for point in _settled(state, feature, method)]
    return max(sorted(values)[9 * len(values) // 10], values[-1]) if values else 0.0


def _points(state: StreamHistory, feature: str, method: Method) -> list[Point]:
    series = state.series.get((feature, method))
    return series.points if series is not None else []


def _settled(state: StreamHistory, feature: str, method: Method) -> list[Point]:
    """Return the points without the first ones, which are means of a few observations."""
    points = _points(state, feature, method)
    return points[len(points) // 20 :]


def _draw_panel(axes: Axes, state: StreamHistory, method: Method, styles: dict[str, Style]) -> None:
    _dress(axes, method)
    # the most important on top
    for z, (feature, style) in enumerate(reversed(styles.items())):
        points = _points(state, feature, method)
        seqs, values = [p.seq for p in points], [p.value for p in points]
        width = 1.3 if style.important else 0.6
        axes.plot(seqs, values, color=style.color, ls=style.dashes, lw=width, zorder=3 + z)
        if style.important:
            low = [p.value - p.std_error for p in points]
            high = [p.value + p.std_error for p in points]
            axes.fill_between(seqs, low, high, color=style.color, alpha=0.18, lw=0, zorder=2)
    axes.set_ylim(*_limits(state, method))
    axes.set_xlim(0, max(1, state.newest_seq))
    _mark_changes(axes, state, method, styles)
    _label_ends(axes, state, method, styles)


def _dress(axes: Axes, method: Method) -> None:
    meaning, unit = QUANTITIES[method]
    axes.set_title(METHOD_NAMES[method], fontsize=9, weight="bold", loc="left", pad=5)
    axes.annotate(
        meaning,
        (0, 1),
        xytext=(36, 5),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=TEXT_PT,
        color="#444444",
    )
    axes.set_ylabel(unit, fontsize=TEXT_PT)
    axes.yaxis.set_label_coords(-0.075, 0.5)  # the same for all panels
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(labelsize=SMALL_PT, length=2.5, width=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(0.6)
    axes.axhline(0, color="#CCCCCC", lw=0.6, zorder=1)


def _limits(state: StreamHistory, method: Method) -> tuple[float, float]:
    """Return the range of the settled values and 0, with room for the markers below."""
    values = [p.value for f in state.features for p in _settled(state, f, method)]
    low, high = min([0.0, *values]), max([0.0, *values])
    extent = (high - low) or 1.0
    return low - 0.14 * extent, high + 0.06 * extent


def _mark_changes(
    axes: Axes, state: StreamHistory, method: Method, styles: dict[str, Style]
) -> None:
    for change in state.changes:
        if change.kind != "drift" or change.method != method or change.feature not in styles:
            continue
        style = styles[change.feature]
        axes.plot(
            [change.seq],
            [0.035],
            transform=axes.get_xaxis_transform(),
            marker="^",
            ms=5 if style.important else 3,
            mfc=style.color,
            mec="white",
            mew=0.4,
            zorder=20 if style.important else 19,
            clip_on=False,
        )


def _mark_losses(axes: Axes, seqs: Sequence[int]) -> None:
    axes.plot(
        seqs,
        [0.965] * len(seqs),
        transform=axes.get_xaxis_transform(),
        ls="",
        marker="v",
        ms=4,
        mfc="white",
        mec="#333333",
        mew=0.6,
        zorder=20,
        clip_on=False,
    )


def _label_ends(axes: Axes, state: StreamHistory, method: Method, styles: dict[str, Style]) -> None:
    """Write each name beside the end of its line; the grey ones together, if there are several."""
    ends = {f: points[-1].value for f in styles if (points := _points(state, f, method))}
    grey = [feature for feature in ends if not styles[feature].important]
    labels = [(ends[f], f, styles[f].color) for f in ends if styles[f].important]
    if len(grey) == 1:
        labels.append((ends[grey[0]], grey[0], "#6E6E6E"))
    elif grey:
        mean = sum(ends[feature] for feature in grey) / len(grey)
        labels.append((mean, f"{len(grey)} others", "#6E6E6E"))
    labels.sort(key=lambda label: label[0])
    low, high = axes.get_ylim()
    gap = (high - low) * LABEL_PT / 72 / PANEL_IN
    places = spread([value for value, _, _ in labels], gap, low, high)
    newest = axes.get_xlim()[1]
    for (value, name, color), place in zip(labels, places, strict=True):
        axes.annotate(
            _shortened(name),
            (newest, value),
            xytext=(1.025, (place - low) / (high - low)),
            textcoords="axes fraction",
            fontsize=TEXT_PT,
            color=color,
            va="center",
            annotation_clip=False,
            parse_math=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "lw": 0.6,
                "relpos": (0, 0.5),
                "shrinkA": 0,
                "shrinkB": 1,
            },
        )


def _shortened(name: str, limit: int = 15) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"


def _mark_drift(axes: Axes, drift_seq: int, *, named: bool) -> None:
    axes.axvline(drift_seq, color="#333333", lw=0.8, ls=(0, (4, 3)), zorder=1.5)
    if named:
        axes.annotate(
            "drift",
            (drift_seq, 1),
            xytext=(3, -2),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            fontsize=TEXT_PT,
            color="#333333",
            va="top",
        )


def _label_time(axes: Axes) -> None:
    axes.set_xlabel("observations (seq)", fontsize=TEXT_PT)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seq, _: f"{seq:,.0f}"))


def _explain(figure: Figure, styles: dict[str, Style], height: float, *, losses: bool) -> None:
    grey = sorted(feature for feature, style in styles.items() if not style.important)
    of_loss = " ▽ of the loss." if losses else ""
    note = f"▲ detected change.{of_loss} Bands: ± standard error."
    if len(grey) > 1:
        names = ", ".join(_shortened(feature) for feature in grey[:8])
        note += f" Grey: {names}{', …' if len(grey) > 8 else ''}."
    figure.text(LEFT, 0.08 / height, note, fontsize=SMALL_PT, color="#444444", parse_math=False)
