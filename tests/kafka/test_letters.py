"""Dead letters are told in the log, the first at once, and not each of many."""

import logging

import pytest

from pipeline.kafka.letters import LetterLog
from tests.support import message


def test_the_first_is_told_and_the_others_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    letters = LetterLog("model")
    with caplog.at_level(logging.WARNING, "fluxplain.worker"):
        for i in range(1000):
            letters.see(message(i, {}).dead_letter(f"reason {i}"), now=i / 10)
    assert [record.getMessage() for record in caplog.records] == [
        "model: 1 to dead-letters; the newest: reason 0",
        "model: 600 to dead-letters; the newest: reason 600",
    ]


def test_a_long_reason_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    LetterLog("model").see(message(0, {}).dead_letter("x" * 10_000), now=0.0)
    [record] = caplog.records
    assert record.getMessage().endswith("newest: " + "x" * 300)
