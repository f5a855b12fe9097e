"""Values that are missing, features that come and go, and categories never seen."""

import pickle
import random
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.schemas import Change, DeadLetter, Evaluation, Explanation, Prediction, Record
from fluxplain.schemas.record import Value
from fluxplain.stages.intake.missing import RECENT, Coverage, Filler, Mode
from fluxplain.stages.intake.schema_drift import GONE_AFTER, LONGEST_NAME, SchemaDrift
from tests.kit import support as kit
from tests.kit.stages import explanations, local, modelled, only_letter

IMPUTE = {"policy": "impute"}


def sent(values: list[dict[str, Any]], **settings: Any) -> list[Record]:
    """Return what a fresh model stage publishes."""
    return modelled(kit.linear_config(**settings), values)


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the record with these features absent, or null in every other one."""
    x = {name: value for name, value in record["x"].items() if name not in names}
    if record["ts"] % 2:
        x |= dict.fromkeys(names)
    return {**record, "x": x}


@pytest.mark.parametrize("absent", [{}, {"a": None}])
def test_by_default_it_is_a_dead_letter(absent: dict[str, None]) -> None:
    letter = only_letter(sent([{"x": {"b": 1.0, "c": "u", **absent}}]))
    assert letter.reason == "x.a is missing"


def test_a_misspelt_feature_that_would_be_filled_in_is_named() -> None:
    letter = only_letter(sent([{"x": {"a_": 2.0, "b": 1.0, "c": "u"}}], missing=IMPUTE))
    assert letter.reason.endswith("set missing.values.a; is it 'a_', which is no feature?")


def test_a_value_that_is_filled_in_is_the_mean_of_those_that_were_there() -> None:
    records = kit.linear_records(30)
    told = kit.of_kind(sent([*records, without(records[0], "a")], missing=IMPUTE), Prediction)[-1]
    assert told.missing == ["a"]
    weights = [0.95 ** (29 - i) for i in range(30)]
    mean = statistics.fmean([r["x"]["a"] for r in records], weights)
    filled = {**records[0], "x": {**records[0]["x"], "a": mean}}
    expected = kit.of_kind(sent([*records, filled], missing=IMPUTE), Prediction)[-1]
    assert expected.missing is None
    assert told.prediction == pytest.approx(expected.prediction)


def test_a_category_that_is_filled_in_is_the_most_frequent_of_the_last() -> None:
    filler = Filler({"c": "categorical"}, {}, ["c"], alpha=0.1)
    for category in ["u"] * 60 + ["v"] * 50 + ["w"] * 30:
        filler.observe({"c": category})
    assert filler.filled({}, ["c"]) == {"c": "v"}


@kit.PROPERTY
@given(st.lists(st.sampled_from(["u", "v", 1, True, 0, False]), min_size=1, max_size=250))
def test_the_mode_is_that_of_the_last_values_and_of_several_the_first(
    categories: list[Value],
) -> None:
    mode = Mode()
    for category in categories:
        mode.update(category)
    last = [(type(each), each) for each in categories[-RECENT:]]
    most = max(map(last.count, last))
    first = next(each for each in last if last.count(each) == most)
    assert mode.n == len(last)
    assert (type(mode.value), mode.value) == first


def test_a_value_of_the_settings_goes_before_the_mean() -> None:
    missing = {"features": {"a": "impute", "c": "impute"}, "values": {"a": 7, "c": "none"}}
    records = [without(each, "a", "c") for each in kit.linear_records(3)]
    filled = [{**r, "x": {**r["x"], "a": 7.0, "c": "none"}} for r in records]
    told = kit.of_kind(sent(records, missing=missing), Prediction)
    expected = kit.of_kind(sent(filled, missing=missing), Prediction)
    assert [each.prediction for each in told] == [each.prediction for each in expected]
    assert [each.missing for each in told] == [["a", "c"]] * 3


def test_before_there_was_any_value_none_can_be_filled_in() -> None:
    letter = only_letter(sent([without(kit.linear_records(1)[0], "a")], missing=IMPUTE))
    assert letter.reason == (
        "x.a is missing, and has had no value yet to impute it from: set missing.values.a"
    )


def test_what_was_there_is_learned_also_where_nothing_can_be_filled_in() -> None:
    records = [without(each, "a" if each["ts"] % 2 else "b") for each in kit.linear_records(4)]
    published = sent(records, missing=IMPUTE)
    assert [type(each) for each in published if not isinstance(each, Evaluation)] == [
        *(DeadLetter, Prediction, Prediction, Prediction)
    ]


def test_an_observation_that_is_passed_over_leaves_all_as_it_was() -> None:
    records = kit.linear_records(40)
    missing = {"features": {"b": "skip"}}
    skipped = [*records, without(records[0], "b"), records[1]]
    *_, last, after = kit.of_kind(sent(skipped, missing=missing), Prediction)
    assert (last.seq, last.previous_seq, last.prediction, last.loss) == (40, 39, None, None)
    assert last.missing == ["b"]
    same = kit.of_kind(sent([*records, records[1]], missing=missing), Prediction)[-1]
    assert after.prediction == same.prediction


def test_the_label_of_an_observation_that_was_passed_over_is_not_wanted() -> None:
    x = {"a": 1.0, "c": "u"}
    values: list[dict[str, Any]] = [{"x": x, "id": 1}, {"id": 1, "y": 2.0}, {"id": 1, "y": 3.0}]
    for order in (values, [values[1], values[0], values[2]]):
        [record] = sent(order, missing={"policy": "skip"})
        assert isinstance(record, Prediction)


def test_what_is_required_goes_before_what_is_passed_over_and_that_before_what_is_filled_in() -> (
    None
):
    missing = {"features": {"a": "impute", "b": "skip"}}
    record = kit.linear_records(1)[0]
    letter = only_letter(sent([without(record, "a", "b", "c")], missing=missing))
    assert letter.reason == "x.c is missing"
    [passed] = sent([without(record, "a", "b")], missing=missing)
    assert isinstance(passed, Prediction)
    assert passed.prediction is None


# coverage


def test_explanations_say_which_share_of_the_observations_had_a_value() -> None:
    records = [
        without(each, *(["a"] if i % 4 == 3 else []), *(["c"] if i >= 100 else []))
        for i, each in enumerate(kit.linear_records(300))
    ]
    config = kit.linear_config(
        missing={"policy": "impute", "values": {"c": "none"}},
        explain={
            "groups": {"both": ["a", "b"]},
            "ipdp": {"pairs": [["a", "c"]], "storage_size": 5, "grid_size": 3},
        },
    )
    newest = {each.feature: each.coverage for each in explanations(config, records)}
    assert newest["b"] == 1.0
    assert newest["a"] == pytest.approx(0.75, abs=0.05)
    assert newest["both"] == newest["a"]
    assert newest["c"] < 0.001
    assert newest["a|c"] == pytest.approx(newest["c"], abs=1e-3)


def test_what_is_passed_over_counts_in_the_coverage() -> None:
    records = [
        without(each, *(["a"] if i % 2 else [])) for i, each in enumerate(kit.linear_records(300))
    ]
    evaluations = kit.by_feature(sent(records, missing={"policy": "skip"}))
    assert evaluations["a"][-1].coverage[0] == pytest.approx(0.5, abs=0.05)
    assert evaluations["b"][-1].coverage[0] == 1.0


@kit.PROPERTY
@given(st.lists(st.sets(st.sampled_from("abc")), max_size=60), st.floats(0.01, 1.0))
def test_coverage_is_the_weighted_share(absent: list[set[str]], alpha: float) -> None:
    members = {"a": ["a"], "b": ["b"], "c": ["c"], "both": ["a", "b"]}
    coverage = Coverage(members, alpha)
    assert [coverage.of(name) for name in members] == [1.0] * 4
    for each in absent:
        coverage.update(sorted(each))
        coverage = kit.pickled(coverage)
    if not absent:
        return
    n = len(absent)
    weights = [alpha * (1 - alpha) ** (n - 1 - i) for i in range(n)]
    for name, features in members.items():
        there = [w for w, each in zip(weights, absent, strict=True) if each.isdisjoint(features)]
        assert coverage.of(name) == pytest.approx(sum(there) / sum(weights), abs=1e-9)


# features that come and go


def notices(records: list[Record]) -> list[tuple[int, str | None, str]]:
    return [
        (each.seq, each.feature, each.detail)
        for each in kit.of_kind(records, Change)
        if each.kind == "schema"
    ]


@pytest.mark.slow
def test_a_feature_that_vanishes_and_comes_back_is_reported() -> None:
    records = kit.linear_records(2300)
    values = [without(each, "a") if 100 <= i < 1250 else each for i, each in enumerate(records)]
    assert notices(sent(values, missing=IMPUTE, explain={"methods": ["ipfi"]})) == [
        (1099, "a", "a has had no value in the last 1,000 observations"),
        (1250, "a", "a has values again, after 1,150 observations without"),
    ]


def test_an_unconfigured_field_that_appears_later_is_reported_once() -> None:
    records = kit.linear_records(1100)
    for i, each in enumerate(records):
        each["x"]["from the first"] = 1
        each["x"]["never"] = None
        if i >= 1050:
            each["x"]["new"], each["x"]["newer"] = "u", 2.0
    told = "x has new fields that are not configured, and are ignored: new, newer"
    assert notices(sent(records, explain={"methods": ["ipfi"]})) == [(1050, None, told)]


def test_of_long_names_the_beginning_is_remembered() -> None:
    evolution = SchemaDrift()
    names = [f"{i}".ljust(900_000, "n") for i in range(20)]
    for name in names:
        evolution.see([], [name])
    assert len(pickle.dumps(evolution)) < 20 * (LONGEST_NAME + 100)
    for _ in range(GONE_AFTER):
        assert not evolution.see([], names)
    told = evolution.see([], ["new".ljust(900_000, "n"), "new".ljust(800_000, "n")])
    beginning = "new".ljust(LONGEST_NAME, "n")
    assert (told[None] or "").endswith(f"are ignored: {beginning}")
    assert not evolution.see([], ["new".ljust(900_000, "n")])


def test_a_feature_that_is_not_there_from_the_first_may_come_later() -> None:
    records = kit.linear_records(400)
    values = [without(each, "b") if i < 200 else each for i, each in enumerate(records)]
    config = kit.linear_config(missing={"features": {"b": "impute"}, "values": {"b": 0.0}})
    published = local(config, values)
    assert not kit.of_kind(published, DeadLetter)
    of_b = [
        e for e in kit.of_kind(published, Explanation) if (e.feature, e.method) == ("b", "ipfi")
    ]
    assert {e.value for e in of_b if e.seq < 200} == {0.0}
    assert of_b[-1].value > 0.1
    assert of_b[0].coverage == pytest.approx(0.0)
    assert of_b[-1].coverage > 0.99


def test_a_category_that_was_never_seen_is_explained_as_any_other() -> None:
    records = kit.linear_records(300)
    for each in records[200:]:
        each["x"]["c"] = "new"
    published = local(kit.linear_config(), records)
    assert not kit.of_kind(published, DeadLetter)
    grids = [e.grid or [] for e in kit.of_kind(published, Explanation) if e.feature == "c"]
    assert any("new" in grid for grid in grids)


@pytest.mark.slow
@kit.SLOW_PROPERTY
@given(st.integers(0, 10**6), st.sampled_from(["impute", "skip", "dead-letter"]))
def test_whatever_is_missing_shards_and_a_copy_of_the_state_say_the_same(
    seed: int, policy: str
) -> None:
    rng = random.Random(seed)
    names = ["a", "b", "c"]
    records = [
        without(each, *rng.sample(names, rng.choice([0, 0, 1, 2])))
        for each in kit.linear_records(40)
    ]
    config = kit.linear_config(missing={"policy": "impute", "features": {"b": policy}})
    kit.run_alike(config, kit.messages_of(records))
