"""Repeated log messages of Kafka's clients are limited."""

import logging
import time

import pytest

from fluxplain.kafka.client_logs import QUIET_S, RepetitionFilter

CLIENT = "fluxplain.librdkafka"


@pytest.fixture
def limit() -> RepetitionFilter:
    return RepetitionFilter()


def passed(limit: RepetitionFilter, name: str, messages: list[str]) -> list[str]:
    records = [logging.LogRecord(name, logging.ERROR, "", 0, each, (), None) for each in messages]
    return [each.getMessage() for each in records if limit.filter(each)]


@pytest.mark.parametrize("name", ["aiokafka", CLIENT])
def test_similar_messages_are_logged_once_per_interval(
    limit: RepetitionFilter, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    tries = [f"127.0.0.1:{port}: connect failed (after {port} ms)" for port in range(50)]
    new = "the password is wrong"
    assert passed(limit, name, [*tries, new]) == [tries[0], new]
    now += QUIET_S
    assert passed(limit, name, tries[:1]) == [f"{tries[0]} (and 49 more like it)"]


def test_messages_of_fluxplain_itself_always_pass(limit: RepetitionFilter) -> None:
    assert len(passed(limit, "fluxplain.worker", ["3 messages are not acknowledged"] * 5)) == 5


def test_it_remembers_no_more_than_a_thousand_messages(limit: RepetitionFilter) -> None:
    words = [f"{chr(97 + i // 676)}{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}" for i in range(3000)]
    assert len(passed(limit, "aiokafka", words)) == 3000
    assert len(limit._passed) <= 1000
