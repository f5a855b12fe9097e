"""The first stage: what it publishes, and what it does with what it cannot use."""

import copy
import random
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.drift import ADWIN

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from fluxplain.local import LocalPipeline
from fluxplain.schemas import (
    Change,
    DeadLetter,
    Evaluation,
    Explanation,
    Observation,
    Prediction,
    Record,
)
from fluxplain.schemas.methods import Method
from fluxplain.stages import ModelStage
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.model_stage import WHOLE
from tests.kit.support import (
    PROPERTY,
    STREAM,
    Additive,
    agrawal,
    by_feature,
    linear_config,
    linear_records,
    make_config,
    message,
    messages_of,
    observations,
    of_kind,
    run,
)

CONFIG = linear_config()
RECORDS = linear_records(40)

X = RECORDS[0]["x"]


def model_stage(config: Config = CONFIG) -> ModelStage:
    return ModelStage(config, STREAM)


def sent(values: list[Any]) -> list[Record]:
    """Return what a fresh stage publishes for these messages."""
    return run(model_stage(), messages_of(values))


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
}


@pytest.mark.parametrize(("value", "reason"), BAD.values(), ids=BAD)
def test_a_bad_record_gives_one_dead_letter_that_says_why(value: Any, reason: str) -> None:
    [letter] = run(model_stage(), [message(7, value)])
    assert isinstance(letter, DeadLetter)
    assert reason in letter.reason
    assert (letter.topic, letter.partition, letter.offset) == ("fluxplain.features", 0, 7)
    assert (letter.stream, letter.seq) == (STREAM, 7)
    assert letter.key == ("k" if letter.encoding == "utf-8" else "aw==")
    sent_bytes = value if value is None or isinstance(value, bytes) else orjson.dumps(value)
    assert letter.original() == sent_bytes
    assert DeadLetter.decode(letter.encode()) == letter


LABEL_KINDS = {"boolean": True, "integer": 1, "string": "1", "number": 1.5}


@pytest.mark.parametrize("kind", LABEL_KINDS)
def test_a_label_of_another_kind_is_refused(kind: str) -> None:
    """True and 1 are the same to Python, but not to people."""
    loss = "squared_error" if kind == "number" else "zero_one"
    config = linear_config(label={"type": kind}, explain={"loss": loss})
    for other, label in LABEL_KINDS.items():
        value = {"x": X, "y": label}
        # any number will do as a numeric label
        if other == kind or (kind, other) == ("number", "integer"):
            sample = model_stage(config).decode(message(0, value))
            assert isinstance(sample, Sample)
            assert sample.y == label
            continue
        [letter] = run(model_stage(config), [message(0, value)])
        assert isinstance(letter, DeadLetter)
        assert letter.reason.startswith("y must be")


def without_seq(records: list[Record]) -> list[Any]:
    """Return the records without what says where in the log they come from."""
    plain = []
    for record in records:
        fields = orjson.loads(record.encode())
        for name in ("seq", "previous_seq", "seqs", "ts"):
            fields.pop(name, None)
        plain.append(fields)
    return plain


def test_a_bad_record_does_not_change_a_single_explanation_or_change() -> None:
    def published(values: list[Any]) -> list[Any]:
        data = [message(0, v).value for v in values]
        records = list(LocalPipeline(CONFIG).run(data))
        return without_seq([r for r in records if not isinstance(r, DeadLetter)])

    dirty: list[Any] = []
    bad = [value for value, _ in BAD.values()]
    for t, record in enumerate(RECORDS):
        dirty += [bad[t % len(bad)], record]
    assert published(dirty) == published(list(RECORDS))


@PROPERTY
@given(
    st.lists(st.sampled_from([*RECORDS[:10], *(value for value, _ in BAD.values())]), max_size=40)
)
def test_predictions_and_dead_letters_are_as_many_as_the_inputs_and_chained(
    values: list[Any],
) -> None:
    published = sent(values)
    predictions, letters = of_kind(published, Prediction), of_kind(published, DeadLetter)
    assert sorted([p.seq for p in predictions] + [d.seq for d in letters]) == [*range(len(values))]
    before: list[int | None] = [None, *(p.seq for p in predictions)]
    assert [p.previous_seq for p in predictions] == before[: len(predictions)]
    for runs in by_feature(published).values():
        evaluated: list[int | None] = [None, *(r.seqs[0] for r in runs)]
        assert [r.previous_seq for r in runs] == evaluated[: len(runs)]


