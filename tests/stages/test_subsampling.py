"""Subsampling: nothing is biased, and what is left out is counted."""

import math
import random
import statistics
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.schemas import Explanation, Prediction, Record
from fluxplain.stages.intake.subsampling import OneOf
from fluxplain.stages.metering import Work
from tests.kit import support as kit
from tests.kit.stages import local, metered


def published(records: list[dict[str, Any]], **settings: Any) -> list[Record]:
    return local(kit.linear_config(**settings), records)


def inputs(n: int, **explain: Any) -> Counter[Work]:
    """Return how many inputs the model is asked and taught for each purpose."""
    stage, tally = metered(kit.linear_config(explain=explain))
    kit.run(stage, kit.messages_of(kit.linear_records(n)))
    return tally.inputs


def increments(records: list[Record], feature: str, method: str) -> dict[int, float]:
    return {
        seq: increment
        for each in kit.of_kind(records, Explanation)
        if (each.feature, each.method) == (feature, method)
        for seq, increment in zip(each.seqs, each.increments, strict=True)
    }


@kit.PROPERTY
@given(st.integers(1, 20), st.integers(0, 1000), st.integers(1, 5))
def test_one_of_each_k_is_taken(k: int, seed: int, blocks: int) -> None:
    one = OneOf(k, random.Random(seed))
    taken = []
    for _ in range(k * blocks):
        taken.append(one.takes())
        one = kit.pickled(one)
    assert [sum(taken[i : i + k]) for i in range(0, k * blocks, k)] == [1] * blocks


def test_each_place_of_a_period_is_taken_as_often() -> None:
    one = OneOf(4, random.Random(1))
    places = Counter(i % 4 for i in range(40_000) if one.takes())
    assert sum(places.values()) == 10_000
    # a standard deviation of a binomial distribution is 43
    assert all(abs(n - 2_500) < 200 for n in places.values())


def test_everything_is_predicted_and_learned_and_one_of_k_is_explained() -> None:
    records = kit.linear_records(200)
    all_of_it, some = published(records), published(records, explain={"every": 5})
    plain = [each.prediction for each in kit.of_kind(all_of_it, Prediction)]
    assert [each.prediction for each in kit.of_kind(some, Prediction)] == plain
    for feature in "abc":
        for method in ("ipfi", "isage", "ipdp"):
            seqs = list(increments(some, feature, method))
            assert len({seq // 5 for seq in seqs}) == len(seqs)
            assert 30 <= len(seqs) <= 40
    newest = kit.of_kind(some, Explanation)[-1]
    assert newest.skipped == newest.seq + 1 - math.ceil((newest.seq + 1) / 5)
    assert kit.of_kind(all_of_it, Explanation)[-1].skipped == 0


def test_what_is_not_explained_costs_no_model_calls() -> None:
    once, fourth = inputs(400), inputs(400, every=4)
    for method in ("ipfi", "isage", "ipdp"):
        assert fourth[method] == pytest.approx(once[method] / 4, rel=0.05)
    assert fourth["prediction"] == once["prediction"]
    assert fourth["learning"] == once["learning"]


@pytest.mark.slow
def test_what_is_estimated_has_the_same_mean_also_in_a_stream_with_a_period() -> None:
    """Of period 4, with every = 4; the model is as it is."""

    def means(every: int) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {"ipfi": [], "isage": [], "ipdp": []}
        for seed in range(12):
            rng = random.Random(seed)
            records = []
            for t in range(240):
                scale = 4.0 if t % 4 == 0 else 1.0
                a, b = rng.gauss(0, scale), rng.gauss(0, 1)
                records.append({"x": {"a": a, "b": b, "c": "u"}, "y": 2 * a - b + 1})
            told = published(records, seed=seed, explain={"every": every})
            for method, of_runs in found.items():
                of_runs.append(statistics.fmean(increments(told, "a", method).values()))
        return found

    one_of_four = means(4)
    for method, every_one in means(1).items():
        both = every_one, one_of_four[method]
        error = math.hypot(*(statistics.stdev(each) / math.sqrt(12) for each in both))
        assert abs(statistics.fmean(both[0]) - statistics.fmean(both[1])) < 4 * error, method


def test_labels_that_come_later_are_explained_one_of_k_too() -> None:
    records = kit.linear_records(200)
    values: list[dict[str, Any]] = []
    for i, record in enumerate(records):
        values.append({"x": record["x"], "id": i})
        values += [{"id": i - 5, "y": records[i - 5]["y"]}] if i >= 5 else []
    some = published(values, explain={"every": 5})
    assert 30 <= len(increments(some, "a", "ipfi")) <= 40
    assert 30 <= len(increments(some, "a", "ipdp")) <= 40


# methods by feature


def test_a_feature_is_explained_by_the_methods_that_are_wanted() -> None:
    features = {"a": ["ipfi"], "b": ["ipdp", "isage"]}
    some, all_of_it = (
        published(kit.linear_records(80), explain={"features": f}) for f in (features, {})
    )
    by = {(each.feature, each.method) for each in kit.of_kind(some, Explanation)}
    assert by == {
        ("a", "ipfi"),
        *(("b", method) for method in ("isage", "ipdp")),
        *(("c", method) for method in ("ipfi", "isage", "ipdp")),
    }
    for feature, method in by:
        assert increments(some, feature, method) == increments(all_of_it, feature, method)


def test_what_is_not_wanted_is_not_asked() -> None:
    once = inputs(60)
    some = inputs(60, features={name: ["ipdp"] for name in "ab"})
    assert some["ipfi"] == pytest.approx(once["ipfi"] / 3, rel=0.01)
    assert some["isage"] < once["isage"]
    assert some["ipdp"] == once["ipdp"]
    nothing = inputs(60, features={name: ["ipdp"] for name in "abc"})
    assert nothing["ipfi"] == nothing["isage"] == 0


@pytest.mark.slow
@kit.SLOW_PROPERTY
@given(
    st.integers(1, 7),
    st.fixed_dictionaries(
        {},
        optional={
            name: st.sets(st.sampled_from(["ipfi", "isage", "ipdp"]), min_size=1).map(sorted)
            for name in "abc"
        },
    ),
)
def test_shards_and_a_copy_of_the_state_say_the_same(
    every: int, features: dict[str, list[str]]
) -> None:
    config = kit.linear_config(explain={"every": every, "features": features})
    whole = kit.run_alike(config, kit.messages_of(kit.linear_records(40)))
    assert set(kit.by_feature(whole)) == {name for name in "abc" if config.methods_of(name)}
