"""Colours that everybody can see on paper, text that fits, and figures that are reproducible."""

from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxplain.monitor.figures import curves_figure, importance_figure, save, story_figure
from fluxplain.monitor.figures.effect_figures import effects_of
from fluxplain.monitor.figures.saving import DARK, rendered
from fluxplain.monitor.figures.style import INK, MUTED, PAPER, TEXT_COLORS, Picture
from fluxplain.monitor.figures.text_fit import (
    legible,
    short_names,
    shortened,
    spread,
    text_width,
    wrapped,
)
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.selection import SelectedResults
from tests.kit.support import PROPERTY
from tests.monitor.figures.samples import drift_of, stream_of


@cache
def picture() -> Picture:
    return importance_figure(SelectedResults.of(stream_of(6)).view)


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
    save(picture(), tmp_path / name, dpi=30)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_another_ending_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.gif must end with \.png, \.svg, \.pdf"):
        save(picture(), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_picture_as_it_is_saved() -> None:
    assert picture()._repr_png_() == rendered(picture(), "png")


SHORT_PROPERTY = settings(PROPERTY, max_examples=25)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12).map(sorted))
def test_spread_positions_are_apart_within_bounds_and_in_order(wanted: list[float]) -> None:
    places = spread(wanted, gap=2.0, low=-100.0, high=100.0)
    assert len(places) == len(wanted)
    assert all(b - a >= 2.0 - 1e-9 for a, b in pairwise(places))
    assert places[0] >= -100.0
    assert places[-1] <= 100.0 + 1e-9
    if all(b - a >= 2.0 for a, b in pairwise(wanted)):
        assert places == pytest.approx(wanted)


@SHORT_PROPERTY
@given(st.text(st.characters(codec="latin-1"), min_size=1, max_size=300), st.floats(0.4, 2.0))
def test_a_shortened_name_fits_and_one_that_fits_is_whole(name: str, room: float) -> None:
    short = shortened(name, room, 8.0)
    assert short.isprintable()
    assert text_width(short, 8.0) <= room
    if name == legible(name) and text_width(name, 8.0) <= room:
        assert short == name


def test_short_names_of_names_that_differ_in_the_middle_differ() -> None:
    names = [f"amount_of_{i}_last_days" for i in range(20)]
    short = short_names(names, 0.6, 8.0)
    assert list(short) == names
    assert len(set(short.values())) == 20


@SHORT_PROPERTY
@given(st.text(max_size=200))
def test_wrapped_lines_fit_and_lose_no_short_word(text: str) -> None:
    lines = wrapped(text, 1.0, 8.0).split("\n")
    assert all(text_width(line, 8.0) <= 1.0 for line in lines)
    words = [word for word in legible(text).split() if len(word) < 4]
    assert set(words) <= set(" ".join(lines).split())
