"""Labels that come later: joined by id, as River's delayed progressive validation has it."""

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import stream as river_stream

from fluxplain.config import LabelSettings
from fluxplain.local import LocalPipeline
from fluxplain.schemas import DeadLetter, Explanation, LateLabel, Prediction, Record
from fluxplain.schemas.prediction import LabelCounts
from fluxplain.stages import ModelStage
from fluxplain.stages.intake.late_labels import MAX_KEPT_BYTES, LateLabels
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.limits import HEADER_MEMORY_BYTES, MAX_HEADERS, MAX_TEXT
from fluxplain.stages.stage import LATEST_MS
from tests.kit.support import (
    PROPERTY,
    STREAM,
    Additive,
    agrawal,
    by_feature,
    encoded,
    linear_config,
    linear_records,
    make_config,
    message,
    messages_of,
    of_kind,
    run,
    run_alike,
)


def stage(**settings: Any) -> ModelStage:
    return ModelStage(linear_config(**settings), STREAM)


def observation(i: int, a: float = 1.0, y: float | None = None) -> dict[str, Any]:
    fields = {"x": {"a": a, "b": 2.0, "c": "u"}, "id": i, "ts": f"at {i}"}
    return fields if y is None else {**fields, "y": y}


def label(i: int, y: float = 3.0) -> dict[str, Any]:
    return {"id": i, "y": y}


def counts(records: Sequence[Record]) -> LabelCounts:
    last = of_kind(records, Prediction)[-1].labels
    assert last is not None
    return last


def test_a_label_is_joined_with_its_observation() -> None:
    first, second = of_kind(run(stage(), messages_of([observation(7), label(7)])), Prediction)
    assert (first.seq, first.id, first.ts, first.y, first.loss) == (0, 7, "at 7", None, None)
    assert (first.observation, first.first_prediction) == (None, None)
    assert (second.seq, second.previous_seq, second.id, second.ts) == (1, 0, 7, "at 7")
    assert (second.prediction, second.y, second.loss) == (0.0, 3.0, 9.0)
    assert (second.observation, second.first_prediction) == (0, first.prediction)
    assert first.labels == LabelCounts(waiting=1, joined=0, missing=0, repeated=0, unknown=0)
    assert second.labels == LabelCounts(waiting=0, joined=1, missing=0, repeated=0, unknown=0)


def test_the_time_of_a_label_is_its_own_if_it_has_one() -> None:
    values = [observation(7), {**label(7), "ts": 12}]
    assert [each.ts for each in of_kind(run(stage(), messages_of(values)), Prediction)] == [
        "at 7",
        12,
    ]


def test_what_needs_a_label_waits_for_it_and_the_rest_does_not() -> None:
    records = linear_records(40)
    values: list[Any] = []
    for i, record in enumerate(records):
        values.append({"x": record["x"], "id": i})
        values += [label(i - 3, records[i - 3]["y"])] if i >= 3 else []
    runs = by_feature(run(stage(), messages_of(values)))
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
    """River's ``simulate_qa`` says what is asked and learned when."""
    data = [(record["x"], record["y"]) for record in linear_records(200)]
    oracle = Additive()
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
    published = of_kind(run(stage(), messages_of(values)), Prediction)
    assert [(each.prediction, each.first_prediction) for each in published] == expected


def test_a_label_that_comes_before_its_observation_waits_for_it() -> None:
    """And then all is as if the observation had brought it."""
    records = linear_records(60)
    early: list[Any] = []
    whole: list[Any] = []
    for i, record in enumerate(records):
        whole += [b"{}", {**record, "id": i}]
        early += [label(i, record["y"]), {**record, "id": i, "y": None}]
    expected = [r for r in run(stage(), messages_of(whole)) if not isinstance(r, DeadLetter)]
    published = run(stage(), messages_of(early))
    assert counts(published).joined == len(records)
    plain = [
        replace(each, labels=None) if isinstance(each, Prediction) else each for each in published
    ]
    assert encoded(plain) == encoded(expected)


def test_an_observation_waits_for_so_many_others() -> None:
    values = [observation(i) for i in range(6)]
    late = run(stage(label={"type": "number", "wait": 5}), messages_of([*values, label(0)]))
    assert counts(late) == LabelCounts(waiting=5, joined=1, missing=0, repeated=0, unknown=0)
    values.append(observation(6))
    published = run(stage(label={"type": "number", "wait": 5}), messages_of([*values, label(0)]))
    assert counts(published) == LabelCounts(waiting=6, joined=0, missing=1, repeated=0, unknown=0)


