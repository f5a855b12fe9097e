"""Saves figures to files or as inline SVG: the same records give the same bytes."""

import io
import re
from html import escape
from pathlib import Path
from typing import Any, Literal, get_args

from matplotlib.figure import Figure

from fluxplain.monitor.figures.style import (
    FAINT,
    GREY,
    INK,
    MUTED,
    PALETTE,
    PAPER,
    TEXT_COLORS,
    styled,
)
from fluxplain.schemas.wording import printable

Format = Literal["png", "svg", "pdf"]

FORMATS: tuple[Format, ...] = get_args(Format)

DPI = 200

# leave out the time and matplotlib's version
_METADATA: dict[Format, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

_BRIGHT = ("#4BA3DB", "#F08A4B", "#2DBE92", "#DE9FC2", "#E69F00", "#7CC6F2", "#FFFFFF")

DARK = {
    PAPER: "#15181C",
    INK: "#E8E8E8",
    MUTED: "#B0B0B0",
    GREY: "#8A8A8A",
    FAINT: "#4A4A4A",
    **dict(zip((*PALETTE, *TEXT_COLORS), 2 * _BRIGHT, strict=True)),
}
"""Colour on white → its counterpart on a dark page."""


def format_of(path: Path) -> Format:
    """Return the format of a file's extension."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(f"{path} must end with {', '.join('.' + each for each in FORMATS)}")
    return ending


def rendered(figure: Figure, kind: Format, *, dpi: float = DPI) -> bytes:
    """Render a figure as the content of a file."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return buffer.getvalue()


def save(figure: Figure, path: Path, *, dpi: float = DPI) -> None:
    """Write a figure to a PNG, SVG or PDF file; the extension decides."""
    path.write_bytes(rendered(figure, format_of(path), dpi=dpi))


def theme_css() -> str:
    """Return the colours as CSS variables: light, and dark if the reader prefers that on screen."""
    light = "".join(f"{_variable(color)}:{color};" for color in DARK)
    dark = "".join(f"{_variable(color)}:{other};" for color, other in DARK.items())
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark)"
        f"{{:root{{color-scheme:dark;{dark}}}}}\n"
    )


def inline_svg(figure: Figure, name: str, *, title: str, description: str) -> str:
    """Render a figure as an SVG element that follows the page's theme and width."""
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
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    return re.sub(r"<svg([^>]*)>", lambda m: f"<svg {attributes}{m[1]}>{texts}", svg, count=1)


def _variable(color: str) -> str:
    return f"--c{color.lower().removeprefix('#')}"
