"""Measures where a figure's text is."""

from itertools import combinations
from typing import Any
from unittest.mock import patch

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from fluxplain.monitor.figures.style import styled

TOLERANCE = 1.0
"""Pixels that boxes may overlap: letters do not fill theirs."""


def texts_of(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return each text that is drawn, and its box in pixels."""
    found: list[tuple[str, Bbox]] = []
    draw = Text.draw

    def spy(self: Text, renderer: Any, *args: Any, **kwargs: Any) -> None:
        if self.get_visible() and self.get_text().strip():
            found.append((self.get_text(), Text.get_window_extent(self, renderer)))
        draw(self, renderer, *args, **kwargs)

    with patch.object(Text, "draw", spy), styled():
        figure.canvas.draw()
    return found


def assert_readable(figure: Figure) -> None:
    """Fail unless all text is within the figure, and none on another."""
    found = texts_of(figure)
    assert found
    width, height = figure.canvas.get_width_height()
    for text, box in found:
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        assert inside, f"{text!r} is cut off: {box}"
    for (text, box), (other, second) in combinations(found, 2):
        across = min(box.x1, second.x1) - max(box.x0, second.x0)
        up = min(box.y1, second.y1) - max(box.y0, second.y0)
        assert min(across, up) <= TOLERANCE, f"{text!r} is on {other!r}"


def panels(figure: Figure) -> list[str]:
    """Return the title of each panel."""
    return [axes.texts[0].get_text() for axes in figure.axes]


def written(figure: Figure) -> str:
    """Return all text of a figure, line breaks as spaces."""
    return " ".join(text.replace("\n", " ") for text, _ in texts_of(figure))
