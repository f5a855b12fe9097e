"""Messages made to grow: no state, no published record and no validation outgrows its bounds."""

import pickle
import resource
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from fluxplain.kafka.producer import MAX_MESSAGE_BYTES
from fluxplain.local import LocalPipeline
from fluxplain.schemas import DeadLetter, Evaluation, Explanation, Prediction, Record
from fluxplain.schemas.dead_letter import MAX_KEY_BYTES
from fluxplain.schemas.numbers import MAX_NUMBER
from fluxplain.stages import Message, Stage, process
from fluxplain.stages.limits import MAX_PARTITIONS, MAX_RUN
from tests.fuzz.pools import MAKERS, STREAM, Pool, assert_publishable, assert_refused, pool
from tests.kit.support import (
    linear_config,
    linear_records,
    make_config,
    message,
    messages_of,
    of_kind,
    published,
    run,
)

every_topic = pytest.mark.parametrize("topic", MAKERS)

LONG = 400_000


def newest(topic: str, kind: str = "regression", **fields: Any) -> dict[str, Any]:
    """Return the next good message of a topic, in which some fields are others."""
    return {**orjson.loads(pool(topic, kind).rest[0].value or b""), **fields}


def sent(
    topic: str, fields: object, *, kind: str = "regression", key: bytes = b"k"
) -> list[Record]:
    """Return what a stage publishes for a message, behind good ones."""
    value = fields if isinstance(fields, bytes) else orjson.dumps(fields)
    return published(pool(topic, kind).stage(), Message(topic, 0, 999, key, value))


def size(stage: Stage) -> int:
    return len(pickle.dumps(stage))


