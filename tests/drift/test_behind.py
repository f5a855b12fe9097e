"""What is behind a change: the same whatever order the features' explanations arrive in."""

import random
from dataclasses import replace

import numpy as np
import pytest

from fluxplain.drift.behind import with_what_is_behind
from fluxplain.drift.recent_observations import Recent
from fluxplain.schemas import Change, Explanation
from tests.kit import records

BEGIN, SEEN, END = 1000, 1100, 2000
BAD = 995


def explanations(feature: str, rng: np.random.Generator, together: int) -> list[Explanation]:
    """Return iPFI of a feature; that of ``a`` rises where it is above 0.6."""
    seqs = [*range(END)]
    values = rng.random(END)
    increments = rng.normal(0.1, 0.1, END)
    if feature == "a":
        increments[BEGIN:][values[BEGIN:] > 0.6] += 0.5
        increments[1050] = 9.0
    if feature == "b":
        values[BAD] = 77.0
    found = []
    for first in range(0, END, together):
        part = slice(first, first + together)
        found.append(
            replace(
                records.explanation(feature, seqs[part][-1], 0.0),
                seqs=seqs[part],
                increments=increments[part].tolist(),
                values=values[part].tolist(),
                ids=[f"tx-{seq}" for seq in seqs[part]] if feature == "a" else None,
            )
        )
    return found


def change() -> Change:
    noticed = records.change("a", SEEN, before=0.1, after=0.3)
    return replace(
        noticed,
        after_seq=BEGIN,
        delay_bound=140,
        status="confirmed",
        status_seq=END - 1,
        direction="rose",
        signal="increment",
    )


def behind(order: random.Random | None = None, together: int = 10) -> Change:
    rng = np.random.default_rng(1)
    queues = [explanations(name, rng, together) for name in "abc"]
    recent = Recent(categorical=[], series=3, emit_every=10, length=4000)
    while queues:
        queue = queues[0] if order is None else order.choice(queues)
        e = queue.pop(0)
        recent.add(e, e.seqs[0] - 1)
        queues = [each for each in queues if each]
    return with_what_is_behind(change(), recent, before=1000, seed="1")


def test_the_region_and_the_records_are_named() -> None:
    found = behind()
    assert found.region is not None
    [condition] = found.region.conditions
    assert (condition.feature, condition.op) == ("a", ">")
    assert condition.value == pytest.approx(0.6, abs=0.03)
    assert found.region.coverage == pytest.approx(0.4, abs=0.05)
    assert found.region.share == pytest.approx(1.0, abs=0.2)
    assert found.evidence is not None
    named = {each.seq: each for each in found.evidence}
    assert (named[BAD].feature, named[BAD].value, named[BAD].id) == ("b", 77.0, f"tx-{BAD}")
    assert named[1050].increment == 9.0
    assert len(named) == 4


def test_the_order_of_the_features_does_not_matter() -> None:
    assert all(behind(random.Random(seed)) == behind() for seed in range(5))


@pytest.mark.slow
def test_how_many_observations_an_explanation_tells_of_does_not_matter() -> None:
    assert all(behind(together=n) == behind() for n in (1, 3, 7))


def test_long_before_a_change_only_values_far_outside_count() -> None:
    recent, n = Recent(categorical=[], series=1, emit_every=10, length=9000), 4000
    values = np.random.default_rng(1).random(n)
    values[[900, 1500, 1600, 2900]] = 9.0, 2.0, 9.0, 2.0
    for first in range(0, n, 10):
        seqs = [*range(first, first + 10)]
        known = {"seqs": seqs, "increments": [0.1] * 10, "values": values[seqs].tolist()}
        recent.add(replace(records.explanation("a", seqs[-1], 0.0), **known), first - 1)
    late = replace(change(), seq=3100, after_seq=3000, delay_bound=100, status_seq=3900)
    evidence = with_what_is_behind(late, recent, before=1000, seed="1").evidence or ()
    assert [each.seq for each in evidence if each.feature] == [1600, 2900]


def test_a_change_that_did_not_last_and_the_loss_have_no_region() -> None:
    recent = Recent(categorical=[], series=1, emit_every=10, length=4000)
    for each in (replace(change(), status="transient"), replace(change(), feature=None)):
        assert with_what_is_behind(each, recent, before=1000, seed="1").region is None
