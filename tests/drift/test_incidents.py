"""What is said of several features: ranks and incidents, in whatever order the features come."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import cycle, pairwise
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.config import Config
from fluxplain.schemas import Change, Evaluation, Explanation, Record
from fluxplain.stages import DriftStage
from fluxplain.stages.explainer_stage import SILENCE
from tests.kit import support as kit
from tests.kit.stages import explained, local, merged, modelled

WINDOW = 150

CONFIG = kit.linear_config(explain={"emit_every": 4}, drift={"incident_window": WINDOW})


@cache
def evaluations() -> Mapping[str, list[Evaluation]]:
    """Return each feature's evaluations: in the second half, all importances are larger."""
    return kit.by_feature(modelled(CONFIG, kit.linear_records(800)))


@cache
def explanations() -> Mapping[str, list[Explanation]]:
    """Return each feature's explanations."""
    return {
        feature: kit.of_kind(explained(CONFIG, runs), Explanation)
        for feature, runs in evaluations().items()
    }


def in_step() -> list[Explanation]:
    """Return the explanations as a single explainer publishes them."""
    everything = [each for own in explanations().values() for each in own]
    return sorted(everything, key=lambda each: each.seq)


def changes(records: Sequence[Record], config: Config = CONFIG) -> list[Change]:
    return kit.of_kind(kit.run(DriftStage(config), kit.passed_on(records)), Change)


def sorted_(records: Sequence[Record]) -> list[bytes]:
    return sorted(kit.encoded(records))


def begin_of(change: Change) -> int:
    """Return the seq of the first change of its incident."""
    return int(str(change.incident).partition("@")[2])


@pytest.mark.slow
@kit.SLOW_PROPERTY
@given(st.integers(0, 10**6))
def test_changes_do_not_depend_on_the_order_in_which_the_features_come(seed: int) -> None:
    rng = random.Random(seed)
    expected = changes(in_step())
    assert {change.feature for change in expected} >= {"a", "b"}
    rest = {feature: kit.passed_on(own)[::-1] for feature, own in explanations().items()}
    weights = {feature: rng.random() ** 3 + 0.001 for feature in rest}
    stage, published = DriftStage(CONFIG), list[Record]()
    while rest:
        if rng.random() < 0.02:
            stage = kit.pickled(stage)
        [feature] = rng.choices(list(rest), [weights[name] for name in rest])
        published += kit.run(stage, [rest[feature].pop()])
        rest = {name: own for name, own in rest.items() if own}
    assert sorted_(published) == sorted_(expected)


@pytest.mark.slow
def test_a_change_waits_until_every_feature_is_as_far() -> None:
    others = [each for each in in_step() if each.feature != "c"]
    expected = changes(in_step())
    first = min(map(begin_of, expected))
    stage = DriftStage(CONFIG)
    assert kit.run(stage, kit.passed_on(others)) == []
    early = [each for each in explanations()["c"] if each.seq < first]
    assert kit.run(stage, kit.passed_on(early)) == []
    rest = explanations()["c"][len(early) :]
    assert sorted_(kit.run(stage, kit.passed_on(rest))) == sorted_(expected)


@pytest.mark.slow
def test_a_change_in_the_last_explanation_of_a_stream_does_not_wait_for_another() -> None:
    everything = in_step()
    for last in set(map(begin_of, changes(everything))):
        until = [each for each in everything if each.seq <= last]
        found = changes(until)
        assert any(change.seq + 4 > last for change in found)
        for names in ("bca", "cab", "cba"):
            places = {name: place for place, name in enumerate(names)}
            ordered = sorted(until, key=lambda each: (each.seq, places[each.feature]))
            assert sorted_(changes(ordered)) == sorted_(found)


def test_changes_within_the_window_are_one_incident_and_those_beyond_another() -> None:
    found = changes(in_step())
    begins = sorted(set(map(begin_of, found)))
    assert {c.incident for c in found} == {f"{kit.STREAM}@{begin}" for begin in begins}
    assert all(after - before > WINDOW for before, after in pairwise(begins))
    # what is found is in an explanation of up to three observations more
    assert all(0 <= c.seq + 3 - begin_of(c) <= WINDOW + 3 for c in found)
    several = {c.feature for c in found if c.incident == found[0].incident}
    assert len(several) > 1
    apart = kit.linear_config(explain={"emit_every": 4}, drift={"incident_window": 0})
    assert len({c.incident for c in changes(in_step(), apart)}) > len(begins)


def of_means(means: dict[str, list[float]]) -> list[Explanation]:
    """Return iPFI of some features, with these increments."""
    [template, *_] = explanations()["a"]
    records = []
    for t in range(len(means["a"])):
        for feature, numbers in means.items():
            record = replace(
                template,
                feature=feature,
                method="ipfi",
                seq=t,
                previous_seq=t - 1 if t else None,
                seqs=[t],
                increments=[numbers[t]],
                values=None,
                loss=0.1 if t < 300 else 0.4,
            )
            records.append(record)
    return records