@every_topic
@pytest.mark.parametrize("unit", [b"a", b'"', b"\x00", b"\xff", "é".encode()])
def test_a_key_and_a_value_of_any_length_fit_into_a_dead_letter(topic: str, unit: bytes) -> None:
    for n in (MAX_KEY_BYTES - 1, MAX_KEY_BYTES, 300_000, 990_000):
        key = unit * (n // len(unit))
        records = sent(topic, unit * ((995_000 - len(key)) // len(unit)), key=key)
        assert [type(record) for record in records] == [DeadLetter]
        assert_publishable(records, key)


@every_topic
def test_a_key_that_is_too_long_is_refused_though_the_value_is_good(topic: str) -> None:
    good = newest(topic)
    assert_publishable(sent(topic, good, key=b"k" * MAX_KEY_BYTES), b"k" * MAX_KEY_BYTES)
    [letter] = sent(topic, good, key=b"k" * (MAX_KEY_BYTES + 1))
    assert isinstance(letter, DeadLetter)
    assert letter.reason == "the key has 65,537 bytes, but must have at most 65,536"
    # it goes out under a key that fits
    assert letter.message_key() == "k" * MAX_KEY_BYTES


Refused = tuple[str, dict[str, Any], str]
"""Topic, fields beyond their bounds, and what the reason says."""


def in_both(reason: str, **fields: Any) -> list[Refused]:
    return [(topic, fields, reason) for topic in ("evaluations", "explanations")]


STREAMS = [
    *("f" * LONG + "-0", "other.features-0", "features-0", f"fluxplain.features-{MAX_PARTITIONS}"),
    *("fluxplain.features-00", "fluxplain.features-٣"),
]

REFUSED: list[Refused] = [
    *(each for stream in STREAMS for each in in_both("stream", stream=stream)),
    # in the notice of a gap the feature's name would come twice
    *in_both("", feature="f" * LONG, previous_seq=90, seqs=[99], seq=99),
    ("evaluations", {"ts": ["t" * LONG]}, "ts has 400,000 characters"),
    ("explanations", {"ts": "t" * LONG}, "ts has 400,000 characters"),
    ("evaluations", {"seqs": [-5]}, "seqs must"),
    ("evaluations", {"previous_seq": -7}, "seqs must"),
    ("evaluations", {"previous_seq": 10**6}, "seqs must"),
    *(
        ("explanations", {"seqs": seqs, "seq": seqs[-1], **numbers}, "seqs must")
        for seqs in ([1, 1], [3, 2], [-5])
        for numbers in [{"increments": [0.0] * len(seqs), "trends": None, "values": None}]
    ),
    ("explanations", {"seq": 1, "previous_seq": None}, "seqs must"),
    *(
        ("explanations", wrong, "must lie between")
        for number in (2 * MAX_NUMBER, -1.7e308)
        for wrong in (
            {"value": number},
            {"increments": [number] * 3, "trends": None},
            {"trends": [number] * 3},
        )
    ),
    *(
        ("features", wrong, "must lie between -1e+150 and 1e+150")
        for number in (1.01 * MAX_NUMBER, -1.7e308)
        for wrong in ({"y": number}, {"x": {"a": number, "b": 1.0, "c": "u"}})
    ),
]


@pytest.mark.parametrize(("topic", "fields", "reason"), REFUSED)
def test_fields_beyond_their_bounds_are_refused(
    topic: str, fields: dict[str, Any], reason: str
) -> None:
    assert_refused(sent(topic, newest(topic, **fields)), reason)


@pytest.mark.parametrize("topic", ["evaluations", "explanations"])
def test_many_streams_and_features_leave_no_state(topic: str) -> None:
    stage = pool(topic, "regression").stage()
    before = size(stage)
    for i in range(3_000):
        names = {"stream": f"s{i}-0"} if i % 2 else {"feature": f"f{i}"}
        [letter] = process(stage, message(i, newest(topic) | names))
        assert isinstance(letter, DeadLetter)
    assert size(stage) == before


@pytest.mark.parametrize(
    ("topic", "fields"),
    [
        ("evaluations", {"seqs": ["a"] * 200_000}),
        ("evaluations", {"prediction": [["a"] * 200_000]}),
        ("evaluations", {"outputs": {"ipfi": [[["a"]] * 150_000]}}),
        ("explanations", {"grid": [None] * 190_000}),
        ("explanations", {"effect": [["a"]] * 150_000}),
    ],
)
def test_many_wrong_items_take_no_more_memory_than_one(topic: str, fields: dict[str, Any]) -> None:
    long = orjson.dumps(newest(topic, **fields))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert_refused(sent(topic, long), "Input should be a valid")
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < 200  # with an error for each item it is 800


def test_a_run_that_is_too_long_is_refused() -> None:
    """Each of its observations may become a dead letter of 256 KiB."""
    good = newest("evaluations")
    first = good["seqs"][0]
    columns: dict[str, Any] = {
        name: column * (MAX_RUN + 1)
        for name, column in good.items()
        if isinstance(column, list) and name != "seqs"
    }
    for name in ("outputs", "points"):
        columns[name] = {method: each * (MAX_RUN + 1) for method, each in good[name].items()}
    long = {**good, **columns, "seqs": [*range(first, first + MAX_RUN + 1)]}
    assert_refused(sent("evaluations", long), "seqs has 257 items, but at most 256 may be")


def curve(points: Sequence[Any], outputs: Sequence[Any], **fields: Any) -> dict[str, Any]:
    """Return an evaluation of a category with this curve."""
    name = next(
        m.value
        for m in pool("evaluations", "classes").rest
        if orjson.loads(m.value or b"")["feature"] == "car"
    )
    good = orjson.loads(Evaluation.decode(name).encode())  # in lists
    seq = good["seqs"][0] + 1
    told = {"outputs": {"ipdp": [outputs]}, "points": {"ipdp": [points]}}
    return {**good, "seqs": [seq], **told, **fields}


def test_a_curve_of_many_points_and_classes_is_refused_before_it_is_made() -> None:
    """A million bytes can name 100,000 points and 50,000 classes: 5 billion numbers."""
    n = 40_000
    outputs = [[0] * n, *([[]] * (n - 1))]
    many = curve([*range(n)], outputs, classes=[*range(n)])
    [letter] = of_kind(sent("evaluations", many, kind="classes"), DeadLetter)
    assert "its outputs are not all alike" in letter.reason


def test_classes_that_come_a_few_at_a_time_do_not_grow_without_bound() -> None:
    stage = pool("evaluations", "classes").stage()
    sizes = []
    for i in range(8):
        classes = [*range(1_500 * i, 1_500 * (i + 1))]
        grown = curve([1, 2], [[0.5] * 1_500] * 2, classes=classes)
        seq = grown["seqs"][0] + i
        records = process(stage, message(i, {**grown, "seqs": [seq], "previous_seq": seq - 1}))
        assert_publishable(records)
        sizes.append(size(stage))
    assert sizes[0] < sizes[2] == sizes[-1] < 6_500_000


@pytest.mark.parametrize(
    ("kind", "points", "reason"),
    [
        ("regression", ["nan", "1", "2"], 'a string "nan"'),
        ("regression", [True, 1.0, 2.0], "a boolean true"),
        ("regression", [1.7e308, 0.0, -1.7e308], "a number 1.7e+308"),
        ("classes", [1.5, 2], "a number 1.5"),
    ],
)
def test_points_that_are_none_of_the_feature_are_one_dead_letter(
    kind: str, points: list[Any], reason: str
) -> None:
    if kind == "classes":
        fields = curve(points, [[0.5, 0.5]] * len(points))
    else:
        fields = newest("evaluations", points={"ipdp": [points]})
    [letter] = of_kind(sent("evaluations", fields, kind=kind), DeadLetter)
    assert f"a point is not of the feature's type: {reason}" in letter.reason


def test_labels_of_any_length_fill_no_message() -> None:
    """Each is known from then on: in every prediction and every evaluation."""
    config = make_config(
        features={"a": "numeric"},
        label={"type": "string", "max_classes": 10_000},
        model={"factory": "river.dummy:PriorClassifier", "params": {}},
        explain={"loss": "brier", "methods": ["ipfi"], "ipfi": {"warm_up": 1, "inner_samples": 20}},
    )
    pipeline = LocalPipeline(config)
    published: list[Record] = []
    for seq in range(165):
        label = f"{seq:04}" + "\x01" * 996
        published += pipeline.step(seq, orjson.dumps({"x": {"a": 1.0}, "y": label}))
    for record in published:
        assert len(record.encode()) < MAX_MESSAGE_BYTES - MAX_KEY_BYTES
    predicted = {record.seq for record in of_kind(published, Prediction)}
    letters = of_kind(published, DeadLetter)
    assert len(predicted) > 100
    # what fits into a prediction, but with the answers about a feature into no evaluation
    assert {letter.seq in predicted for letter in letters if letter.key == "a"} == {True}
    unpredicted = {letter.seq for letter in letters if letter.key is None}
    assert unpredicted == set(range(165)) - predicted
    assert unpredicted


def test_an_observation_at_the_edge_of_the_numbers_spoils_nothing() -> None:
    config = linear_config(explain={"emit_every": 1})
    stages = LocalPipeline(config)
    records = linear_records(40)
    for t in (20, 25):
        records[t]["x"] = {**records[t]["x"], "a": MAX_NUMBER / 4, "b": -MAX_NUMBER / 4}
    records[22]["x"] = {**records[22]["x"], "a": -MAX_NUMBER / 4}
    published = list(stages.run([orjson.dumps(each) for each in records]))
    assert_publishable(published)
    assert max(r.seq for r in of_kind(published, Explanation)) == 39


class Explosive:
    """Says ever larger numbers."""

    def __init__(self) -> None:
        self.output = 1.0

    def predict_one(self, x: dict[str, Any]) -> float:
        return self.output

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        self.output *= -1e40


def test_outputs_that_are_too_large_to_be_averaged_are_dead_letters() -> None:
    config = linear_config(
        model={"factory": "tests.fuzz.test_bounds:Explosive"}, explain={"loss": "absolute_error"}
    )
    messages = messages_of(linear_records(20))
    published = run(MAKERS["features"](config), messages)
    assert_publishable(published)
    letters = of_kind(published, DeadLetter)
    assert len(letters) == 16
    assert "the model's output is too large" in letters[0].reason


def endless(label: float, output: object) -> float:
    return float("inf") if label > 2.0 else 1.0


def test_a_loss_that_is_not_finite_is_a_dead_letter() -> None:
    config = linear_config(explain={"loss": "tests.fuzz.test_bounds:endless"})
    for label, kind in ((1.0, Prediction), (3.0, DeadLetter)):
        value = {**newest("features"), "y": label}
        [record] = run(MAKERS["features"](config), [message(0, value)])
        assert isinstance(record, kind)
        if isinstance(record, DeadLetter):
            assert "the loss is not finite: inf" in record.reason


def test_what_the_pools_hold_is_what_these_tests_are_about() -> None:
    each: Pool = pool("evaluations", "classes")
    runs = [Evaluation.decode(m.value) for m in each.rest]
    assert {run_.stream for run_ in runs} == {STREAM}
    lists = [Evaluation.decode(run_.encode()) for run_ in runs]
    assert all(blocks[0] for run_ in lists for blocks in run_.outputs.values())
