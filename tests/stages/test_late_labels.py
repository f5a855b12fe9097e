"""Labels that come later: joined by id, as River's delayed progressive validation has it."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import stream as river_stream

from fluxplain.schemas import DeadLetter, Explanation, LateLabel, Observation, Prediction, Record
from fluxplain.schemas.prediction import LabelCounts
from fluxplain.schemas.record import Value
from fluxplain.stages import ModelStage
from fluxplain.stages.intake.validation import is_late_label
from fluxplain.stages.stage import LATEST_MS
from tests.kit import support as kit
from tests.kit.stages import local, modelled


def sent(values: Sequence[object], *, model: type = kit.Additive, **label: Any) -> list[Record]:
    """Return what a fresh model stage publishes."""
    return modelled(kit.linear_config(model=model, label={"type": "number", **label}), values)


def stamped(values: Sequence[object], times: Sequence[int], wait_s: float) -> list[Record]:
    """Return what a fresh model stage publishes of messages with these timestamps."""
    messages = zip(kit.messages_of(values), times, strict=True)
    label = {"type": "number", "wait_s": wait_s}
    stage = ModelStage(kit.linear_config(label=label), kit.STREAM)
    return kit.run(stage, [replace(each, timestamp=time) for each, time in messages])


def observation(i: int, a: float = 1.0, y: float | None = None) -> dict[str, Any]:
    fields = {"x": {"a": a, "b": 2.0, "c": "u"}, "id": i, "ts": f"at {i}"}
    return fields if y is None else {**fields, "y": y}


def label(i: int, y: float = 3.0) -> dict[str, Any]:
    return {"id": i, "y": y}


def counts(records: Sequence[Record]) -> LabelCounts:
    last = kit.of_kind(records, Prediction)[-1].labels
    assert last is not None
    return last


def test_a_label_may_have_other_fields() -> None:
    other = {"meta": {"source": "bank"}, "X": None, "a": 1.0}
    assert counts(sent([observation(7), {**label(7), **other}])).joined == 1


def test_a_label_is_joined_with_its_observation() -> None:
    first, second = kit.of_kind(sent([observation(7), label(7)]), Prediction)
    assert (first.seq, first.id, first.ts, first.y, first.loss) == (0, 7, "at 7", None, None)
    assert (first.observation, first.first_prediction) == (None, None)
    assert (second.seq, second.previous_seq, second.id, second.ts) == (1, 0, 7, "at 7")
    assert (second.prediction, second.y, second.loss) == (0.0, 3.0, 9.0)
    assert (second.observation, second.first_prediction) == (0, first.prediction)
    assert first.labels == LabelCounts(waiting=1, joined=0, missing=0, repeated=0, unknown=0)
    assert second.labels == LabelCounts(waiting=0, joined=1, missing=0, repeated=0, unknown=0)


def test_the_time_of_a_label_is_its_own_if_it_has_one() -> None:
    predictions = kit.of_kind(sent([observation(7), {**label(7), "ts": 12}]), Prediction)
    assert [each.ts for each in predictions] == ["at 7", 12]


def test_what_needs_a_label_waits_for_it_and_the_rest_does_not() -> None:
    records = kit.linear_records(40)
    values: list[Any] = []
    for i, record in enumerate(records):
        values.append({"x": record["x"], "id": i})
        values += [label(i - 3, records[i - 3]["y"])] if i >= 3 else []
    runs = kit.by_feature(sent(values))
    assert set(runs) == {"a", "b", "c"}
    for evaluations in runs.values():
        late = [each for each in evaluations if each.y != [None]]
        first = [each for each in evaluations if each.y == [None]]
        assert any(each.outputs["ipfi"][0] for each in late)
        assert any(each.outputs["isage"][0] for each in late)
        assert not any(each.outputs["ipdp"][0] for each in late)
        assert any(each.outputs["ipdp"][0] for each in first)
        assert not any(each.outputs["ipfi"][0] or each.outputs["isage"][0] for each in first)


def test_predictions_are_those_of_rivers_delayed_progressive_validation() -> None:
    """River's ``simulate_qa`` defines what is asked and learned when."""
    data = [(record["x"], record["y"]) for record in kit.linear_records(200)]
    oracle = kit.Additive()
    waiting: dict[int, float] = {}
    expected: list[tuple[float, float | None]] = []
    values: list[dict[str, Any]] = []
    delays = random.Random(3)
    delay_of = [delays.randint(1, 60) for _ in data]
    for i, x, y, *_ in river_stream.simulate_qa(
        [({**x, "t": t}, y) for t, (x, y) in enumerate(data)],
        moment="t",
        delay=lambda x, _y: delay_of[x["t"]],
        copy=True,
    ):
        plain = {name: value for name, value in x.items() if name != "t"}
        if y is None:
            waiting[i] = oracle.predict_one(plain)
            expected.append((waiting[i], None))
            values.append({"x": plain, "id": i})
        else:
            expected.append((oracle.predict_one(plain), waiting[i]))
            oracle.learn_one(plain, y)
            values.append(label(i, y))
    published = kit.of_kind(sent(values), Prediction)
    assert [(each.prediction, each.first_prediction) for each in published] == expected


