"""The model stage watches the loss and the errors: the first shard publishes their changes."""

import pickle
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from river.drift import ADWIN

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.drift.recent_losses import MOST_CHARACTERS, RecentLosses
from fluxplain.schemas import Change, Record
from fluxplain.schemas.change import Signal, change_id
from fluxplain.stages import ModelStage
from fluxplain.stages.model_stage import WHOLE
from tests.kit import records
from tests.kit.stages import modelled
from tests.kit.support import (
    STREAM,
    linear_config,
    messages_of,
    of_kind,
    pickled,
    run,
)


def loss_changes(
    labels: list[float | None], replica: Replica = WHOLE, **drift: Any
) -> list[Change]:
    """Return what the model stage publishes of these labels' squares: the prediction is 0."""
    model = {"factory": "tests.kit.support:Constant"}
    x = {"a": 1.0, "b": 2.0, "c": "u"}
    values = [{"x": x, "y": y, "ts": t} for t, y in enumerate(labels)]
    return drifts(modelled(linear_config(model=model, drift={"loss": drift}), values, replica))


def drifts(records: Iterable[Record]) -> list[Change]:
    """Return the changes of the loss and the errors, without those of inputs and predictions."""
    return [each for each in of_kind(records, Change) if each.kind == "drift"]


def labels(n: int = 700) -> list[float | None]:
    rng = random.Random(1)
    return [rng.gauss(1.0 if t < n // 2 else 3.0, 0.1) for t in range(n)]


def test_a_jump_of_the_loss_is_a_change_without_a_feature() -> None:
    [change] = loss_changes(labels())
    assert (change.kind, change.method, change.feature) == ("drift", "loss", None)
    assert (change.stream, change.signal, change.previous_seq) == (STREAM, "increment", None)
    assert 350 < change.seq <= 390
    assert change.ts == change.seq
    assert change.before == pytest.approx(1.0, abs=0.1)
    assert (change.value, change.std_error) == (None, None)
    assert change.detail.startswith("the loss seems to have risen from ")


def test_changes_of_the_loss_are_those_of_a_plain_adwin() -> None:
    adwin, expected = ADWIN(delta=0.01, grace_period=5), []
    for t, y in enumerate(labels()):
        assert y is not None
        adwin.update(y * y)
        if adwin.drift_detected:
            expected.append(t)
    found = loss_changes(labels(), detector="adwin", delta=0.01, grace_period=5)
    assert [c.seq for c in found] == expected != []


@pytest.mark.slow
def test_only_the_first_shard_watches_the_loss() -> None:
    first, second = (loss_changes(labels(), Replica("model", i, 2)) for i in (0, 1))
    assert first == loss_changes(labels())
    assert second == []


def test_the_loss_is_not_watched_if_switched_off() -> None:
    assert loss_changes(labels(), enabled=False) == []


@pytest.mark.slow
def test_what_has_no_loss_or_one_too_large_to_square_is_not_watched() -> None:
    gaps: list[float | None] = []
    for y in labels():
        gaps += [y, None, 1e100]
    found, expected = loss_changes(gaps), loss_changes(labels())
    assert [(c.seq, c.after, c.window) for c in found] == [
        (3 * c.seq, c.after, c.window) for c in expected
    ]


HALF = 1_000

Chances = tuple[float, float, float]
"""Share of wrong predictions, and the probability of the label where one is wrong, and right."""

QUIET: Chances = (0.05, 0.4, 0.6)
WRONG: Chances = (0.3, 0.4, 0.6935)
"""More wrong predictions than with QUIET, at the same mean cross-entropy of 0.531."""
SURE: Chances = (0.05, 0.4, 0.9)
"""A lower mean cross-entropy than with QUIET, with as many wrong predictions."""
BAD: Chances = (0.5, 0.1, 0.6)


class Known:
    """Gives the label, true, the probability in ``a``."""

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[bool, float]:
        return {False: 1.0 - x["a"], True: x["a"]}


def classifying(name: str = "cross_entropy", **drift: Any) -> Config:
    return linear_config(
        model={"factory": "tests.stages.test_loss_watch:Known", "learn": False},
        label={"type": "boolean"},
        # how the model is explained does not matter here, so as little as possible
        explain={"loss": name, "methods": ["ipfi"], "ipfi": {"reservoir_size": 1}},
        drift={"follow_up": 500, **drift},
    )


def classified(*chances: Chances) -> list[dict[str, Any]]:
    rng = random.Random(1)
    x = {"b": 2.0, "c": "u"}
    return [
        {"x": {**x, "a": wrong if rng.random() < share else right}, "y": True, "ts": None}
        for share, wrong, right in chances
        for _ in range(HALF)
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("later", "signal", "text"),
    [
        (WRONG, "error", "the share of wrong predictions seems to have risen from 0.05"),
        (SURE, "increment", "the loss seems to have fallen from 0.53"),
    ],
)
def test_the_errors_change_without_the_loss_and_the_loss_without_them(
    later: Chances, signal: str, text: str
) -> None:
    found = drifts(modelled(classifying(), classified(QUIET, later)))
    assert [(c.signal, c.status) for c in found] == [(signal, "noticed"), (signal, "confirmed")]
    assert HALF < found[0].seq < HALF + 200
    assert (found[0].feature, found[0].method) == (None, "loss")
    assert found[0].detail.startswith(text)
    assert ("; the loss " in found[0].detail) == (signal == "error")


@pytest.mark.slow
def test_each_change_of_the_two_has_its_own_id_and_second_record() -> None:
    found = drifts(modelled(classifying(), classified(QUIET, BAD)))
    ids = {signal: {c.id for c in found if c.signal == signal} for signal in ("increment", "error")}
    assert all(len(each) == 1 for each in ids.values())
    both: tuple[Signal, ...] = ("increment", "error")
    assert len({change_id(STREAM, "drift", None, "loss", 7, signal=each) for each in both}) == 2
    assert sorted((c.signal or "", c.status or "") for c in found) == [
        ("error", "confirmed"),
        ("error", "noticed"),
        ("increment", "confirmed"),
        ("increment", "noticed"),
    ]


@pytest.mark.slow
def test_both_are_watched_as_before_after_a_checkpoint() -> None:
    config, messages = classifying(), messages_of(classified(QUIET, BAD))
    whole = run(ModelStage(config, STREAM), messages)
    for at in (HALF + 10, HALF + 300):  # before the alarms, and before their second records
        stage = ModelStage(config, STREAM)
        first = run(stage, messages[:at])
        assert [*first, *run(pickled(stage), messages[at:])] == whole


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("loss", "drift", "signals"),
    [
        ("zero_one", {}, {"increment"}),
        ("brier", {}, {"increment"}),
        ("cross_entropy", {"loss": {"detector": "adwin"}}, {"increment", "error"}),
        ("cross_entropy", {"loss": {"enabled": False}}, set()),
    ],
)
def test_errors_are_watched_besides_a_watched_cross_entropy_only(
    loss: str, drift: dict[str, Any], signals: set[str]
) -> None:
    config, values = classifying(loss, **drift), classified(QUIET, BAD)
    assert {c.signal for c in drifts(modelled(config, values))} == signals
    second = modelled(config, values, Replica("model", 1, 2))
    assert drifts(second) == []


def confined() -> list[dict[str, Any]]:
    """Return records with ids, of which those in one city are wrong from the middle on."""
    rng, found = random.Random(3), []
    for t in range(2 * HALF):
        city, b = rng.choice(["Graz", "Linz", "Wien"]), rng.random()
        is_wrong = t >= HALF and city == "Linz" and b > 0.4
        is_wrong |= rng.random() < 0.05
        x = {"a": 0.4 if is_wrong else 0.6, "b": b, "c": city}
        found.append({"x": x, "y": True, "id": f"tx-{t}", "ts": None})
    return found


@pytest.mark.slow
def test_a_change_of_the_errors_says_where_and_by_which_observations() -> None:
    config, messages = classifying(), messages_of(confined())
    whole = run(ModelStage(config, STREAM), messages)
    noticed, last = [c for c in of_kind(whole, Change) if c.signal == "error"]
    assert noticed.region is None
    assert noticed.evidence is not None
    assert [each.id for each in noticed.evidence] == [f"tx-{e.seq}" for e in noticed.evidence]
    assert all(e.increment == 1.0 and (noticed.after_seq or 0) <= e.seq for e in noticed.evidence)
    assert last.region is not None
    city, b = sorted(last.region.conditions, key=lambda each: each.feature, reverse=True)
    assert (city.feature, city.op, city.value) == ("c", "==", "Linz")
    assert (b.feature, b.op) == ("b", ">")
    assert b.value == pytest.approx(0.4, abs=0.03)
    assert "; where " in last.detail
    # whatever is restored in between
    stage = ModelStage(config, STREAM)
    first = run(stage, messages[: HALF + 300])
    assert [*first, *run(pickled(stage), messages[HALF + 300 :])] == whole


MOVES = 2_100
"""Observation at which the truth about one city changes."""


class Forgetful:
    """Learns the new truth about Linz within 200 observations, and forgets that about Graz.

    It relies on the order of the features, as some models do.
    """

    forgets = MOVES + 200
    wrong: frozenset[str] = frozenset({"Linz", "Graz"})

    def __init__(self) -> None:
        self.n = 0

    def learn_one(self, x: Mapping[str, Any], y: bool) -> None:
        self.n += 1

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[bool, float]:
        city, _, _ = x.values()
        is_true = self.n < self.forgets or city not in self.wrong
        return {False: 0.1 + 0.8 * (not is_true), True: 0.1 + 0.8 * is_true}


class Broken(Forgetful):
    """Breaks for one city, where nothing is new."""

    forgets = MOVES
    wrong = frozenset({"Graz"})


class Late(Forgetful):
    """Learns one city late."""

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[bool, float]:
        city, _, _ = x.values()
        is_true = self.n >= MOVES or city != "Graz"
        return {False: 0.1 + 0.8 * (not is_true), True: 0.1 + 0.8 * is_true}


@pytest.mark.parametrize(
    ("model", "is_new", "where"),
    [("Forgetful", True, "Linz"), ("Broken", False, "Graz"), ("Late", False, "Graz")],
)
def test_a_region_is_where_the_world_or_else_the_model_changed(
    model: str,
    is_new: bool,
    where: str,
) -> None:
    rng, values = random.Random(3), []
    for t in range(MOVES + 800):
        city = rng.choice(["Graz", "Linz", "Wien"])
        x = {"a": rng.random(), "b": rng.random(), "c": city}
        is_true = not (is_new and t >= MOVES and city == "Linz")
        values.append({"x": x, "y": is_true, "ts": None})
    config = classifying()
    learning = {"factory": f"tests.stages.test_loss_watch:{model}", "learn": True}
    config = config.model_copy(
        update={
            "features": {"c": "categorical", "a": "numeric", "b": "numeric"},
            "model": config.model.model_copy(update=learning),
        }
    )
    stage, messages = ModelStage(config, STREAM), messages_of(values)
    # restored between the notice and the second record
    first = run(stage, messages[: MOVES + 300])
    found = drifts([*first, *run(pickled(stage), messages[MOVES + 300 :])])
    regions = [each.region for each in found if each.region is not None]
    assert regions
    for region in regions:
        assert [(c.op, c.value) for c in region.conditions] == [("==", where)]


def test_records_of_the_loss_are_bounded_and_may_miss_values() -> None:
    recent = RecentLosses({"a": False, "c": True}, length=1200)
    rng = random.Random(1)
    for seq in range(2000):
        x: dict[str, Any] = {"a": rng.random(), "c": rng.choice("uvw")}
        loss = float(seq >= 1400 and x["c"] == "v")
        del x[rng.choice("ac")]
        recent.add(seq, None, x, loss == 0.0, {"increment": loss})
    change = replace(records.change("a", 1450, before=0.0, after=1.0), feature=None, method="loss")
    change = replace(change, signal="increment", status="confirmed", direction="rose")
    found = recent.with_what_is_behind(replace(change, after_seq=1400), before=500, seed="")
    assert found.region is not None
    assert [(c.feature, c.value) for c in found.region.conditions] == [("c", "v")]
    # what was before is forgotten
    early = recent.with_what_is_behind(replace(change, after_seq=700), before=500, seed="")
    assert early.region is None


def test_long_texts_with_the_losses_are_bounded() -> None:
    names = [f"c{i}" for i in range(20)]
    recent = RecentLosses(dict.fromkeys(names, True), length=5000)
    rng = random.Random(1)
    for seq in range(1000):
        x: dict[str, Any] = {name: f"{seq}-{name}".ljust(1000) for name in names}
        x["c7"] = rng.choice("uvw")
        loss = float(seq >= 800 and x["c7"] == "v")
        recent.add(seq, f"id-{seq}", x, 0, {"increment": loss})
    assert len(pickle.dumps(recent)) < 1.2 * MOST_CHARACTERS
    change = replace(records.change("a", 850, before=0.0, after=1.0), feature=None, method="loss")
    change = replace(change, signal="increment", status="confirmed", direction="rose")
    found = recent.with_what_is_behind(replace(change, after_seq=800), before=200, seed="")
    assert found.evidence is not None
    assert [each.id for each in found.evidence] == [f"id-{each.seq}" for each in found.evidence]
    assert found.region is not None
    assert [(c.feature, c.value) for c in found.region.conditions] == [("c7", "v")]
