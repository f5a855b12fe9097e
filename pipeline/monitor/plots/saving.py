"""Figures as files: the same records give the same bytes."""

import io
from pathlib import Path
from typing import Any, Literal, get_args

from matplotlib.figure import Figure

from pipeline.monitor.plots.style import styled

Format = Literal["png", "svg", "pdf"]

FORMATS: tuple[Format, ...] = get_args(Format)

DPI = 200

# without the time and the library's version
_METADATA: dict[Format, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def format_of(path: Path) -> Format:
    """Return the format that a file's ending names.

    Raises
    ------
    ValueError
        If it names none.

    Examples
    --------
    >>> format_of(Path("story.SVG"))
    'svg'
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(f"{path} must end with {', '.join('.' + each for each in FORMATS)}")
    return ending


def rendered(figure: Figure, kind: Format, *, dpi: float = DPI) -> bytes:
    """Return a figure as the content of a file."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return buffer.getvalue()


def save(figure: Figure, path: Path, *, dpi: float = DPI) -> None:
    """Write a figure to a file: PNG, SVG or PDF, by its ending.

    Parameters
    ----------
    figure
        What to write.
    path
        Where to.
    dpi
        Pixels per inch, of PNG.

    Raises
    ------
    ValueError
        If the ending is another one.
    """
    path.write_bytes(rendered(figure, format_of(path), dpi=dpi))