def test_a_label_that_comes_before_its_observation_waits_for_it() -> None:
    """And then all is as if the observation had brought it."""
    records = kit.linear_records(60)
    early: list[Any] = []
    whole: list[Any] = []
    for i, record in enumerate(records):
        whole += [b"{}", {**record, "id": i}]
        early += [label(i, record["y"]), {**record, "id": i, "y": None}]
    expected = [r for r in sent(whole) if not isinstance(r, DeadLetter)]
    published = sent(early)
    assert counts(published).joined == len(records)
    plain = [
        replace(each, labels=None) if isinstance(each, Prediction) else each for each in published
    ]
    assert kit.encoded(plain) == kit.encoded(expected)


OWN = "the observation with id 1 was labelled 1.0 before, and now 2.0: the first counts"

KNOWN = observation(1, y=1.0)

UNUSABLE = {"x": {"b": 2.0, "c": "u"}, "id": 0}


class Outcome(NamedTuple):
    """What becomes of some values: counts, the last prediction's observation, dead letters."""

    values: list[Any]
    counts: tuple[int, ...]
    wait: int = 100
    last: int | None = None
    letters: tuple[tuple[int, str], ...] = ()


OUTCOMES = {
    "it waits for so many others": Outcome(
        [*map(observation, range(6)), label(0)], (5, 1, 0, 0, 0), wait=5, last=0
    ),
    "and for no more": Outcome([*map(observation, range(7)), label(0)], (6, 0, 1, 0, 0), wait=5),
    "a label that says the same again": Outcome(
        [
            observation(0),
            *[label(0)] * 2,
            *[label(1)] * 2,
            observation(1),
            label(1),
            observation(2),
        ],
        (1, 2, 0, 3, 0),
    ),
    "a label that the observation brought, and another observation with its id": Outcome(
        [observation(0), label(0), KNOWN, label(1, 1.0), label(1, 2.0), observation(1)],
        (1, 1, 0, 1, 0),
        letters=((4, OWN),),
    ),
    "an early label is used up by an observation that cannot be used": Outcome(
        [label(0), UNUSABLE, observation(1), observation(0), label(0)],
        (1, 2, 0, 0, 0),
        last=3,
        letters=((1, "x.a is missing, and has had no value yet"),),
    ),
    "a label without an observation": Outcome(
        [label(99), *map(observation, range(4))],
        (4, 0, 0, 0, 1),
        wait=3,
        letters=((0, "no observation with id 99 waits for this label"),),
    ),
    "an id that waits already": Outcome(
        [observation(0, a=1.0), observation(0, a=2.0), label(0)], (0, 1, 1, 0, 0), last=0
    ),
}


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_each_label_is_counted_by_its_outcome(outcome: Outcome) -> None:
    missing = {"features": {"a": "impute"}}
    config = kit.linear_config(missing=missing, label={"type": "number", "wait": outcome.wait})
    published = modelled(config, outcome.values)
    assert counts(published) == LabelCounts(*outcome.counts)
    assert kit.of_kind(published, Prediction)[-1].observation == outcome.last
    letters = kit.of_kind(published, DeadLetter)
    for letter, (offset, reason) in zip(letters, outcome.letters, strict=True):
        assert letter.offset == offset
        assert letter.reason.startswith(reason)


