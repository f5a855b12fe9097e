"""How soon all roles commit again is listed once for each fault, also if a wait ends meanwhile."""

import threading
from types import TracebackType

import pytest

from tests.kit.support import make_config
from tests.measure.chaos import recovery
from tests.measure.chaos.recovery import Recoveries

PLACE = ("model", "features", 0)


@pytest.fixture
def recoveries(monkeypatch: pytest.MonkeyPatch) -> Recoveries:
    """One kill, after which nothing is committed yet."""
    monkeypatch.setattr(recovery, "Groups", lambda _config: None)
    found = Recoveries(make_config())
    found.since("kill")
    found._see({PLACE: (0, 5)})
    return found


class EndsAfterwards:
    """A lock; the wait ends as soon as it is free."""

    def __init__(self, recoveries: Recoveries) -> None:
        self._recoveries = recoveries

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._recoveries._lock = threading.Lock()
        self._recoveries._see({PLACE: (5, 5)})


def test_a_wait_that_ends_while_all_are_listed_is_listed_once(
    recoveries: Recoveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recoveries, "_lock", EndsAfterwards(recoveries))
    assert recoveries.numbers() == {"recovery after kill": "1 not by the end"}
    assert len(recoveries.seconds["kill"]) == 1


def test_waits_that_ended_and_others_are_listed(recoveries: Recoveries) -> None:
    recoveries._see({PLACE: (5, 5)})
    recoveries.since("kill")
    [listed] = recoveries.numbers().values()
    assert str(listed).endswith("of 1, and 1 not by the end")
