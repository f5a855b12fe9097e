"""Figures within a page: their colours follow the page's theme, and their ids are their own."""

import re
from html import escape

from matplotlib.figure import Figure

from pipeline.monitor.plots.saving import rendered
from pipeline.monitor.plots.style import FAINT, GREY, INK, MUTED, PALETTE, PAPER, TEXT_COLORS
from pipeline.monitor.text import printable

DARK = {
    PAPER: "#15181C",
    INK: "#E8E8E8",
    MUTED: "#B0B0B0",
    GREY: "#8A8A8A",
    FAINT: "#4A4A4A",
    **dict(
        zip(
            (*PALETTE, *TEXT_COLORS),
            2 * ("#4BA3DB", "#F08A4B", "#2DBE92", "#DE9FC2", "#E69F00", "#7CC6F2", "#FFFFFF"),
            strict=True,
        )
    ),
}
"""Colour on white → colour of the same thing on a dark page."""


def theme_css() -> str:
    """Return the colours as variables: light, and dark where the reader prefers that on screen."""
    light = "".join(f"{_variable(color)}:{color};" for color in DARK)
    dark = "".join(f"{_variable(color)}:{other};" for color, other in DARK.items())
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark)"
        f"{{:root{{color-scheme:dark;{dark}}}}}\n"
    )


def inline_svg(figure: Figure, name: str, *, title: str, description: str) -> str:
    """Return a figure as an element of a page.

    Parameters
    ----------
    figure
        The figure.
    name
        Its id in the page; letters, digits and hyphens.
    title, description
        What a screen reader says of it.
    """
    svg = rendered(figure, "svg").decode()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub("|".join(DARK), lambda m: f"var({_variable(m[0])})", svg, flags=re.IGNORECASE)
    attributes = f'id="{name}" role="img" aria-labelledby="{name}-title {name}-text"'
    texts = (
        f'<title id="{name}-title">{escape(printable(title))}</title>'
        f'<desc id="{name}-text">{escape(printable(description))}</desc>'
    )
    # its size is the page's
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    return re.sub(r"<svg([^>]*)>", lambda m: f"<svg {attributes}{m[1]}>{texts}", svg, count=1)


def _variable(color: str) -> str:
    return f"--c{color.lower().removeprefix('#')}"
