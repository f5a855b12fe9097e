"""The first stage: what it publishes, and what it does with what it cannot use."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import linear_model, preprocessing

from fluxplain.config import Config
from fluxplain.evaluate import Encoding, Inputs, Table
from fluxplain.explain.method import Question
from fluxplain.schemas import DeadLetter, Observation, Prediction, Record
from fluxplain.schemas.methods import Method
from fluxplain.stages import ModelStage
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.method_set import Questions, evaluate
from tests.kit import support as kit
from tests.kit.stages import contents, explanations, local, modelled, only_letter

CONFIG = kit.linear_config()
RECORDS = kit.linear_records(40)

X = RECORDS[0]["x"]


def model_stage(config: Config = CONFIG) -> ModelStage:
    return ModelStage(config, kit.STREAM)


def sent(values: list[Any]) -> list[Record]:
    return modelled(CONFIG, values)


BAD: dict[str, tuple[Any, str]] = {
    "not JSON": (b"{oops", "not JSON"),
    "empty": (b"", "not JSON"),
    "not UTF-8": (b'{"x": "\xff"}', "not JSON"),
    "tombstone": (None, "tombstone"),
    "array": ([1, 2], "not a JSON object, but an array"),
    "string": ("text", "not a JSON object, but a string"),
    "null": (b"null", "not a JSON object, but null"),
    "no x": ({"y": 1.0}, "no x"),
    "x is no object": ({"x": [1.0], "y": 1.0}, "x must be an object"),
    "x is null": ({"x": None, "y": 1.0}, "x must be an object"),
    "nested value": ({"x": {**X, "a": {"b": 1}}, "y": 1.0}, "x.a must be a single value"),
    "deeply nested value": (
        b'{"x":{"a":' + b"[" * 500 + b"]" * 500 + b'},"y":1}',
        "x.a must be a single value",
    ),
    "nested value not configured": ({"x": {**X, "z": []}, "y": 1.0}, "x.z must be a single value"),
    "null value": ({"x": {**X, "a": None}, "y": 1.0}, "x.a is missing"),
    "NaN": (b'{"x": {"a": NaN, "b": 1, "c": "u"}, "y": 1}', "not JSON"),
    "Infinity": (b'{"x": {"a": Infinity, "b": 1, "c": "u"}, "y": 1}', "not JSON"),
    "too large": (b'{"x": {"a": 1e999, "b": 1, "c": "u"}, "y": 1}', "infinity"),
    "missing feature": ({"x": {"a": 1.0, "c": "u"}, "y": 1.0}, "x.b is missing"),
    "no features": ({"x": {}, "y": 1.0}, "x.a is missing"),
    "boolean for a number": ({"x": {**X, "a": True}, "y": 1.0}, "x.a must be a finite number"),
    "string for a number": ({"x": {**X, "b": "1"}, "y": 1.0}, "x.b must be a finite number"),
    "number for a category": ({"x": {**X, "c": 1.5}, "y": 1.0}, "x.c must be a category"),
    "nested label": ({"x": X, "y": [1.0]}, "y must be a single value"),
    "string for a numeric label": ({"x": X, "y": "1"}, "y must be a finite number"),
    "boolean for a numeric label": ({"x": X, "y": True}, "y must be a finite number"),
    "nested time": ({"x": X, "y": 1.0, "ts": {}}, "ts must be a single value"),
    "nested id": ({"x": X, "y": 1.0, "id": []}, "id must be a single value"),
    "late label: no y": ({"id": 1}, "no y: a label that comes later needs one"),
    "late label: no id": ({"id": None, "y": 1.0}, "no id: a label needs that of its observation"),
    "late label: string": ({"id": 1, "y": "two"}, 'y must be a finite number, not a string "two"'),
    "late label: array": ({"id": [1], "y": 1.0}, "id must be a single value, not an array [1]"),
    "late label: object": ({"id": 1, "y": {}}, "y must be a single value, not an object {}"),
    "late label: time": ({"id": 1, "y": 1.0, "ts": {}}, "ts must be a single value, not an object"),
    "late label: long id": ({"id": "i" * 1_001, "y": 1.0}, "id has 1,001 characters, but must"),
}


@pytest.mark.parametrize(("value", "reason"), BAD.values(), ids=BAD)
def test_a_bad_record_gives_one_dead_letter_with_the_reason(value: Any, reason: str) -> None:
    letter = only_letter(kit.run(model_stage(), [kit.message(7, value)]))
    assert reason in letter.reason
    assert (letter.topic, letter.partition, letter.offset) == ("fluxplain.features", 0, 7)
    assert (letter.stream, letter.seq) == (kit.STREAM, 7)
    assert letter.key == ("k" if letter.encoding == "utf-8" else "aw==")
    sent_bytes = value if value is None or isinstance(value, bytes) else orjson.dumps(value)
    assert letter.original() == sent_bytes
    assert DeadLetter.decode(letter.encode()) == letter


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"x":{"a":NaN},"y":1.0}', "JSON has no NaN or Infinity: send null"),
        (b"\x00\x00\x00\x00\x07\x02", "messages of a schema registry do: set registry.url"),
        (b"{'x': {'a': 1.0}}", "; JSON has double quotes"),
        (b'{"x":{"a_":1.0},"y":1.0}', "x.a is missing; is it 'a_', which is no feature?"),
        (b'{"x":{"b":1.0,"zip":2.0},"y":1.0}', "x.a is missing"),
        (b'{"x":{"A":1.0},"y":1.0}', "x.a is missing; is it 'A', which is no feature?"),
        (b'{"a":1.0,"b":2.0,"y":1.0}', "; the message has a, b: put the features into x"),
        (
            b'{"features":{"a":1.0},"y":1.0}',
            "no x: an observation needs an object of feature values; is it 'features'?",
        ),
        (b'{"id":8,"features":{"a":1.0,"b":2},"y":1.0}', "; is it 'features'?"),
        (b'{"id":8,"a":1.0,"b":2.0,"c":"u","y":1.0}', "has a, b, c: put the features into x"),
        (b'{"id":8,"X":{"z":1.0},"y":1.0}', "no x, but 'X': names of fields are in lower case"),
        (b'{"id":8,"x":{"a":1.0},"Y":1.0}', "no y, but 'Y': names of fields are in lower case"),
        (b'{"x":{"a":1.0},"y":null,"Y":1}', "no y, but 'Y': names of fields are in lower case"),
        (b'{"x":{"a":"1.5"},"y":1.0}', '"1.5"; send it without quotes'),
        (b'{"x":{"a":"1,5"},"y":1.0}', '"1,5"; decimals need a point'),
        (b'{"x":{"a":"NA"},"y":1.0}', '"NA"; send null for a missing value'),
        (b'{"x":{"a":"2026-03-01"},"y":1.0}', "; a time is no feature, but ts beside x"),
        (b'{"x":{"a":"red"},"y":1.0}', '"red"; "categorical" features take it'),
        (b'{"x":{"a":1,"b":2,"c":1.5},"y":1.0}', '1.5; "numeric" features take it'),
        (b'{"x":{"a":1,"b":2,"c":"u"},"y":"2"}', '"2"; send it without quotes'),
        (
            b'{"x":{"a":1,"b":2,"c":"u"},"y":"low"}',
            "\"low\"; label.type is 'number', and 'string' takes it",
        ),
    ],
)
def test_the_reason_of_a_usual_mistake_has_the_remedy(value: bytes, reason: str) -> None:
    letter = only_letter(kit.run(model_stage(), [kit.message(0, value)]))
    assert reason in letter.reason
    assert letter.reason.endswith(reason) == ("NaN" not in reason)


LABEL_KINDS = {"boolean": True, "integer": 1, "string": "1", "number": 1.5}


@pytest.mark.parametrize("kind", LABEL_KINDS)
def test_a_label_of_another_kind_is_refused(kind: str) -> None:
    """True and 1 are the same to Python, but not to people; 0 and 1 may be booleans, though."""
    loss = "squared_error" if kind == "number" else "zero_one"
    config = kit.linear_config(label={"type": kind}, explain={"loss": loss})
    for other, label in LABEL_KINDS.items():
        value = {"x": X, "y": label}
        # any number will do as a numeric label
        if other == kind or (kind, other) in {("number", "integer"), ("boolean", "integer")}:
            sample = model_stage(config).decode(kit.message(0, value))
            assert isinstance(sample, Sample)
            assert sample.y == label
            assert isinstance(sample.y, bool) == (kind == "boolean")
            continue
        letter = only_letter(kit.run(model_stage(config), [kit.message(0, value)]))
        assert letter.reason.startswith("y must be")


@pytest.mark.parametrize(
    ("kind", "label", "reason"),
    [
        ("boolean", 2, "2; label.type is 'boolean', and 'integer' takes it"),
        ("boolean", 1.0, "1.0; send it without decimals"),
        ("boolean", "true", '"true"; send it without quotes'),
        ("boolean", "yes", "\"yes\"; label.type is 'boolean', and 'string' takes it"),
        ("integer", 2.0, "2.0; send it without decimals"),
        ("integer", "2", '"2"; send it without quotes'),
        ("string", 2, "2; label.type is 'string', and 'integer' takes it"),
        ("string", 2.5, "2.5; label.type is 'string', and 'number' takes it"),
    ],
)
def test_the_reason_of_a_label_of_another_type_has_the_remedy(
    kind: str, label: Any, reason: str
) -> None:
    config = kit.linear_config(label={"type": kind}, explain={"loss": "zero_one"})
    letter = only_letter(kit.run(model_stage(config), [kit.message(0, {"x": X, "y": label})]))
    assert letter.reason.endswith(reason)


def test_a_bad_record_does_not_change_a_single_explanation_or_change() -> None:
    def published(values: list[Any]) -> list[Any]:
        return contents(r for r in local(CONFIG, values) if not isinstance(r, DeadLetter))

    bad = [value for value, _ in BAD.values()]
    dirty = [each for t, record in enumerate(RECORDS) for each in (bad[t % len(bad)], record)]
    assert published(dirty) == published(RECORDS)


@kit.PROPERTY
@given(
    st.lists(st.sampled_from([*RECORDS[:10], *(value for value, _ in BAD.values())]), max_size=40)
)
def test_predictions_and_dead_letters_are_as_many_as_the_inputs_and_chained(
    values: list[Any],
) -> None:
    published = sent(values)
    predictions, letters = kit.of_kind(published, Prediction), kit.of_kind(published, DeadLetter)
    assert sorted([p.seq for p in predictions] + [d.seq for d in letters]) == [*range(len(values))]
    before: list[int | None] = [None, *(p.seq for p in predictions)]
    assert [p.previous_seq for p in predictions] == before[: len(predictions)]
    for runs in kit.by_feature(published).values():
        evaluated: list[int | None] = [None, *(r.seqs[0] for r in runs)]
        assert [r.previous_seq for r in runs] == evaluated[: len(runs)]


def test_an_unlabelled_observation_gets_a_prediction_and_ipdp_only() -> None:
    values: list[Any] = [*RECORDS]
    values[20:23] = [{"x": X}, {"x": X}, {"x": X, "y": None}]
    published = sent(values)
    predictions = kit.of_kind(published, Prediction)
    assert [p.loss is None and p.y is None for p in predictions] == [
        t in (20, 21, 22) for t in range(40)
    ]
    for runs in kit.by_feature(published).values():
        for each in runs:
            [seq] = each.seqs
            ipfi, isage, ipdp = (each.outputs[method][0] for method in ("ipfi", "isage", "ipdp"))
            unlabelled = seq in (20, 21, 22)
            assert (ipfi is None) == (isage is None) == unlabelled
            assert ipdp


def test_the_model_does_not_learn_from_an_unlabelled_observation() -> None:
    asked = RECORDS[0]
    _, first = kit.of_kind(sent([asked, asked]), Prediction)
    _, second = kit.of_kind(sent([{"x": X}, asked]), Prediction)
    assert first.prediction != second.prediction == kit.Additive().predict_one(X)


def test_a_prediction_is_the_output_before_the_model_learned() -> None:
    model = kit.Additive()
    for record, p in zip(RECORDS, kit.of_kind(sent(RECORDS), Prediction), strict=True):
        expected = model.predict_one(record["x"])
        assert p.prediction == expected
        assert p.loss == pytest.approx((expected - record["y"]) ** 2)
        assert (p.y, p.ts, p.classes, p.probabilities) == (record["y"], record["ts"], None, None)
        model.learn_one(record["x"], record["y"])


def test_a_classification_has_classes_probabilities_and_the_most_probable() -> None:
    predictions = kit.of_kind(
        kit.run(model_stage(kit.make_config()), kit.observations(kit.agrawal(60))), Prediction
    )
    assert (predictions[0].prediction, predictions[0].classes) == (None, [])
    last = predictions[-1]
    assert last.classes is not None
    assert last.probabilities is not None
    known = dict(zip(last.classes, last.probabilities, strict=True))
    assert set(known) == {0, 1}
    assert last.prediction == max(known, key=known.__getitem__)
    assert sum(known.values()) == pytest.approx(1.0)


def test_what_is_not_configured_never_reaches_the_model() -> None:
    extra = [{**r, "x": {"z": 1, **r["x"]}, "note": "x"} for r in RECORDS]
    shuffled = [{**r, "x": dict(reversed(r["x"].items()))} for r in RECORDS]
    assert sent(extra) == sent(shuffled) == sent(RECORDS)


def test_whole_numbers_are_numbers() -> None:
    [whole] = kit.of_kind(sent([{"x": {**X, "a": 3}, "y": 2}]), Prediction)
    [real] = kit.of_kind(sent([{"x": {**X, "a": 3.0}, "y": 2.0}]), Prediction)
    assert whole == real
    assert Observation.decode(b'{"x": {"a": 3}}').x["a"] == 3


@pytest.mark.parametrize("methods", [["ipfi"], ["isage"], ["ipdp"]])
@pytest.mark.parametrize("features", [{"a": "numeric"}, {"c": "categorical"}])
def test_a_single_feature_and_a_single_method_are_explained(
    methods: list[Method], features: dict[str, str]
) -> None:
    """With one feature iSAGE needs no perturbed input: its two outputs are known."""
    explain = {"methods": methods, "emit_every": 1}
    explained = explanations(
        kit.linear_config(model=Tolerant, features=features, explain=explain), RECORDS
    )
    assert [e.seq for e in explained] == list(range(5, 40))
    assert any(e.value != 0.0 for e in explained)


class Tolerant:
    """A rule that needs no particular feature."""

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return float(2.0 * x.get("a", 0.0) + len(x.get("c", "")) + (x.get("c") == "u"))

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        pass


def test_isage_counts_an_observation_whose_other_features_cannot_change_an_input() -> None:
    """With b and c equal everywhere, only a takes part, and nothing needs to be asked."""
    config = kit.linear_config(explain={"methods": ["isage"], "emit_every": 1})
    values = [{**r, "x": {"a": r["x"]["a"], "b": 1.0, "c": "u"}} for r in RECORDS]
    explained = explanations(config, values)
    for feature in ("a", "b", "c"):
        assert [e.seq for e in explained if e.feature == feature] == list(range(5, 40))


def test_answers_are_kept_from_a_model_that_returns_the_same_array_again() -> None:
    buffer = np.zeros((10, 1))

    def evaluator(inputs: Inputs) -> Table:
        buffer[: len(inputs.rows), 0] = inputs.rows.sum(axis=1)
        return Table((None,), buffer[: len(inputs.rows)])

    encoding, tables = Encoding(), []
    for value in (1.0, 2.0):
        observed = encoding.observe({"a": value})
        questions = Questions(observed, {"ipfi": Question.of(np.full((3, 1), 10.0 * value))})
        outputs = evaluate(evaluator, questions)
        tables += [outputs.prediction, outputs.tables["ipfi"]]
    assert [table.numbers.tolist() for table in tables] == [
        [[1.0]],
        [[10.0]] * 3,
        [[2.0]],
        [[20.0]] * 3,
    ]


def names_its_values() -> Any:
    return preprocessing.OneHotEncoder() | linear_model.LinearRegression()


def test_predictions_tell_true_from_1_as_the_model_does() -> None:
    config = kit.make_config(
        features={"k": "categorical"},
        label={"type": "number"},
        model={"factory": f"{__name__}:names_its_values", "params": {}},
        explain={"loss": "squared_error"},
    )
    model, expected = names_its_values(), []
    values = [{"x": {"k": k}, "y": y} for k, y in [(1, 5.0), (True, -5.0), (0, 2.0), (False, 0.0)]]
    for value in values * 5:
        expected.append(model.predict_one(value["x"]))
        model.learn_one(value["x"], value["y"])
    records = kit.of_kind(modelled(config, values * 5), Prediction)
    assert [each.prediction for each in records] == pytest.approx(expected, abs=1e-12)
