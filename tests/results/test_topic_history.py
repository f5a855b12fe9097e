"""A folder of Parquet files by day: each record is there once, whatever is killed when."""

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from fluxplain.results import export_file
from fluxplain.results import topic_history as module
from fluxplain.results.frames import records_of
from fluxplain.results.topic_history import History, HistoryError, Message
from fluxplain.schemas import Change, Explanation, Prediction, Record
from tests.kit.records import explanation, prediction

MIDNIGHT_MS = 1_796_083_200_000
"""The beginning of 2026-12-01, UTC."""


def messages(records: Iterable[Record], *, step_ms: int = 0, start: int = 0) -> list[Message]:
    """Return messages of records from the last minute of a day on."""
    first = MIDNIGHT_MS - 60_000
    return [
        Message(offset, first + offset * step_ms, record.encode())
        for offset, record in enumerate(records, start)
    ]


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return all rows as people read them."""
    found: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return found


def append(folder: Path, those: Iterable[Message], kind: type[Record] = Prediction) -> int:
    """Append those of the messages that are not there, as an export does; return how many."""
    history = History(folder, kind, 0)
    begin = history.next_offset or 0
    return history.append(each for each in those if each.offset >= begin).written


def test_files_are_of_a_day_and_are_named_by_offsets(tmp_path: Path) -> None:
    sent = messages([prediction(seq) for seq in range(4)], start=7)
    assert append(tmp_path, sent) == 4
    assert names(tmp_path) == ["day=2026-11-30/0-00000000000000000007-00000000000000000010.parquet"]
    assert append(tmp_path, sent) == 0
    assert append(tmp_path, messages([prediction(4)], start=11)) == 1
    assert names(tmp_path)[1:] == [
        "day=2026-11-30/0-00000000000000000011-00000000000000000011.parquet"
    ]


def test_a_day_ends_at_midnight_utc(tmp_path: Path) -> None:
    append(tmp_path, messages([prediction(seq) for seq in range(4)], step_ms=20_000))
    assert [(str(row["day"]), row["seq"]) for row in rows(tmp_path)] == [
        ("2026-11-30", 0),
        ("2026-11-30", 1),
        ("2026-11-30", 2),
        ("2026-12-01", 3),
    ]


def test_a_time_that_no_calendar_has_stops_nothing(tmp_path: Path) -> None:
    sent = messages([prediction(seq) for seq in range(3)])
    sent[1] = sent[1]._replace(published_ms=MIDNIGHT_MS * 1_000_000)
    sent[2] = sent[2]._replace(published_ms=-1)
    assert append(tmp_path, sent) == 3
    assert {str(row["day"]) for row in rows(tmp_path)} == {"2026-11-30", "9999-12-31", "1970-01-01"}


def test_several_notices_at_one_place_are_kept(tmp_path: Path) -> None:
    sent = [
        Change.notice(kind="gap", stream="s-0", seq=7, detail=detail, previous_seq=previous)
        for detail, previous in (("a", 1), ("b", 4), ("a", 1))
    ]
    told = [replace(each, id=f"{i:012x}") for i, each in enumerate([*sent[:2], sent[0]])]
    told[2] = told[0]
    assert append(tmp_path, messages(told), Change) == 2
    assert append(tmp_path, messages([*told, *told]), Change) == 0


def test_a_long_day_has_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MESSAGES", 4)
    append(tmp_path, messages([prediction(seq) for seq in range(10)]))
    assert len(names(tmp_path)) == 3
    assert [row["seq"] for row in rows(tmp_path)] == list(range(10))


def test_records_are_read_back_exactly(tmp_path: Path) -> None:
    sent = [explanation("age", seq, value) for seq, value in enumerate((5e-324, 0.1 + 0.2, -0.0))]
    append(tmp_path, messages(sent), Explanation)
    found = records_of(pd.read_parquet(tmp_path))
    assert [each.encode() for each in found] == [each.encode() for each in sent]


def test_what_a_crash_repeated_is_left_out_also_in_a_later_export(tmp_path: Path) -> None:
    sent = messages([prediction(seq) for seq in (0, 1, 2, 1, 2, 3, 2, 3, 4)])
    for end in range(10):
        append(tmp_path, sent[:end])
    assert [row["seq"] for row in rows(tmp_path)] == [0, 1, 2, 3, 4]


def test_a_new_incarnation_has_the_same_seqs(tmp_path: Path) -> None:
    again = [replace(prediction(seq), incarnation="2") for seq in range(2)]
    append(tmp_path, messages([*(prediction(seq) for seq in range(3)), *again, *again]))
    assert [(row["incarnation"], row["seq"]) for row in rows(tmp_path)] == [
        *[("1", seq) for seq in range(3)],
        *[("2", seq) for seq in range(2)],
    ]


def test_what_is_no_record_is_left_out_and_leaves_no_file(tmp_path: Path) -> None:
    foreign = [Message(offset, MIDNIGHT_MS, b"what is this") for offset in range(3)]
    tally = History(tmp_path, Prediction, 0).append(foreign)
    assert (tally.written, tally.unusable) == (0, 3)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("0-mine.parquet", "is no file of"), ("0-1-2.parquet", "is not as .* wrote it")],
)
def test_files_of_others_are_refused(tmp_path: Path, name: str, text: str) -> None:
    append(tmp_path, messages([prediction(0)]))
    [path] = tmp_path.rglob("*.parquet")
    pq.write_table(pq.read_table(path).replace_schema_metadata(), path.with_name(name))
    with pytest.raises(HistoryError, match=text):
        History(tmp_path, Prediction, 0)


TOUCHING = {"open", "os.rename", "os.mkdir", "os.remove"}
"""Audit events after which other files are there, or other content."""


def append_until_killed(folder: Path, those: list[Message], moment: int) -> bool:
    """Append in a process that is killed at a moment; return whether it was.

    The moments are before each message, and before files are touched.
    """
    child = os.fork()
    if child == 0:
        left = iter(range(moment))

        def die() -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in TOUCHING and str(arguments[0]).startswith(str(folder)):
                die()

        def those_until_death() -> Iterator[Message]:
            for each in those:
                die()
                yield each

        sys.addaudithook(hook)
        append(folder, those_until_death())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in {0, signal.SIGKILL}
    return status != 0


def test_a_kill_neither_loses_nor_repeats_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_file, "BATCH_RECORDS", 2)
    sent = messages([prediction(seq) for seq in (*range(8), *range(4, 12))], step_ms=5_000)
    moment, killed = 0, True
    while killed:
        folder = tmp_path / str(moment)
        folder.mkdir()
        append(folder, sent[:3])
        killed = append_until_killed(folder, sent[:14], moment)
        append(folder, sent)
        assert [row["seq"] for row in rows(folder)] == list(range(12))
        assert all(name.endswith(".parquet") for name in names(folder)), "no file is left behind"
        moment += 1
    assert moment > 20


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    append(tmp_path, messages([prediction(0)]))
    [path] = tmp_path.rglob("*.parquet")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(HistoryError, match="is not as"):
        append(tmp_path, messages([prediction(1)]))