class Moody:
    """Fails on some observations: while it is asked, or while it learns."""

    def predict_one(self, x: Mapping[str, Any]) -> float | None:
        if x["a"] > 100.0:
            raise RuntimeError("too large for me")
        return float("nan") if x["a"] < -100.0 else 2.0 * float(x["a"])

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        if y > 1e6:
            raise ArithmeticError("cannot learn this")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"x": {**X, "a": 200.0}, "y": 1.0}, "RuntimeError: too large for me"),
        ({"x": {**X, "a": -200.0}, "y": 1.0}, "not finite: nan"),
        ({"x": X, "y": 1e7}, "ArithmeticError: cannot learn this"),
    ],
)
def test_a_model_that_fails_gives_a_dead_letter_and_the_stream_goes_on(
    bad: dict[str, Any], reason: str
) -> None:
    config = linear_config(model={"factory": "tests.stages.test_model_stage:Moody"})
    values: list[Any] = [*RECORDS[:20], bad, *RECORDS[20:]]
    messages = messages_of(values)
    published = run(model_stage(config), messages)
    [letter] = of_kind(published, DeadLetter)
    assert letter.seq == 20
    assert "the model failed" in letter.reason
    assert reason in letter.reason
    seqs = [p.seq for p in of_kind(published, Prediction)]
    assert seqs == [t for t in range(41) if t != 20]
    # what the model failed on is in no reservoir, so it fails on nothing else
    assert all(r.prediction != [400.0] for r in of_kind(published, Evaluation))
    # the next evaluations name none of those that were not published
    assert of_kind(LocalPipeline(config).run([m.value for m in messages]), Change) == []


class Answers:
    """Answers with the probabilities that it is given."""

    def __init__(self, classes: list[Any]) -> None:
        self.classes = classes

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        return {each: 1.0 / len(self.classes) for each in self.classes}

    def learn_one(self, x: Mapping[str, Any], y: object) -> None:
        pass


@pytest.mark.parametrize(
    ("classes", "kind", "other"),
    [
        ([False, True], "boolean", None),
        ([0, 1], "boolean", None),
        ([1, 2, 3], "integer", None),
        (["no", "yes"], "string", None),
        (["no", "yes"], "boolean", "'no'"),
        ([0, 2], "boolean", "2"),
        ([0, "1"], "integer", "'1'"),
        (["no", 1], "string", "1"),
    ],
)
def test_a_class_that_no_label_can_be_is_told(
    classes: list[Any], kind: str, other: str | None
) -> None:
    config = linear_config(
        model={"factory": "tests.stages.test_model_stage:Answers", "params": {"classes": classes}},
        label={"type": kind},
        explain={"loss": "cross_entropy"},
    )
    y = {"boolean": True, "integer": 1, "string": "yes"}[kind]
    published = run(model_stage(config), [message(0, {"x": X, "y": y}), message(1, {"x": X})])
    letters = of_kind(published, DeadLetter)
    if other is None:
        assert not letters
        return
    assert not of_kind(published, Prediction)
    told = f"the model failed: ValueError: an output has the class {other}, but label.type is "
    assert [each.reason for each in letters] == [f"{told}{kind!r}"] * 2


class Destroyer(Additive):
    """Takes apart what it learns from."""

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        super().learn_one(x, y)
        assert isinstance(x, dict)
        x.clear()


def test_a_model_that_changes_what_it_learns_from_does_no_harm() -> None:
    config = linear_config(model={"factory": "tests.stages.test_model_stage:Destroyer"})
    messages = messages_of(RECORDS)
    assert run(model_stage(config), messages) == run(model_stage(), messages)


def test_an_unlabelled_observation_gets_a_prediction_and_ipdp_only() -> None:
    values: list[Any] = [dict(record) for record in RECORDS]
    for t in (20, 21):
        del values[t]["y"]
    values[22] = {**values[22], "y": None}
    published = sent(values)
    predictions = of_kind(published, Prediction)
    assert [p.loss is None and p.y is None for p in predictions] == [
        t in (20, 21, 22) for t in range(40)
    ]
    for runs in by_feature(published).values():
        for each in runs:
            [seq] = each.seqs
            ipfi, isage, ipdp = (each.outputs[method][0] for method in ("ipfi", "isage", "ipdp"))
            unlabelled = seq in (20, 21, 22)
            assert (ipfi is None) == (isage is None) == unlabelled
            assert ipdp
    explained = of_kind(
        LocalPipeline(CONFIG).run([message(0, v).value for v in values]), Explanation
    )
    for seq in (20, 21, 22):
        methods = {e.method for e in explained if seq in e.seqs}
        assert methods == {"ipdp"}


