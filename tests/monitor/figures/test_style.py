"""Colours that everybody can tell from the paper, and figures that are the same each time."""

from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest

from fluxplain.monitor.figures import curves_figure, importance_figure, save, story_figure
from fluxplain.monitor.figures.effect_figures import effects_of
from fluxplain.monitor.figures.saving import DARK, rendered
from fluxplain.monitor.figures.style import INK, MUTED, PAPER, TEXT_COLORS, Picture
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.selection import SelectedResults
from tests.monitor.figures.samples import drift_of, stream_of


def figures() -> list[Picture]:
    view = SelectedResults.of(stream_of(6)).view
    return [
        importance_figure(view),
        curves_figure(effects_of(view)),
        story_figure(ChangeContext(drift_of("f0"))),
    ]


def luminance(color: str) -> float:
    """Return the relative luminance of a colour (WCAG 2)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


def contrast(color: str, other: str) -> float:
    high, low = sorted((luminance(color), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("color", [INK, MUTED, *TEXT_COLORS])
def test_text_can_be_read_on_white_and_in_the_dark(color: str) -> None:
    assert contrast(color, PAPER) >= 4.5
    assert contrast(DARK[color], DARK[PAPER]) >= 4.5


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def files() -> list[bytes]:
        drawn = figures()
        return [
            *(rendered(figure, "svg") for figure in drawn),
            rendered(drawn[0], "png"),
            rendered(drawn[0], "pdf"),
        ]

    first = files()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    monkeypatch.setitem(mpl.rcParams, "font.size", 20.0)  # a user's settings have no say
    monkeypatch.setitem(mpl.rcParams, "svg.hashsalt", "another")
    assert files() == first


def test_a_drawing_does_not_change_the_users_settings() -> None:
    before = dict(mpl.rcParams)
    rendered(figures()[0], "svg")
    assert dict(mpl.rcParams) == before


def test_an_svg_is_well_formed_and_of_print_width() -> None:
    for figure in figures():
        root = ET.fromstring(rendered(figure, "svg"))
        assert root.get("width") == f"{7.2 * 72}pt"


# the header of a PNG has its width: 7.2 inches
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + int(7.2 * 30).to_bytes(4)


@pytest.mark.parametrize(("name", "magic"), [("a.PNG", PNG), ("a.pdf", b"%PDF")])
def test_the_ending_says_what_is_written(tmp_path: Path, name: str, magic: bytes) -> None:
    save(figures()[0], tmp_path / name, dpi=30)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_another_ending_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.gif must end with \.png, \.svg, \.pdf"):
        save(figures()[0], tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_picture_as_it_is_saved() -> None:
    figure = figures()[0]
    assert figure._repr_png_() == rendered(figure, "png")
