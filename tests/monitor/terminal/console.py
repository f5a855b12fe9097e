"""Prints as into a file, or a terminal, without colour."""

import io

from rich.console import Console, RenderableType


def printed(
    what: RenderableType,
    *,
    width: int = 80,
    height: int | None = None,
    terminal_height: int | None = None,
) -> str:
    """Return what is printed, in a part or a terminal of some height."""
    file = io.StringIO()
    console = Console(
        width=width,
        height=terminal_height,
        no_color=True,
        file=file,
        legacy_windows=False,
        force_terminal=terminal_height is not None,
    )
    console.print(what, crop=False, height=height)
    return file.getvalue()