def test_an_observation_waits_for_so_long_by_the_time_of_the_messages() -> None:
    def published(then: int) -> list[Record]:
        values = [observation(0), observation(1), label(0)]
        times = [1_000, 500, then]  # a time that is before another's changes nothing
        stamped = [
            replace(each, timestamp=time)
            for each, time in zip(messages_of(values), times, strict=True)
        ]
        return run(stage(label={"type": "number", "wait_s": 2.5}), stamped)

    assert counts(published(3_500)).joined == 1
    assert len(of_kind(published(3_501), Prediction)) == 2


@pytest.mark.parametrize("wrong", [LATEST_MS + 1, 10**15, 2**63 - 1])
def test_a_timestamp_that_is_none_in_milliseconds_ends_no_waiting(wrong: int) -> None:
    values = [observation(0), observation(1), label(0), observation(2), label(1)]
    times = [1_000, wrong, 2_000, 4_000, 4_000]
    stamped = [
        replace(each, timestamp=time) for each, time in zip(messages_of(values), times, strict=True)
    ]
    published = run(stage(label={"type": "number", "wait_s": 2.5}), stamped)
    # the label of the second comes too late
    assert [e.observation for e in of_kind(published, Prediction)] == [None, None, 0, None]


def test_what_waited_in_vain_can_be_a_dead_letter() -> None:
    settings = {"type": "number", "wait": 2, "unlabelled": "dead-letter"}
    values = [observation(i) for i in range(4)]
    [letter] = of_kind(run(stage(label=settings), messages_of(values)), DeadLetter)
    assert (letter.offset, letter.original()) == (0, orjson.dumps(values[0]))
    assert letter.reason == "no label with id 0 came in time (label.wait)"


def test_a_label_that_says_the_same_again_is_counted() -> None:
    values = [observation(0), label(0), label(0), label(1), label(1), observation(1), label(1)]
    published = run(stage(), messages_of(values))
    assert counts(run(stage(), messages_of([*values, observation(2)]))) == LabelCounts(
        waiting=1, joined=2, missing=0, repeated=3, unknown=0
    )
    assert not of_kind(published, DeadLetter)


@pytest.mark.parametrize(
    "values",
    [
        [observation(0), label(0, 1.0), label(0, 2.0)],
        [label(0, 1.0), label(0, 2.0), observation(0)],
        [label(0, 2.0), observation(0, y=1.0)],
    ],
)
def test_a_label_that_contradicts_another_is_a_dead_letter(values: list[Any]) -> None:
    published = run(stage(), messages_of(values))
    [letter] = of_kind(published, DeadLetter)
    assert letter.reason == (
        "the observation with id 0 was labelled 1.0 before, and now 2.0: the first counts"
    )
    assert orjson.loads(letter.original() or b"") == label(0, 2.0)
    assert [each.y for each in of_kind(published, Prediction) if each.y is not None] == [1.0]


def test_the_label_that_an_observation_brought_is_known() -> None:
    values = [observation(0), label(0), observation(1, y=1.0), label(1, 1.0), label(1, 2.0)]
    # nor does another observation with its id get what was said of it
    published = run(stage(), messages_of([*values, observation(1)]))
    [letter] = of_kind(published, DeadLetter)
    assert letter.offset == 4
    assert letter.reason == (
        "the observation with id 1 was labelled 1.0 before, and now 2.0: the first counts"
    )
    assert counts(published) == LabelCounts(waiting=1, joined=1, missing=0, repeated=1, unknown=0)


def test_where_no_label_comes_later_none_is_remembered() -> None:
    def state(n: int) -> int:
        labels = LateLabels(LabelSettings())
        for i in range(n):
            labels.advance(message(i, None), is_observation=True)
            assert labels.observe(i, True, []) is True
        return len(pickle.dumps(labels))

    assert state(1_000) < state(0) + 10


def test_an_early_label_is_used_up_by_an_observation_that_cannot_be_used() -> None:
    missing = {"features": {"a": "impute"}}
    unusable = {"x": {"b": 2.0, "c": "u"}, "id": 0}
    values = [label(0), unusable, observation(1), observation(0), label(0)]
    published = run(stage(missing=missing), messages_of(values))
    [letter] = of_kind(published, DeadLetter)
    assert letter.offset == 1
    assert letter.reason.startswith("x.a is missing, and has had no value yet")
    assert of_kind(published, Prediction)[-1].observation == 3
    assert counts(published) == LabelCounts(waiting=1, joined=2, missing=0, repeated=0, unknown=0)


