"""The model stage watches the loss: a change of it is published by the first shard."""

import random
from typing import Any

import pytest
from river.drift import ADWIN

from fluxplain.config.replica import Replica
from fluxplain.schemas import Change
from fluxplain.stages.model_stage import WHOLE
from tests.kit.stages import modelled
from tests.kit.support import STREAM, linear_config, of_kind


def loss_changes(
    labels: list[float | None], replica: Replica = WHOLE, **drift: Any
) -> list[Change]:
    """Return what the model stage publishes of these labels' squares: the prediction is 0."""
    model = {"factory": "tests.kit.support:Constant"}
    x = {"a": 1.0, "b": 2.0, "c": "u"}
    values = [{"x": x, "y": y, "ts": t} for t, y in enumerate(labels)]
    return of_kind(
        modelled(linear_config(model=model, drift={"loss": drift}), values, replica), Change
    )


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


def test_only_the_first_shard_watches_the_loss() -> None:
    first, second = (loss_changes(labels(), Replica("model", i, 2)) for i in (0, 1))
    assert first == loss_changes(labels())
    assert second == []


def test_the_loss_is_not_watched_if_switched_off() -> None:
    assert loss_changes(labels(), enabled=False) == []


def test_what_has_no_loss_or_one_too_large_to_square_is_not_watched() -> None:
    gaps: list[float | None] = []
    for y in labels():
        gaps += [y, None, 1e100]
    found, expected = loss_changes(gaps), loss_changes(labels())
    assert [(c.seq, c.after, c.window) for c in found] == [
        (3 * c.seq, c.after, c.window) for c in expected
    ]
