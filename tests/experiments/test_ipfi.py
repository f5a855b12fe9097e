"""The iPFI experiments, small."""

from tests.experiments.errors import error
from tests.experiments.ipfi_drift import STREAMS, follow, stream
from tests.experiments.streams import switched


def test_negative_importances_count_as_none() -> None:
    assert error({"a": 2.0, "b": -1.0}, {"a": 1.0, "b": 0.0}) == 0.0
    assert error({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 3.0}) == 1.0


def test_switched_features_exchange_their_values() -> None:
    [(x, y)] = switched([({"a": 1, "b": 2, "c": 3}, 1)], [["a", "b"]])
    assert (x, y) == ({"a": 2, "b": 1, "c": 3}, 1)


def test_the_drift_is_where_it_should_be() -> None:
    parameters = STREAMS["stagger fu. 1"]
    records = list(stream(**parameters, seed=1))
    assert len(records) == parameters["records"]
    # the first function looks at color and shape, the second one at size
    first = [int(x["color"] == 2 or x["shape"] == 0) == y for x, y in records]
    second = [int(x["size"] > 0) == y for x, y in records]
    at, width = parameters["at"], parameters["width"]
    assert all(first[: at - 5 * width])
    assert all(second[at + 5 * width :])
    assert not all(second[: at - 5 * width])


def test_each_interval_has_its_errors() -> None:
    result = follow(
        stream_parameters=STREAMS["stagger fu. 1"] | {"records": 1000, "at": 500},
        trees=1,
        alphas=[0.01, 0.1],
        reservoir_size=50,
        realizations=2,
        interval=250,
        seed=1,
    )
    assert result["ends"] == [250, 500, 750, 1000]
    assert len(result["errors"]) == 4
    for errors in result["errors"].values():
        assert len(errors) == 4
        assert all(0.0 <= each <= 2.0 for each in errors)
    assert len(result["ipfi"]["geometric"]) == 4