def test_a_label_without_an_observation_becomes_a_dead_letter_in_the_end() -> None:
    settings = {"type": "number", "wait": 3}
    values = [label(99), *(observation(i) for i in range(4))]
    published = run(stage(label=settings), messages_of(values))
    [letter] = of_kind(published, DeadLetter)
    assert letter.offset == 0
    assert letter.reason.startswith("no observation with id 99 waits for this label")
    assert counts(published).unknown == 1


def test_labels_alone_do_not_fill_the_memory() -> None:
    published = run(
        stage(label={"type": "number", "wait": 3}), messages_of([label(i) for i in range(10)])
    )
    assert [letter.offset for letter in of_kind(published, DeadLetter)] == list(range(7))


@pytest.mark.parametrize("kind", ["labels", "observations"])
def test_large_messages_do_not_fill_the_memory(kind: str) -> None:
    size, n = 900_000, 2 * MAX_KEPT_BYTES // 900_000
    note = {"note": "x" * size}
    settings = {"type": "number", "unlabelled": "dead-letter"}
    model = stage(label=settings)
    letters: list[DeadLetter] = []
    for i in range(n):
        fields = label(i) if kind == "labels" else observation(i)
        letters += of_kind(run(model, [message(i, {**fields, **note})]), DeadLetter)
    kept = n - len(letters)
    assert [letter.offset for letter in letters] == list(range(len(letters)))
    assert MAX_KEPT_BYTES - size < kept * size <= MAX_KEPT_BYTES


def test_many_headers_do_not_fill_the_memory() -> None:
    headers = {f"h{i}": b"" for i in range(MAX_HEADERS)}
    labels = LateLabels(LabelSettings(type="number"))
    letters: list[Any] = []
    n = 2 * MAX_KEPT_BYTES // (HEADER_MEMORY_BYTES * MAX_HEADERS)
    for i in range(n):
        came = replace(message(i, None), headers=headers)
        labels.advance(came, is_observation=False)
        labels.join(LateLabel(id=i, y=1.0), came, letters)
    assert [letter.offset for letter in letters] == list(range(len(letters)))
    assert len(letters) > n // 2


def test_long_categories_do_not_fill_the_memory() -> None:
    """Nor do they where nothing of what waits can become a dead letter."""
    size, n = 100 * MAX_TEXT, 2 * MAX_KEPT_BYTES // (100 * MAX_TEXT)
    labels = LateLabels(LabelSettings())
    for i in range(n):
        x: dict[str, Any] = {f"c{k}": f"{i} {k}".ljust(MAX_TEXT, "c") for k in range(100)}
        came = message(i, None)
        assert not labels.advance(came, is_observation=True)
        labels.wait(i, Sample(i, x, None, i, None, came), None, [])
    told = labels.counts
    assert told is not None
    assert MAX_KEPT_BYTES - size < told.waiting * size <= MAX_KEPT_BYTES
    assert told.missing == n - told.waiting


def test_long_labels_do_not_fill_the_memory() -> None:
    """As what is known, so that those that come again are."""
    n = MAX_KEPT_BYTES // (2 * MAX_TEXT) + 10
    labels = LateLabels(LabelSettings(type="string", wait=1_000_000))
    letters: list[Any] = []

    def come(i: int) -> None:
        id_, y = f"{i}".ljust(MAX_TEXT, "i"), f"{i}".ljust(MAX_TEXT, "y")
        assert labels.join(LateLabel(id=id_, y=y), message(2 * i, None), letters) is None
        assert labels.observe(id_, None, letters) in (y, None)

    for i in range(n):
        come(i)
    for i in (n - 1, 0):  # the first is known no longer, and waits
        come(i)
    assert not letters
    assert labels.counts is not None
    assert (labels.counts.repeated, labels.counts.joined) == (1, n + 1)


def test_an_id_that_waits_already_waits_once() -> None:
    values = [observation(0, a=1.0), observation(0, a=2.0), label(0)]
    published = run(stage(), messages_of(values))
    assert of_kind(published, Prediction)[-1].observation == 0
    assert counts(published) == LabelCounts(waiting=0, joined=1, missing=1, repeated=0, unknown=0)


def test_without_an_id_nothing_waits() -> None:
    values = [{"x": observation(0)["x"]}, {"y": 3.0}]
    first, letter = run(stage(), messages_of(values))
    assert isinstance(first, Prediction)
    assert first.labels is None
    assert isinstance(letter, DeadLetter)
    assert letter.reason == "no x: an observation needs an object of feature values"


