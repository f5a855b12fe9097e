"""What is known of a stream's newest observations, whatever is ahead of what."""

import random
from dataclasses import replace
from typing import Any

import pytest

from fluxplain.schemas import Change, DeadLetter, Explanation
from fluxplain.schemas.contrast import Contrast
from fluxplain.stages import DriftStage
from fluxplain.stages.limits import MAX_SEQ
from tests.kit import support as kit
from tests.stages.test_drift_stage import explanation, explanations, increments


def published(features: dict[str, str], records: list[Explanation], **settings: Any) -> list[Any]:
    stage = DriftStage(kit.linear_config(features=features, **settings))
    return kit.run(stage, kit.passed_on(records))


def interleaved(queues: list[list[Explanation]], order: random.Random) -> list[Explanation]:
    queues, records = [[*queue] for queue in queues], []
    while queues := [queue for queue in queues if queue]:
        records.append(order.choice(queues).pop(0))
    return records


def of_feature(
    name: str, numbers: list[float], values: list[Any], every: int | list[int] = 10
) -> list[Explanation]:
    return [
        replace(
            each,
            feature=name,
            values=[values[seq] for seq in each.seqs],
            ids=[*each.seqs] if name == "a" else None,
        )
        for each in explanations(numbers, every)
    ]


def behind(records: list[Any]) -> list[Any]:
    changes = sorted(kit.of_kind(records, Change), key=lambda c: c.event_id)
    return [(c.event_id, c.evidence, c.region, c.cause, c.detail) for c in changes]


def test_new_categories_of_a_feature_far_ahead_hide_none_of_those_at_a_change() -> None:
    n, rng = 2000, random.Random(0)
    values = [f"new-{t}" if rng.random() < 0.2 else f"known-{t % 5}" for t in range(n)]
    a = of_feature("a", increments(n), [1.0] * n)
    b = of_feature("b", [0.0] * n, values)
    features = {"a": "numeric", "b": "categorical"}
    first, last = published(features, [*a, *b]), published(features, [*b, *a])
    assert behind(first) == behind(last)
    change, *_ = kit.of_kind(first, Change)
    assert {each.feature for each in change.evidence or ()} > {"b"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("follow_up", [100, 300])
def test_what_is_forgotten_does_not_depend_on_the_order(follow_up: int) -> None:
    n, rng = 7000, random.Random(3)
    values = [900.0 + t if 4000 <= t < 5200 and t % 90 == 0 else rng.random() for t in range(n)]
    numbers = [rng.gauss(0.5 if t < 5000 else 0.75, 1.0) for t in range(n)]
    queues = [
        of_feature("a", numbers, values, 256),
        of_feature("b", [0.0] * n, values, [37] + [256] * 40),
        of_feature("c", [0.0] * n, values, [193] + [256] * 40),
    ]
    found = [
        behind(
            published(
                dict.fromkeys("abc", "numeric"),
                interleaved(queues, random.Random(seed)),
                drift={"follow_up": follow_up},
                explain={"emit_every": 256},
            )
        )
        for seed in range(4)
    ]
    assert found[0]
    assert all(each == found[0] for each in found)


def sparse(name: str, step: int, numbers: list[float]) -> list[Explanation]:
    """Return explanations of each step-th observation, one for every hundred of them."""
    return [
        replace(
            each,
            seq=each.seq * step,
            previous_seq=None if each.previous_seq is None else each.previous_seq * step,
            seqs=[seq * step for seq in each.seqs],
            ids=None,
        )
        for each in of_feature(name, numbers, [*map(float, range(len(numbers)))], 100)
    ]


def test_a_method_far_ahead_makes_another_one_forget_nothing() -> None:
    rng, queues = random.Random(3), []
    for name in "ab":
        rare = sparse(
            name, 100, [rng.gauss(2.0 * (name == "a" and t >= 570), 0.3) for t in range(700)]
        )
        many = sparse(name, 1, [1.0] * 70_000)
        often = [replace(e, method="ipdp", trends=[0.0] * len(e.seqs)) for e in many]
        queues.append(sorted([*rare, *often], key=lambda e: e.seq))
    settings = {"emit_every": 100, "methods": ["ipfi", "ipdp"]}
    first, second = queues
    together = sorted([*first, *second], key=lambda e: e.seq)
    found = [
        behind(published(dict.fromkeys("ab", "numeric"), records, explain=settings))
        for records in ([*first, *second], together)
    ]
    assert found[0] == found[1]
    assert [len(evidence) for _, evidence, *_ in found[0]] == [3, 3]


def test_observations_that_an_explainer_tells_again_count_once() -> None:
    known = explanations(increments(400), 10)
    again = [
        replace(each, incarnation="1/7", previous_seq=each.previous_seq if i else None)
        for i, each in enumerate(explanations(increments(), 10)[20:])
    ]
    stage = DriftStage(kit.linear_config(features={"a": "numeric"}))
    kit.run(stage, kit.passed_on([*known, *again]))
    [stream] = stage._lives[kit.STREAM].values()
    assert stream.recent.columns("a", "ipfi").seqs.tolist() == [*range(600)]


@pytest.mark.parametrize(
    "contrasts",
    [
        [Contrast(7, 3, 1e308, 1.0, 1.0, 1.0)],
        [Contrast(8, 3, 1.0, 1.0, 1.0, 1.0)],
        [Contrast(7, 3, 1.0, 1.0, 1.0, 1.0)] * 2,
        [Contrast(7, 7, 1.0, 1.0, 1.0, 1.0)],
    ],
)
def test_contrasts_that_no_explainer_writes_are_dead_letters(contrasts: list[Contrast]) -> None:
    bad = replace(explanation([7], [1.0], None), contrasts=contrasts)
    [letter] = published({"a": "numeric"}, [bad])
    assert isinstance(letter, DeadLetter)


def test_an_offset_beyond_64_bits_is_a_dead_letter() -> None:
    [letter] = published({"a": "numeric"}, [explanation([2**63], [1.0], None)])
    assert isinstance(letter, DeadLetter)
    assert not published({"a": "numeric"}, [explanation([MAX_SEQ], [1.0], None)])