def test_an_observation_waits_for_so_long_by_the_time_of_the_messages() -> None:
    def published(then: int) -> list[Record]:
        # a time that is before another's changes nothing
        return stamped([observation(0), observation(1), label(0)], [1_000, 500, then], wait_s=2.5)

    assert counts(published(3_500)).joined == 1
    assert len(kit.of_kind(published(3_501), Prediction)) == 2


@pytest.mark.parametrize("wrong", [LATEST_MS + 1, 10**15, 2**63 - 1])
def test_a_timestamp_that_is_none_in_milliseconds_ends_no_waiting(wrong: int) -> None:
    values = [observation(0), observation(1), label(0), observation(2), label(1)]
    published = stamped(values, [1_000, wrong, 2_000, 4_000, 4_000], wait_s=2.5)
    # the label of the second comes too late
    assert [e.observation for e in kit.of_kind(published, Prediction)] == [None, None, 0, None]


def test_what_waited_in_vain_can_be_a_dead_letter() -> None:
    values = [observation(i) for i in range(4)]
    [letter] = kit.of_kind(sent(values, wait=2, unlabelled="dead-letter"), DeadLetter)
    assert (letter.offset, letter.original()) == (0, orjson.dumps(values[0]))
    assert letter.reason == "no label with id 0 came in time (label.wait)"


@pytest.mark.parametrize(
    "values",
    [
        [observation(0), label(0, 1.0), label(0, 2.0)],
        [label(0, 1.0), label(0, 2.0), observation(0)],
        [label(0, 2.0), observation(0, y=1.0)],
    ],
)
def test_a_label_that_contradicts_another_is_a_dead_letter(values: list[Any]) -> None:
    published = sent(values)
    [letter] = kit.of_kind(published, DeadLetter)
    assert letter.reason == (
        "the observation with id 0 was labelled 1.0 before, and now 2.0: the first counts"
    )
    assert orjson.loads(letter.original() or b"") == label(0, 2.0)
    assert [each.y for each in kit.of_kind(published, Prediction) if each.y is not None] == [1.0]


NO_ID = [{"x": observation(0)["x"]}, {"y": 3.0}]


@pytest.mark.parametrize(
    ("values", "wait", "reason"),
    [
        (NO_ID, 100, "no x: an observation needs an object of feature values"),
        ([observation(0), label(0)], 0, "label.wait is 0: no observation waits for a later label"),
    ],
    ids=["without an id", "not wanted"],
)
def test_nothing_waits(values: list[Any], wait: int, reason: str) -> None:
    first, letter = sent(values, wait=wait)
    assert isinstance(first, Prediction)
    assert first.labels is None
    assert isinstance(letter, DeadLetter)
    assert letter.reason == reason


def test_a_model_that_fails_on_a_labelled_observation_gives_a_dead_letter_of_the_label() -> None:
    *_, letter = sent([observation(0), label(0)], model=Forgetful)
    assert isinstance(letter, DeadLetter)
    assert letter.offset == 1
    assert letter.reason == "the model failed: RuntimeError: I cannot learn"


class Forgetful(kit.Additive):
    """Predicts, but cannot learn."""

    def learn_one(self, x: Any, y: float) -> None:
        raise RuntimeError("I cannot learn")


def test_dead_letters_of_evicted_observations_are_published_even_if_the_newest_fails() -> None:
    values = [observation(0), observation(1), observation(2, y=1.0)]
    records = sent(values, model=Forgetful, wait=1, unlabelled="dead-letter")
    assert [letter.offset for letter in kit.of_kind(records, DeadLetter)] == [0, 2]


def test_a_model_without_an_output_before_it_learns_is_explained_from_then_on() -> None:
    """Of an observation without a prediction the mean prediction has none either."""
    values: list[Any] = []
    data = list(kit.agrawal(80))
    for i, (x, _) in enumerate(data):
        values.append({"x": x, "id": i})
        values += [label(i - 20, data[i - 20][1])] if i >= 20 else []
    config = kit.make_config(model={"factory": "river.naive_bayes:GaussianNB", "params": {}})
    published = local(config, values)
    predictions = kit.of_kind(published, Prediction)
    assert [each.prediction for each in predictions[:20]] == [None] * 20
    assert predictions[-1].first_prediction is not None
    assert {each.method for each in kit.of_kind(published, Explanation)} == {
        "ipfi",
        "isage",
        "ipdp",
    }


