"""All streams in a terminal: they fit, in the order of their changes, whatever they are called."""

import pytest

from fluxplain.monitor.terminal.all_streams import PipelineResults, StreamsView
from fluxplain.results.store import Store
from fluxplain.results.stream_results import Alphas
from tests.kit.records import letter
from tests.kit.support import make_config
from tests.monitor.dashboard.stream import change, name, records
from tests.monitor.terminal.console import printed

CONFIG = make_config(features={name(i): "numeric" for i in range(3)}, explain={"alpha": 0.001})


def pipeline(*streams: str, prefix: str = "fluxplain.") -> tuple[str, Store]:
    known = Store(f"{prefix}features")
    for i, stream in enumerate(streams):
        for record in records(120 + i, features=3, stream=f"{prefix}{stream}"):
            known.add(record, i)
    return prefix, known


def shown(*pipelines: tuple[str, Store], width: int = 80, height: int | None = None) -> str:
    alphas = Alphas.configured(CONFIG)
    view = StreamsView([PipelineResults(*each, alphas) for each in pipelines], now=0.0)
    return printed(view, width=width, terminal_height=height)


def first_cells(text: str) -> list[str]:
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("──"))
    return [line.split()[0] for line in lines[begin + 1 : -1]]


def test_each_stream_has_a_row_in_80_columns() -> None:
    of = pipeline("features-0", "features-1", "features-10")
    of[1].add(change("f1", 77, "isage", stream="fluxplain.features-10"), 0, at=1)
    text = shown(of)
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("fluxplain.  3 streams · 0/s · 0 dead letters")
    assert first_cells(text) == ["features-10", "features-0", "features-1"]
    assert "77 ▲ f1 iSAGE" in text
    assert "f1 0." in text
    assert "122" in text
    assert "importance by iPFI; latest change first" in text
    assert "pending" not in text
    assert "dead  " not in text


def test_dead_letters_have_a_column_as_soon_as_there_are_any() -> None:
    of = pipeline("features-0")
    of[1].add(letter(5, partition=3, topic="fluxplain.features"), 0)
    text = shown(of)
    assert "1 dead letter" in text
    assert "dead  most important" in text
    assert first_cells(text) == ["features-0", "features-3"]


def test_streams_of_several_pipelines_have_whole_names() -> None:
    text = shown(pipeline("features-0"), pipeline("features-0", prefix="other."), width=100)
    assert "fluxplain.  1 stream ·" in text
    assert "other.  1 stream ·" in text
    assert first_cells(text) == ["fluxplain.features-0", "other.features-0"]


def test_a_low_terminal_counts_the_streams_without_room() -> None:
    of = pipeline(*(f"features-{i}" for i in range(9)))
    text = shown(of, width=80, height=12)
    assert len(text.splitlines()) <= 12
    assert "4 more streams" in text


@pytest.mark.parametrize("width", [20, 40, 60, 200])
def test_no_line_is_longer_than_the_terminal_is_wide(width: int) -> None:
    of = pipeline("features-0", "x" * 200 + "-1")
    of[1].add(change("f" * 249, 77, "isage", stream="fluxplain.features-0"), 0, at=1)
    assert max(map(len, shown(of, width=width).splitlines())) <= width


def test_before_the_first_record_it_waits() -> None:
    assert "waiting for records …" in shown(pipeline())


def test_what_could_steer_a_terminal_is_not_shown() -> None:
    of = pipeline("features\x1b[2J-0")
    of[1].add(change("a\x1b[31m", 77, "ipfi", stream="fluxplain.features\x1b[2J-0"), 0, at=1)
    assert "\x1b" not in shown(of)