def test_the_model_does_not_learn_from_an_unlabelled_observation() -> None:
    labelled, unlabelled = model_stage(), model_stage()
    run(labelled, [message(0, RECORDS[0])])
    run(unlabelled, [message(0, {"x": RECORDS[0]["x"]})])
    asked = [message(1, RECORDS[0])]
    [first] = of_kind(run(labelled, asked), Prediction)
    [second] = of_kind(run(unlabelled, asked), Prediction)
    assert first.prediction != second.prediction == Additive().predict_one(RECORDS[0]["x"])


def test_a_prediction_tells_what_the_model_said_before_it_learned() -> None:
    model = Additive()
    for record, p in zip(RECORDS, of_kind(sent(list(RECORDS)), Prediction), strict=True):
        expected = model.predict_one(record["x"])
        assert p.prediction == expected
        assert p.loss == pytest.approx((expected - record["y"]) ** 2)
        assert (p.y, p.ts, p.classes, p.probabilities) == (record["y"], record["ts"], None, None)
        model.learn_one(record["x"], record["y"])


class Indifferent:
    """Says 0 of everything, so that the loss is the label squared."""

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return 0.0

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        pass


def loss_changes(
    labels: list[float | None], replica: Replica = WHOLE, **drift: Any
) -> list[Change]:
    """Return what the model stage says of these labels' squares."""
    config = linear_config(
        model={"factory": "tests.stages.test_model_stage:Indifferent"}, drift={"loss": drift}
    )
    values = [{"x": X, "y": y, "ts": t} for t, y in enumerate(labels)]
    stage = ModelStage(config, STREAM, replica)
    return of_kind(run(stage, messages_of(values)), Change)


