"""The model stage watches inputs and predictions: the first shard publishes their changes."""

import math
import random
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.schemas import Change, DeadLetter
from fluxplain.stages import ModelStage
from fluxplain.stages.model_stage import WHOLE
from tests.kit.stages import modelled
from tests.kit.support import STREAM, encoded, linear_config, messages_of, of_kind, pickled, run

N, STEP = 1_600, 900


def observations(seed: int = 1, *, step: int = STEP) -> list[dict[str, Any]]:
    """Return observations in which ``a`` and ``c`` change at a step, and so does the prediction."""
    rng = random.Random(seed)

    def x(t: int) -> dict[str, Any]:
        is_later = t >= step
        c = rng.choice("uvw" if is_later else "uv")
        return {"a": rng.gauss(3.0 if is_later else 0.0, 1.0), "b": rng.gauss(0.0, 1.0), "c": c}

    return [{"x": x(t), "y": rng.gauss(0.0, 1.0), "id": f"o-{t}", "ts": t} for t in range(N)]


def config(**settings: Any) -> Config:
    drift = {"follow_up": 400, "loss": {"enabled": False}, **settings.pop("drift", {})}
    explain = {"every": 100, **settings.pop("explain", {})}  # quick: no explanation is looked at
    model = {"learn": False, **settings.pop("model", {})}
    return linear_config(drift=drift, explain=explain, model=model, **settings)


def changes(values: list[dict[str, Any]], given: Config, replica: Replica = WHOLE) -> list[Change]:
    return of_kind(modelled(given, values, replica), Change)


def told(found: list[Change]) -> set[tuple[str, str | None, str | None]]:
    return {(each.kind, each.feature, each.signal) for each in found}


def test_changes_of_inputs_and_predictions_are_published_with_their_outcome() -> None:
    found = changes(observations(), config())
    assert told(found) == {
        ("input", "a", "mean"),
        ("input", "c", "share"),
        ("output", None, "mean"),
    }
    for one in found:
        assert one.after_seq is not None
        assert abs(one.after_seq - STEP) <= 24
        assert one.method is None
        assert one.incident is None
        assert one.effect_size is not None
        assert 0.05 <= one.effect_size <= 1.0
    of_a = [each for each in found if each.feature == "a"]
    assert [each.status for each in of_a] == ["noticed", "confirmed"]
    assert of_a[0].id == of_a[1].id
    assert of_a[1].before == pytest.approx(0.0, abs=0.2)
    assert of_a[1].after == pytest.approx(3.0, abs=0.2)
    # normal numbers three standard deviations apart
    assert of_a[1].effect_size == pytest.approx(math.erf(3.0 / math.sqrt(8.0)), abs=0.05)
    assert of_a[1].detail.startswith("confirmed: input a rose from ")
    [_, of_c] = [each for each in found if each.feature == "c"]
    assert of_c.category == "w"
    assert of_c.before == 0.0
    assert of_c.after == pytest.approx(1 / 3, abs=0.1)
    assert of_c.detail.startswith("confirmed: the share of c = w rose from 0 ")
    assert next(each for each in found if each.kind == "output").detail.startswith(
        "the mean prediction seems to have risen from"
    )


@pytest.mark.parametrize(
    ("off", "kinds"),
    [("input", {"output"}), ("output", {"input"})],
)
def test_each_of_the_two_can_be_switched_off(off: str, kinds: set[str]) -> None:
    found = changes(observations(), config(drift={off: {"enabled": False}}))
    assert {each.kind for each in found} == kinds


def test_smaller_changes_than_the_settings_ask_for_are_left_out() -> None:
    assert told(changes(observations(), config(drift={"min_effect": 0.6}))) == {
        ("input", "a", "mean"),
        ("output", None, "mean"),
    }


@pytest.mark.slow
def test_only_the_first_shard_publishes_them() -> None:
    first, second = (
        changes(observations(), config(model={"shards": 2}), Replica("model", shard, 2))
        for shard in (0, 1)
    )
    assert first == changes(observations(), config())
    assert second == []


def test_an_observation_counts_once_though_its_label_comes_later() -> None:
    values = observations()
    later: list[dict[str, Any]] = []
    for each in values:
        later += [{key: each[key] for key in ("x", "id", "ts")}, {"id": each["id"], "y": each["y"]}]
    pairs = zip(changes(values, config()), changes(later, config()), strict=True)
    noticed = [each for each in pairs if each[0].status == "noticed"]
    assert len(noticed) == 3
    for one, other in noticed:
        assert other.seq == 2 * one.seq
        assert (other.before, other.after, other.kind) == (one.before, one.after, one.kind)


def test_filled_in_values_do_not_count() -> None:
    values = observations(step=N)
    for each in values[STEP:]:
        del each["x"]["a"]
    filled = config(missing={"features": {"a": "impute"}, "values": {"a": 50.0}})
    assert "a" not in {each.feature for each in changes(values, filled) if each.kind == "input"}


def test_observations_that_are_not_explained_count() -> None:
    every = config(explain={"every": 40})
    of_inputs = [each for each in changes(observations(), every) if each.kind == "input"]
    assert of_inputs == [each for each in changes(observations(), config()) if each.kind == "input"]


def test_a_stage_that_is_pickled_publishes_the_same() -> None:
    messages, given = messages_of(observations()), config()
    stage, records = ModelStage(given, STREAM), []
    for begin in range(0, len(messages), 531):
        stage = pickled(stage)
        records += run(stage, messages[begin : begin + 531])
    assert encoded(records) == encoded(modelled(given, observations()))


@pytest.mark.parametrize("value", [2**53 + 1, 1e100])
def test_extreme_values_do_not_stop_the_stage(value: Any) -> None:
    values = observations()
    for each in values[STEP:]:
        each["x"] |= {"a": value, "b": -value}
    records = modelled(config(), values)
    assert "a" in {each.feature for each in of_kind(records, Change)}
    for each in values[:20]:
        each["x"]["a"] = 1e308
    assert len(of_kind(modelled(config(), values[:20]), DeadLetter)) == 20
