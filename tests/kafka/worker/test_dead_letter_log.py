"""Dead letters are logged, the first at once, and not each of many."""

import logging

import pytest

from fluxplain.kafka.worker.dead_letter_log import DeadLetterLog
from tests.kit.support import message


def test_the_first_is_logged_and_the_others_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    letters, long = DeadLetterLog("model"), "x" * 10_000
    with caplog.at_level(logging.WARNING, "fluxplain.worker"):
        for i in range(1000):
            letters.see(message(i, {}).dead_letter(f"{i} {long}"), now=i / 10)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("model: 1 dead letters; the latest: 0 xxx")
    assert second.startswith("model: 600 dead letters; the latest: 600 xxx")
    assert len(second) < 400
