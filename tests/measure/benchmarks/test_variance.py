"""The error of an estimate."""

from tests.measure.benchmarks.variance import square_error


def test_errors_are_squared_and_averaged() -> None:
    assert square_error({"a": 1.0, "b": 4.0}, {"a": 2.0, "b": 1.0}) == 5.0