# any order


@st.composite
def orders(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return observations and labels of a few ids in any order, some twice, some never."""
    values: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 40))):
        i, y = draw(st.integers(0, 8)), draw(st.sampled_from([1.0, 1.0, 1.0, 2.0]))
        kind = draw(st.sampled_from(["observation", "observation", "label", "label", "both"]))
        if kind == "label":
            values.append(label(i, y))
        else:
            values.append(observation(i, a=float(i), y=y if kind == "both" else None))
    return values


@pytest.mark.slow
@kit.PROPERTY
@given(orders(), st.integers(1, 6), st.sampled_from(["count", "dead-letter"]))
def test_whatever_the_order_everything_is_counted_once(
    values: list[dict[str, Any]], wait: int, unlabelled: str
) -> None:
    # what is left comes to its end
    ends = [observation(1000 + i, y=0.0) for i in range(wait + 1)]
    records = sent([*values, *ends], wait=wait, unlabelled=unlabelled)
    end = kit.of_kind(records, Prediction)[-1].labels
    letters = kit.of_kind(records, DeadLetter)
    of_labels = [each for each in letters if b'"x"' not in (each.original() or b"")]
    if end is None:
        assert all("x" in each and "y" in each for each in values)
        return
    waited = sum("x" in each and "y" not in each for each in values)
    assert end.waiting == 0
    assert end.joined + end.missing == waited
    assert end.joined + end.repeated + len(of_labels) == sum("x" not in each for each in values)
    contradictions = [each for each in of_labels if "the first counts" in each.reason]
    assert end.unknown == len(of_labels) - len(contradictions)
    assert len(letters) - len(of_labels) == (end.missing if unlabelled == "dead-letter" else 0)
    labelled = [each for each in kit.of_kind(records, Prediction) if each.observation is not None]
    early = sum(
        each.observation is None and each.y is not None for each in kit.of_kind(records, Prediction)
    )
    own = sum("x" in each and "y" in each for each in values) + len(ends)
    assert len(labelled) + early - own == end.joined


@pytest.mark.slow
@kit.PROPERTY
@given(orders(), st.integers(1, 6))
def test_shards_and_copies_join_as_the_whole_does(values: list[dict[str, Any]], wait: int) -> None:
    config = kit.linear_config(
        label={"type": "number", "wait": wait, "unlabelled": "dead-letter"},
        explain={"methods": ["ipfi", "ipdp"]},
    )
    kit.run_alike(config, kit.messages_of(values))


FEATURES = ["amount", "country"]


@pytest.mark.parametrize(
    "others",
    [
        {"meta": {"country": "AT"}},
        {"tx": {"amount": 1.0, "currency": "EUR"}},
        {"amount": None, "country": None},
        {"amount": 1.0},
        {"X": 3, "ID": 5, "TS": 17},
    ],
)
def test_other_fields_of_a_label_are_ignored(others: dict[str, Any]) -> None:
    fields = {"id": "t1", "y": True, **others}
    assert is_late_label(fields, FEATURES)
    assert LateLabel.of(fields) == LateLabel("t1", True)


def test_a_single_feature_beside_a_label_is_ignored() -> None:
    for others in ({"amount": 1.0}, {"tx": {"amount": 1.0}}):
        assert is_late_label({"id": "t1", "y": True, **others}, ["amount"])


@pytest.mark.parametrize(
    "others",
    [
        {"amount": 1.0, "country": "AT"},
        {"tx": {"amount": 1.0, "country": None}},
        {"X": {"any": 1}},
    ],
)
def test_what_clearly_holds_the_features_is_no_label(others: dict[str, Any]) -> None:
    assert not is_late_label({"id": "t1", "y": True, **others}, FEATURES)


def test_fields_in_another_case_are_ignored_where_nothing_is_lost() -> None:
    x: dict[str, Value | None] = {"amount": 1.0, "country": "AT"}
    given = {"x": x, "y": True, "Y": False, "X": {"a": 1}, "ID": "db-77", "Ts": "2026"}
    assert Observation.of(given) == Observation(x, True)
    assert LateLabel.of({"id": 1, "y": 2, "X": {"a": 1}, "Y": 3}) == LateLabel(1, 2)
