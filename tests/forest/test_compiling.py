"""Compiling is announced; loading what Numba has kept is not, however slow the machine."""

import time

import pytest
from numba import njit

from fluxplain.forest import compiling
from fluxplain.forest.compiling import announced_compiling


@pytest.fixture(autouse=True)
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "NOTICE_S", 0.0)


def test_compiling_is_announced_once(caplog: pytest.LogCaptureFixture) -> None:
    with announced_compiling():
        for step in 1, 2:
            njit(lambda x, step=step: x + step)(1)
            time.sleep(0.05)
    assert [each.message[:9] for each in caplog.records] == ["compiling"]


def test_slow_loading_is_not_announced(caplog: pytest.LogCaptureFixture) -> None:
    with announced_compiling():
        time.sleep(0.05)
    assert not caplog.records
