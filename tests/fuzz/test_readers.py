"""Whatever is in a topic that people read, readers show it or pass over it."""

import io
import random
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fluxplain.kafka.topics.replay import _seqs, _Traffic
from fluxplain.local import LocalPipeline
from fluxplain.monitor.figures import importance_figure, save
from fluxplain.monitor.terminal.change_story import render_incident, render_story
from fluxplain.monitor.terminal.drift_summary import render_summary, summarize
from fluxplain.monitor.terminal.record_lines import line
from fluxplain.monitor.terminal.watch import WatchView
from fluxplain.results.store import MAX_CHANGES, Store
from fluxplain.schemas import OUTPUTS, BadRecordError, Change, Record
from fluxplain.schemas.wording import printable
from tests.fuzz.pools import REGRESSION, pool
from tests.fuzz.strategies import FUZZ, SEEDS, SLOW_FUZZ, anything, strained
from tests.kit.support import linear_records, of_kind

DRIFT_SEQ = 60


@cache
def published() -> dict[str, list[dict[str, Any]]]:
    """Return what is in the topics that people read: of a short stream that drifts."""
    values = [orjson.dumps(each) for each in linear_records(2 * DRIFT_SEQ)]
    records = [*LocalPipeline(REGRESSION).run([b"oops", *values, None])]
    records.append(Change.notice(kind="cold-start", stream="features-0", seq=7, detail="cold"))
    return {
        topic: [orjson.loads(r.encode()) for r in of_kind(records, kind)[-20:]]
        for topic, kind in OUTPUTS.items()
    }


@st.composite
def messages(draw: st.DrawFn) -> list[tuple[str, bytes | None]]:
    """Messages of all topics."""
    rng = random.Random(draw(SEEDS))
    topics = [rng.choice(sorted(OUTPUTS)) for _ in range(15)]
    mixed: list[tuple[str, bytes | None]] = [(t, strained(rng, published()[t])) for t in topics]
    for topic in topics[:3]:
        mixed.insert(rng.randrange(12), (topic, draw(anything(published()[topic]))))
    return mixed


def decoded(topic: str, value: bytes | None) -> Record | None:
    """Return the record, or None where the readers pass over it."""
    try:
        return OUTPUTS[topic].decode(value)
    except BadRecordError:
        return None


def store_of(read: list[tuple[str, bytes | None]]) -> Store:
    """Return a store with good messages, and these behind them."""
    store = Store()
    pools = published().items()
    good = [(topic, orjson.dumps(r)) for topic, records in pools for r in records[:10]]
    now = 0.0
    for topic, value in [*good, *read]:
        record = decoded(topic, value)
        if record is not None:
            now += 0.125
            store.add(record, 0, now)
            assert line(record)
    return store


def test_there_are_good_messages_of_every_topic() -> None:
    assert all(published().values())
    assert {change["kind"] for change in published()["changes"]} == {"drift", "cold-start"}


@pytest.mark.slow
@FUZZ
@given(messages())
def test_any_results_can_be_shown(read: list[tuple[str, bytes | None]]) -> None:
    store = store_of(read)
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    for stream in [None, *list(store.streams)[-2:]]:
        console.print(WatchView(store, stream=stream, now=100.0))
    for results in store.streams.values():
        console.print(render_summary(summarize(results.at(), DRIFT_SEQ)))
        changes = results.at().changes
        assert len(changes) <= MAX_CHANGES
        for change in changes[-2:]:
            console.print(render_story(change, changes, None))
        if changes:
            console.print(render_incident(changes, None))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in shown
    assert "\x00" not in shown


@pytest.mark.slow
@SLOW_FUZZ
@given(messages())
@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")
def test_any_results_can_be_drawn(
    tmp_path_factory: pytest.TempPathFactory, read: list[tuple[str, bytes | None]]
) -> None:
    store = store_of(read)
    path: Path = tmp_path_factory.getbasetemp() / "any.png"
    view = store.streams[store.current or ""].at()
    save(importance_figure(view, drift_seq=DRIFT_SEQ), path, dpi=40)
    assert path.stat().st_size > 0


@FUZZ
@given(st.text(max_size=100))
def test_what_is_printed_cannot_steer_a_terminal(text: str) -> None:
    assert printable(text).isprintable()


@FUZZ
@given(st.sampled_from(["evaluations", "explanations"]), st.data())
def test_what_a_message_is_about_is_known_or_nothing(topic: str, data: st.DataObject) -> None:
    """A replay brakes by it: it must neither fail nor open its window for ever."""
    traffic = _Traffic()
    for value in data.draw(st.lists(anything(pool(topic, "classes").records), max_size=5)):
        seqs = _seqs(value or b"")
        assert all(isinstance(seq, int) for seq in seqs)
        if seqs:
            traffic.add(len(value or b""), seqs)
        assert traffic.bytes_per_record >= 0.0