def labels(n: int = 400) -> list[float | None]:
    rng = random.Random(1)
    return [rng.gauss(1.0 if t < n // 2 else 3.0, 0.1) for t in range(n)]


def test_a_jump_of_the_loss_is_a_change_without_a_feature() -> None:
    [change] = loss_changes(labels())
    assert (change.kind, change.method, change.feature) == ("drift", "loss", None)
    assert (change.stream, change.signal, change.previous_seq) == (STREAM, "increment", None)
    assert 200 < change.seq <= 264  # ADWIN looks every 32 values
    assert change.ts == change.seq
    assert change.before == pytest.approx(1.0, abs=0.1)
    assert (change.value, change.std_error) == (None, None)
    assert change.detail.startswith("the loss rose from ")


def test_changes_of_the_loss_are_those_of_a_plain_adwin() -> None:
    adwin, expected = ADWIN(delta=0.01, grace_period=5), []
    for t, y in enumerate(labels()):
        assert y is not None
        adwin.update(y * y)
        if adwin.drift_detected:
            expected.append(t)
    found = loss_changes(labels(), delta=0.01, grace_period=5)
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


def test_a_classification_tells_classes_probabilities_and_the_most_probable() -> None:
    predictions = of_kind(run(model_stage(make_config()), observations(agrawal(60))), Prediction)
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
    assert sent(extra) == sent(shuffled) == sent(list(RECORDS))


def test_whole_numbers_are_numbers() -> None:
    [whole] = of_kind(sent([{"x": {**X, "a": 3}, "y": 2}]), Prediction)
    [real] = of_kind(sent([{"x": {**X, "a": 3.0}, "y": 2.0}]), Prediction)
    assert whole == real
    assert Observation.decode(b'{"x": {"a": 3}}').x["a"] == 3


@pytest.mark.parametrize("methods", [["ipfi"], ["isage"], ["ipdp"]])
@pytest.mark.parametrize("features", [{"a": "numeric"}, {"c": "categorical"}])
def test_a_single_feature_and_a_single_method_are_explained(
    methods: list[Method], features: dict[str, str]
) -> None:
    """With one feature iSAGE needs no perturbed input: its two outputs are known."""
    config = linear_config(
        features=features,
        explain={"methods": methods, "emit_every": 1},
        model={"factory": "tests.stages.test_model_stage:Tolerant"},
    )
    explained = of_kind(
        LocalPipeline(config).run([message(0, r).value for r in RECORDS]), Explanation
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
    config = linear_config(explain={"methods": ["isage"], "emit_every": 1})
    values = [{**r, "x": {"a": r["x"]["a"], "b": 1.0, "c": "u"}} for r in RECORDS]
    explained = of_kind(
        LocalPipeline(config).run([message(0, v).value for v in values]), Explanation
    )
    for feature in ("a", "b", "c"):
        assert [e.seq for e in explained if e.feature == feature] == list(range(5, 40))


CLASSIFIERS: dict[str, tuple[str, dict[str, Any]]] = {
    "forest": ("river.forest:ARFClassifier", {"n_models": 3}),
    "tree": ("river.tree:HoeffdingTreeClassifier", {"grace_period": 20}),
}


GROUPS = {
    "classifier": {"house": ["zipcode", "hvalue", "hyears"], "income": ["salary", "commission"]},
    "regression": {"group": ["c", "a"]},
}

AS_ONE: dict[str, list[Any]] = {
    "classifier": [
        {"income": ["salary", "commission"]},
        "age",
        {"house": ["zipcode", "hvalue", "hyears"]},
        "loan",
        "elevel",
        "car",
    ],
    "regression": [{"group": ["c", "a"]}, "b"],
}
"""How the library is told of them, in the order of their first features."""


@pytest.mark.parametrize("name", [*CLASSIFIERS, "regression"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("loss", "imputer", "ipdp"),
    [
        ("brier", "interventional", {"warm_up": 7}),
        ("brier", "product", {"grid": "range", "window": 40, "storage_size": 20}),
        ("brier", "observational", {"grid": "quantiles"}),
        ("zero_one", "interventional", {"storage": "age-weighted", "entrance_probability": 0.7}),
    ],
)
def test_the_pipeline_gives_the_numbers_of_the_library(
    name: str, loss: str, imputer: str, ipdp: dict[str, Any], grouped: bool
) -> None:
    """The same seeds, the same stream: the same estimates, bit for bit."""
    kind = "regression" if name == "regression" else "classifier"
    methods: dict[str, Any] = {
        **{m: {"imputer": imputer, "reservoir_size": 20} for m in ("ipfi", "isage")},
        "ipdp": {"storage_size": 10, "grid_size": 4, **ipdp},
        "groups": GROUPS[kind] if grouped else {},
    }
    if name == "regression":
        loss = "squared_error" if loss == "brier" else "absolute_error"
        config = linear_config(explain={"loss": loss, "emit_every": 1, **methods})
        records: list[tuple[dict[str, Any], Any]] = [(r["x"], r["y"]) for r in RECORDS]
    else:
        factory, params = CLASSIFIERS[name]
        config = make_config(
            model={"factory": factory, "params": params},
            explain={"loss": loss, "emit_every": 1, **methods},
        )
        records = [
            (
                {n: float(x[n]) if k == "numeric" else x[n] for n, k in config.features.items()},
                y,
            )
            for x, y in agrawal(150)
        ]
    published = of_kind(
        LocalPipeline(config).run([message(0, {"x": x, "y": y}).value for x, y in records]),
        Explanation,
    )
    values: dict[tuple[str, str, int], tuple[float, float]] = {
        (e.method, e.feature, e.seq): (e.value, e.std_error) for e in published
    }
    model, features = config.make_model(), list(config.features)
    players = AS_ONE[kind] if grouped else features
    e = config.explain
    categorical = [n for n, type_ in config.features.items() if type_ == "categorical"]
    seeds: dict[str, Any] = {m: f"{config.seed}/{STREAM}/{m}" for m in ("ipfi", "isage", "ipdp")}
    pfi = IncrementalPFI(
        model,
        players,
        loss=loss,
        alpha=e.alpha,
        imputer=imputer,
        categorical=categorical,
        reservoir_size=e.of("ipfi").reservoir_size,
        inner_samples=e.of("ipfi").inner_samples,
        seed=seeds["ipfi"],
    )
    sage = IncrementalSAGE(
        model,
        players,
        loss=loss,
        alpha=e.alpha,
        imputer=imputer,
        categorical=categorical,
        reservoir_size=e.of("isage").reservoir_size,
        inner_samples=e.of("isage").inner_samples,
        seed=seeds["isage"],
    )
    pdp = IncrementalPDP(
        model,
        features,
        alpha=e.alpha,
        categorical=categorical,
        seed=seeds["ipdp"],
        **methods["ipdp"],
    )
    compared = 0
    for seq, (x, y) in enumerate(records):
        pfi.explain_one(x, y)
        sage.explain_one(x, y)
        pdp.explain_one(x)
        for method, explainer in (("ipfi", pfi), ("isage", sage), ("ipdp", pdp)):
            for feature in explainer.increments:
                expected = (explainer.values[feature], explainer.std_errors[feature])
                assert values[method, feature, seq] == expected
                compared += 1
        model.learn_one(copy.deepcopy(x), y)
    assert compared == len(values) > 0
