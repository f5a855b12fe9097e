"""The streams of the experiments, and where they drift."""

import gzip
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kit.support import AgrawalRule
from tests.measure.experiments import drift_streams
from tests.measure.experiments.drift_runs import DRIFTS, STATIONARY, STILL
from tests.measure.experiments.forests import switching_stream
from tests.measure.experiments.ipfi_drift_runs import STREAMS, stream
from tests.measure.experiments.sensor_network import FAULTS, break_sensor, readings
from tests.measure.experiments.streams import HALF_HOURS, elec2, switched, weather


def test_another_copy_of_elec2_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "elec2.csv.gz"
    path.write_bytes(gzip.compress(b"period,class\n0.5,1\n"))
    monkeypatch.setenv("DATA", str(tmp_path))
    with pytest.raises(ValueError, match=f"{path} has other data"):
        elec2()
    path.unlink()
    with pytest.raises(FileNotFoundError, match="DATA"):
        elec2()


def test_elec2_is_what_it_says(data_is_there: None) -> None:
    records = elec2()
    assert len(records) == 45_312
    assert records[0][0]["day"] == 2
    assert len({x["vicprice"] for x, _ in records[:17_424]}) == 1
    assert records[17_424][0]["vicprice"] != records[0][0]["vicprice"]


def test_the_weather_is_what_it_says(data_is_there: None) -> None:
    records = weather()
    assert len(records) == 18_159
    assert records[0][0].keys() == {f"feat_{i}" for i in range(1, 9)}
    assert {y for _, y in records} == {0, 1}


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


def share_by_the_rule(stream: drift_streams.Stream, n: int) -> float:
    """Return how many labels are those of agrawal concept 1."""
    rule = AgrawalRule()
    return sum(rule.predict_one(x) == y for x, y in islice(stream, n)) / n


def test_a_function_drift_begins_where_it_says() -> None:
    stream = drift_streams.sudden(1, at=500)
    assert share_by_the_rule(stream, 500) == 1.0
    assert share_by_the_rule(stream, 500) < 0.8
    stream = drift_streams.gradual(1, at=1_000, within=500)
    assert share_by_the_rule(stream, 1_000) > 0.98
    within, after = share_by_the_rule(stream, 500), share_by_the_rule(stream, 500)
    assert 0.98 > within > after


@pytest.mark.parametrize("stream", [drift_streams.exchanged, drift_streams.rich])
def test_a_feature_drift_begins_where_it_says(stream: Any) -> None:
    records = [x for x, _ in islice(stream(1, at=500), 1_000)]
    before, after = records[:500], records[500:]
    assert sum(x["salary"] for x in after) > 1.2 * sum(x["salary"] for x in before)


def test_a_virtual_drift_keeps_the_rule() -> None:
    assert share_by_the_rule(drift_streams.rich(1, at=300), 900) == 1.0


def test_a_virtual_drift_widens_the_range() -> None:
    records = [x["salary"] for x, _ in islice(drift_streams.widened(1, at=500), 1_500)]
    assert max(records[:500]) <= 150_000 < max(records[500:]) <= 200_010


def test_the_rotating_hyperplane_turns_from_one_feature_to_the_other() -> None:
    records = [*islice(drift_streams.rotating(1, at=1_000, within=1_000), 3_000)]
    for feature, part in (("x1", records[:1_000]), ("x2", records[2_000:])):
        assert sum((x[feature] >= 0.0) == y for x, y in part) > 800


@pytest.mark.parametrize("name", ["agrawal", "rotating"])
def test_a_stream_without_its_drift_has_the_same_records_until_then(name: str) -> None:
    [drifting] = [s for key, s in DRIFTS.items() if key in ("sudden", name) and s.control == name]
    still = [*islice(STILL[name].stream(1, 400), 400)]
    with_drift = [*islice(drifting.stream(1, 200), 400)]
    assert still[:200] == with_drift[:200]
    assert still != with_drift


@pytest.mark.parametrize("name", DRIFTS)
def test_a_stream_drifts_where_it_says(data_is_there: None, name: str) -> None:
    scenario = DRIFTS[name]
    drifting = [*islice(scenario.stream(1, 200), 700)]
    still = [*islice((STATIONARY | STILL)[scenario.control].stream(1, 700), 700)]
    if name != "elec2":  # its control has earlier records
        same = [one == other for one, other in zip(drifting[:200], still[:200], strict=True)]
        assert sum(same) == 200 or (sum(same) > 180 and "gradual" in scenario.title)
    assert drifting[200:] != still[200:]
    assert set(scenario.changing) <= drifting[0][0].keys()


def test_a_raised_feature_is_the_only_one_that_changes() -> None:
    for feature, by in ((1, 2.0), (4, 1.0)):
        stream = drift_streams.raised(feature)
        one, other = (
            np.array([[*x.values()] for x, _ in islice(stream(1, c), 500)]) for c in (0, 1)
        )
        expected = np.zeros(4)
        expected[feature - 1] = by
        np.testing.assert_allclose(other - one, np.tile(expected, (500, 1)), atol=1e-12)


def test_autocorrelated_features_are_standard_normal() -> None:
    x = np.array([[*x.values()] for x, _ in islice(drift_streams.autocorrelated(1, 0), 20_000)])
    assert np.abs(x.mean(axis=0)).max() < 0.15
    assert np.abs(x.var(axis=0) - 1.0).max() < 0.15
    assert np.corrcoef(x[1:, 0], x[:-1, 0])[0, 1] == pytest.approx(0.9, abs=0.02)


def test_resampled_days_are_whole_days(data_is_there: None) -> None:
    records = [*islice(drift_streams.days(1, 0), 3 * HALF_HOURS)]
    for begin in range(0, len(records), HALF_HOURS):
        assert len({x["date"] for x, _ in records[begin : begin + HALF_HOURS]}) == 1


def test_a_replaced_model_knows_the_reversed_effect() -> None:
    model = drift_streams.Reversing(1, at=1_000)
    losses, right = [], []
    for x, y in islice(drift_streams.reversing(1, 1_000), 2_000):
        p = model.predict_proba_one(x)[1]
        losses.append((y - p) ** 2)
        right.append((x["x1"] > 0) == y)
        model.learn_one(x, y)
    assert np.mean(losses[:1_000]) == pytest.approx(np.mean(losses[1_000:]), abs=0.02)
    assert np.mean(right[:1_000]) > 0.7 > 0.3 > np.mean(right[1_000:])


def test_records_have_the_labels_of_the_concept_in_use() -> None:
    records, concepts = switching_stream(0.02, 2_000, seed=1)
    assert set(concepts.tolist()) == set(range(6))
    for (x, y), concept in zip(records, concepts.tolist(), strict=True):
        if concept == 0:  # the one of function 1
            assert y == (0 if 40 <= float(x["age"]) < 60 else 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_one_sensor_while_it_lasts(fault: str) -> None:
    pressures = readings(np.random.default_rng(1), 1_500)
    broken = pressures.copy()
    break_sensor(broken, 3, fault, range(1000, 1200), np.random.default_rng(2))
    changed = broken != pressures
    assert changed[1001:1200, 3].all()
    changed[1000:1200, 3] = False
    assert not changed.any()
