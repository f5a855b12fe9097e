"""The iPFI experiments, small."""

import json
from typing import Any

from matplotlib.figure import Figure

from tests.measure.experiments import ipfi_drift, ipfi_table_1
from tests.measure.experiments.errors import error
from tests.measure.experiments.ipfi_drift import STREAMS, follow, stream
from tests.measure.experiments.streams import switched


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
    # as long as the others: two intervals before the drift, and two after it
    results = {
        f"{name}/stream 1": relabelled(result, parameters["at"])
        for name, parameters in STREAMS.items()
    }
    report = ipfi_drift.EXPERIMENT.report(results)
    assert len(report.lines) == 3
    assert int(report.lines[2].ours) <= 90 - int(report.lines[1].ours)
    assert report.draw
    report.draw(Figure())


def relabelled(result: dict[str, Any], at: int) -> dict[str, Any]:
    """Return it after a turn through JSON, as that of a stream with a drift elsewhere."""
    errors = {
        f"{sampling}/{alpha}": result["errors"][f"{sampling}/{other}"]
        for sampling in ipfi_drift.SAMPLINGS
        for alpha, other in ((0.001, 0.01), (0.01, 0.1))
    }
    ends = [at // 2, at, at + at // 2, 2 * at]
    turned: dict[str, Any] = json.loads(json.dumps(result | {"ends": ends, "errors": errors}))
    return turned


def test_table_1_small() -> None:
    batch = ipfi_table_1.explain_batch(data="agrawal", n=100, permutations=2)
    order = ipfi_table_1.explain_order(
        data="agrawal", n=100, alpha=0.01, reservoir_size=20, realizations=2, seed=1
    )
    results = json.loads(
        json.dumps(
            {f"{data}/batch PFI": batch for data in ipfi_table_1.RECORDS}
            | {f"{data}/order {seed}": order for data in ipfi_table_1.RECORDS for seed in (0, 1)}
        )
    )
    report = ipfi_table_1.EXPERIMENT.report(results)
    assert len(report.lines) == 1
    assert report.draw
    report.draw(Figure())
