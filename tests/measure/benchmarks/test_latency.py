"""Latencies from what a consumer has read, without a broker."""

from collections.abc import Sequence

import orjson
import pytest

from tests.kit.waiting import FailedError
from tests.measure.benchmarks.latency import last_of_each, summary


def messages(*seqs: int) -> Sequence[tuple[float, bytes]]:
    return [(float(i), orjson.dumps({"seq": seq})) for i, seq in enumerate(seqs)]


def test_an_observation_is_explained_when_its_last_explanation_is_there() -> None:
    assert last_of_each(messages(7, 8, 7, 8), 2) == {7: 2.0, 8: 3.0}


@pytest.mark.parametrize("seqs", [(7, 7, 8), (7, 8, 8, 8, 7)])
def test_explanations_that_are_missing_or_too_many_are_an_error(seqs: tuple[int, ...]) -> None:
    with pytest.raises(FailedError, match="seq 8 has"):
        last_of_each(messages(*seqs), 2)


def test_latencies_become_milliseconds() -> None:
    assert summary([i / 1000.0 for i in range(101)]) == {
        "median": pytest.approx(50.0),
        "99th percentile": pytest.approx(100.0, abs=1.0),
    }