def test_a_change_says_which_rank_the_feature_had_and_has() -> None:
    rng = random.Random(1)
    means = {
        name: [mean + rng.gauss(0.0, 0.01) for _ in range(600)]
        for name, mean in {"a": 0.1, "b": 0.5, "c": 0.3}.items()
    }
    means["a"][300:] = [number + 0.8 for number in means["a"][300:]]
    first, *_ = changes(of_means(means))
    assert (first.feature, first.direction) == ("a", "rose")
    assert (first.rank_before, first.rank_after, first.ranked) == (3, 1, 3)
    assert first.after_seq is not None
    assert first.replay_seq is not None
    assert first.delay_bound is not None
    delay = first.seq - first.after_seq
    assert delay <= first.delay_bound
    assert (
        f"of 3), by 42 % of all importance; it began about {delay} observations earlier "
        f"(at most {first.delay_bound})" in first.detail
    )
    assert first.replay_seq < first.after_seq <= 300 < first.seq
    assert first.loss_before == pytest.approx(0.1)
    assert first.loss_after is not None
    assert 0.1 < first.loss_after < 0.4


def test_a_change_holds_the_curve_before_and_after_it() -> None:
    curves = {(each.feature, each.seq): each.effect for each in in_step() if each.method == "ipdp"}
    known = [c for c in changes(in_step()) if c.curve_before and c.curve_after]
    found = [c for c in known if c.status == "noticed"]
    assert found
    for change in found:
        before, after = change.curve_before, change.curve_after
        assert before is not None
        assert after is not None
        assert change.after_seq is not None
        assert before.seq <= change.after_seq < after.seq < change.seq + 4
        assert before.effect == curves[str(change.feature), before.seq]


SILENT = kit.linear_config(explain={"emit_every": 10})


def without_answers(n: int) -> list[Evaluation]:
    """Return evaluations of which the first 40 only have something asked."""
    first = evaluations()["a"][:40]
    records = list(first)
    for t in range(first[-1].seqs[0] + 1, first[-1].seqs[0] + 1 + n):
        before = records[-1].seqs[0]
        records.append(
            replace(
                first[-1],
                previous_seq=before,
                seqs=[t],
                outputs={method: [None] for method in first[-1].outputs},
                points={method: [None] for method in first[-1].points},
            )
        )
    return records


@pytest.mark.slow
@kit.SLOW_PROPERTY
@given(st.lists(st.integers(1, 200), min_size=1, max_size=60))
def test_a_feature_that_is_silent_says_how_far_it_is_however_runs_are_cut(
    lengths: list[int],
) -> None:
    singles = without_answers(2 * SILENCE + 50)
    expected = kit.of_kind(explained(SILENT, singles), Explanation)
    early, empty = expected[-2:]
    assert (empty.seqs, empty.increments, empty.loss) == ([], [], None)
    assert empty.seq - early.seq == SILENCE
    assert empty.value == early.value
    cut = [merged(runs) for runs in kit.chunks(singles, cycle(lengths))]
    assert kit.encoded(explained(SILENT, cut)) == kit.encoded(expected)


class Twins:
    """Twice ``a``; it fails unless ``b`` and ``c`` are the same, as they always are."""

    fails = True

    def predict_one(self, x: Mapping[str, Any]) -> float:
        if self.fails and x["b"] != x["c"]:
            raise RuntimeError("b is not c")
        return float(2.0 * x["a"])

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        pass


class Calm(Twins):
    fails = False


def changes_of_twins(model: type[Twins]) -> list[Change]:
    config = kit.linear_config(
        features={"a": "numeric", "b": "numeric", "c": "numeric"},
        model={"factory": f"{__name__}:{model.__name__}"},
        explain={"emit_every": 4, "methods": ["ipfi", "ipdp"]},
    )
    # many after the change at half of them, so that the silent features are known to be as far
    n = 4 * SILENCE
    records = [{**r, "x": {**r["x"], "c": r["x"]["b"]}} for r in kit.linear_records(n)]
    everything = kit.of_kind(local(config, records), Explanation)
    return changes(sorted(everything, key=attrgetter("seq")), config)


@pytest.mark.slow
def test_features_on_which_the_model_always_fails_do_not_hold_up_the_others() -> None:
    found = changes_of_twins(Twins)
    calm = [change for change in changes_of_twins(Calm) if change.feature == "a"]
    # the last ones wait until the silent features have spoken
    last = found[-1].status_seq
    assert last is not None
    expected = [change for change in calm if (change.status_seq or 0) <= last]
    assert last > 2 * SILENCE
    assert [change.event_id for change in found] == [change.event_id for change in expected] != []