def test_nothing_waits_if_it_is_not_wanted() -> None:
    settings = {"type": "number", "wait": 0}
    first, letter = run(stage(label=settings), messages_of([observation(0), label(0)]))
    assert isinstance(first, Prediction)
    assert first.labels is None
    assert isinstance(letter, DeadLetter)
    assert letter.reason == "label.wait is 0: no observation waits for a later label"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": 1}, "no y: a label that comes later needs one"),
        ({"id": None, "y": 1.0}, "no id: a label needs that of its observation"),
        ({"id": 1, "y": "two"}, 'y must be a finite number, not a string "two"'),
        ({"id": [1], "y": 1.0}, "id must be a single value, not an array [1]"),
        ({"id": 1, "y": {}}, "y must be a single value, not an object {}"),
        ({"id": 1, "y": 1.0, "ts": {}}, "ts must be a single value, not an object {}"),
        (
            {"id": "i" * 1_001, "y": 1.0},
            "id has 1,001 characters, but must have at most 1,000",
        ),
    ],
)
def test_a_label_that_cannot_be_used_is_a_dead_letter(value: Any, reason: str) -> None:
    [letter] = run(stage(), messages_of([value]))
    assert isinstance(letter, DeadLetter)
    assert letter.reason == reason


def test_a_model_that_fails_on_a_labelled_observation_gives_a_dead_letter_of_the_label() -> None:
    model = stage(model={"factory": "tests.stages.test_late_labels:Forgetful"})
    *_, letter = run(model, messages_of([observation(0), label(0)]))
    assert isinstance(letter, DeadLetter)
    assert letter.offset == 1
    assert letter.reason == "the model failed: RuntimeError: I cannot learn"


class Forgetful(Additive):
    """Predicts, but cannot learn."""

    def learn_one(self, x: Any, y: float) -> None:
        raise RuntimeError("I cannot learn")


def test_letters_of_what_waited_are_told_whatever_becomes_of_the_newest() -> None:
    settings = {"type": "number", "wait": 1, "unlabelled": "dead-letter"}
    model = stage(label=settings, model={"factory": "tests.stages.test_late_labels:Forgetful"})
    values = [observation(0), observation(1), observation(2, y=1.0)]
    letters = of_kind(run(model, messages_of(values)), DeadLetter)
    assert [letter.offset for letter in letters] == [0, 2]


def test_a_model_that_first_says_something_when_it_has_learned_is_explained_from_then_on() -> None:
    """Of an observation without a prediction the mean prediction has none either."""
    values: list[Any] = []
    data = list(agrawal(120))
    for i, (x, _) in enumerate(data):
        values.append({"x": x, "id": i})
        values += [label(i - 20, data[i - 20][1])] if i >= 20 else []
    config = make_config(model={"factory": "river.naive_bayes:GaussianNB", "params": {}})
    published = list(LocalPipeline(config).run(map(orjson.dumps, values)))
    predictions = of_kind(published, Prediction)
    assert [each.prediction for each in predictions[:20]] == [None] * 20
    assert predictions[-1].first_prediction is not None
    assert {each.method for each in of_kind(published, Explanation)} == {"ipfi", "isage", "ipdp"}


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


@PROPERTY
@given(orders(), st.integers(1, 6), st.sampled_from(["count", "dead-letter"]))
def test_whatever_the_order_everything_is_counted_once(
    values: list[dict[str, Any]], wait: int, unlabelled: str
) -> None:
    settings = {"type": "number", "wait": wait, "unlabelled": unlabelled}
    model = stage(label=settings)
    records = run(model, messages_of(values))
    # what is left comes to its end
    ends = [message(len(values) + i, observation(1000 + i, y=0.0)) for i in range(wait + 1)]
    records += run(model, ends)
    end = of_kind(records, Prediction)[-1].labels
    letters = of_kind(records, DeadLetter)
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
    labelled = [each for each in of_kind(records, Prediction) if each.observation is not None]
    early = sum(
        each.observation is None and each.y is not None for each in of_kind(records, Prediction)
    )
    own = sum("x" in each and "y" in each for each in values) + len(ends)
    assert len(labelled) + early - own == end.joined


@PROPERTY
@given(orders(), st.integers(1, 6))
def test_shards_and_copies_join_as_the_whole_does(values: list[dict[str, Any]], wait: int) -> None:
    config = linear_config(label={"type": "number", "wait": wait, "unlabelled": "dead-letter"})
    run_alike(config, messages_of(values))
