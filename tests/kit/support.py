"""What several test modules share: models with known answers, streams, and short configurations."""

import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import orjson
from hypothesis import settings
from hypothesis import strategies as st
from river.datasets import synth

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.evaluate import Encoding, Evaluator, Inputs, Label, Output, Value
from fluxplain.schemas import Evaluation, Record
from fluxplain.stages import Message, ModelStage, Stage, process
from fluxplain.stages.evaluated import Evaluated, evaluations
from tests.kit.settings import FEATURES, QUICK_DRIFT, default_methods

T = TypeVar("T")
R = TypeVar("R", bound=Record)
Row = dict[str, Value]

PROPERTY = settings(derandomize=True, deadline=None, database=None, max_examples=40)
"""Seeded, so that a run can be repeated; without a deadline, since slow machines are no failure."""

SLOW_PROPERTY = settings(PROPERTY, max_examples=10)

NUMBERS = st.floats(-1e6, 1e6)

STREAM = "fluxplain.features-0"

AGRAWAL_FEATURES = FEATURES
AGRAWAL_NUMERIC = tuple(name for name, kind in AGRAWAL_FEATURES.items() if kind == "numeric")


def outputs_of(
    evaluator: Evaluator, x: Mapping[str, Value], replacements: Sequence[Mapping[str, Value]]
) -> list[Output]:
    """Return what a model says of changed inputs."""
    return evaluator(Inputs.replacing(Encoding().observe(x), replacements)).outputs()


class AgrawalRule:
    """Knows agrawal concept 1: the labels of ``synth.Agrawal(classification_function=1)``."""

    def predict_one(self, x: Mapping[str, Any]) -> int:
        if x["age"] < 40:
            return int(50_000 <= x["salary"] <= 100_000)
        if x["age"] < 60:
            return int(75_000 <= x["salary"] <= 125_000)
        return int(25_000 <= x["salary"] <= 75_000)


class Linear:
    """A weighted sum of some features, that learns nothing."""

    def __init__(self, weights: Mapping[str, float], intercept: float = 0.0) -> None:
        self.weights = dict(weights)
        self.intercept = intercept

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return float(self.intercept + sum(w * x[name] for name, w in self.weights.items()))

    def learn_one(self, x: Mapping[str, Any], y: object) -> None:
        pass


class Constant(Linear):
    """Says the same of everything: a number."""

    def __init__(self, output: float = 0.0) -> None:
        super().__init__({}, output)


class ConstantProbabilities:
    """Says the same of everything: probabilities."""

    def __init__(self, output: Mapping[Label, float]) -> None:
        self.output = dict(output)

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Label, float]:
        return dict(self.output)


class Scripted:
    def __init__(self, function: Callable[[Mapping[str, Any]], Output]) -> None:
        self.function = function

    def predict_proba_one(self, x: Mapping[str, Any]) -> Output:
        return self.function(x)


def normal_rows(n: int, names: Sequence[str], seed: int) -> list[Row]:
    """Return observations of independent standard normal features."""
    rng = random.Random(seed)
    return [{name: rng.gauss(0.0, 1.0) for name in names} for _ in range(n)]


def agrawal(n: int, seed: int = 1, function: int = 1) -> list[tuple[Row, int]]:
    return list(synth.Agrawal(classification_function=function, seed=seed).take(n))


def agrawal_with_drift(n: int, at: int) -> list[tuple[Row, int]]:
    """Return records whose concept changes from 1 to 2."""
    return [*agrawal(at, function=1), *agrawal(n - at, seed=2, function=2)]


def make_config(**settings_: Any) -> Config:
    """Return settings for agrawal, short enough that everything is warm after 20 records.

    Tables given here replace single keys, not the whole table.
    """
    tables: dict[str, Any] = {
        "features": AGRAWAL_FEATURES,
        "label": {"type": "integer"},
        "model": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 3}},
        "explain": {"alpha": 0.01, "emit_every": 5, **default_methods(20, 2, 4)},
        "drift": QUICK_DRIFT,
    }
    for name, value in settings_.items():
        whole = name == "features" or not isinstance(value, dict)
        tables[name] = value if whole else {**tables.get(name, {}), **value}
    return Config(**tables)


LINEAR_FEATURES = {"a": "numeric", "b": "numeric", "c": "categorical"}


def linear_config(**settings_: Any) -> Config:
    """Return settings of a regression on two numbers and a category, with a cheap model.

    The ``model`` may be a class.
    """
    model = settings_.get("model", {})
    if isinstance(model, type):
        model = {"factory": f"{model.__module__}:{model.__name__}"}
    return make_config(
        **{
            "features": LINEAR_FEATURES,
            "label": {"type": "number"},
            **settings_,
            "model": {
                "factory": "tests.kit.support:Additive",
                "params": {},
                **model,
            },
            "explain": {
                "loss": "squared_error",
                "alpha": 0.05,
                "emit_every": 3,
                **default_methods(5, 2, 3),
                **settings_.get("explain", {}),
            },
        }
    )


class Additive:
    """A regressor that learns: 2a - b + the mean label of the category."""

    def __init__(self) -> None:
        self.offsets: dict[Value, float] = {}

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return float(2.0 * x["a"] - x["b"] + self.offsets.get(x["c"], 0.0))

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        offset = self.offsets.get(x["c"], 0.0)
        self.offsets[x["c"]] = offset + 0.1 * (y - self.predict_one(x))


def linear_records(n: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return messages for :func:`linear_config`; the numbers are larger in the second half."""
    rng = random.Random(seed)
    records = []
    for t in range(n):
        scale = 1.0 if t < n // 2 else 6.0
        a, b, c = rng.gauss(0, scale), rng.gauss(0, scale), rng.choice(["u", "v", "w"])
        records.append({"x": {"a": a, "b": b, "c": c}, "y": 2.0 * a - b + len(c), "ts": t})
    return records


def message(
    offset: int, value: object, *, topic: str = "fluxplain.features", key: bytes | None = b"k"
) -> Message:
    """Return a message of partition 0; what is not bytes or None is sent as JSON."""
    data = value if value is None or isinstance(value, bytes) else orjson.dumps(value)
    return Message(topic, 0, offset, key, data)


def messages_of(values: Iterable[object]) -> list[Message]:
    """Return these values as messages, one behind the other."""
    return [message(offset, value) for offset, value in enumerate(values)]


def observations(records: Iterable[tuple[Row, int]]) -> list[Message]:
    """Return the messages of labelled records."""
    return messages_of({"x": x, "y": y, "ts": t} for t, (x, y) in enumerate(records))


def run(stage: Stage, messages: Iterable[Message]) -> list[Record]:
    """Return what a stage publishes, with the evaluations of each observation apart."""
    return [record for each in messages for record in published(stage, each)]


def published(stage: Stage, incoming: Message) -> list[Record]:
    """Return what a stage publishes for a message."""
    return list(singles(process(stage, incoming)))


def singles(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records, with evaluations, in lists, in place of the answers about an observation."""
    for record in records:
        if isinstance(record, Evaluated):
            yield from (Evaluation.decode(each.encode()) for each in evaluations([record]))
        else:
            yield record


def run_copies(stage: Stage, messages: Iterable[Message]) -> list[Record]:
    """Return all that a stage publishes which goes through a pickle before each message."""
    records: list[Record] = []
    for each in messages:
        stage = pickled(stage)
        records += published(stage, each)
    return records


def run_alike(config: Config, messages: Sequence[Message]) -> list[Record]:
    """Return what the model stage publishes; copies of it and two shards publish the same."""
    whole = run(ModelStage(config, STREAM), messages)
    assert encoded(run_copies(ModelStage(config, STREAM), messages)) == encoded(whole)
    shards = [ModelStage(config, STREAM, Replica("model", shard, 2)) for shard in range(2)]
    first, second = (run(shard, messages) for shard in shards)
    assert all(isinstance(each, Evaluation) for each in second)
    assert sorted(encoded([*first, *second])) == sorted(encoded(whole))
    return whole


def passed_on(records: Iterable[Record]) -> list[Message]:
    """Return the records as the next stage reads them."""
    return [message(i, r.encode(), topic=r.TOPIC) for i, r in enumerate(records)]


def of_kind(records: Iterable[Record], kind: type[R]) -> list[R]:
    return [record for record in records if isinstance(record, kind)]


def encoded(records: Iterable[Record]) -> list[bytes]:
    return [record.encode() for record in records]


def by_feature(records: Iterable[Record]) -> dict[str, list[Evaluation]]:
    grouped: dict[str, list[Evaluation]] = {}
    for each in of_kind(records, Evaluation):
        grouped.setdefault(each.feature, []).append(each)
    return grouped


def pickled(thing: T) -> T:
    copy: T = pickle.loads(pickle.dumps(thing))
    return copy


def uses_no_global_random_numbers(call: Callable[[], object]) -> None:
    """Check that a call leaves Python's and NumPy's random state, and does not depend on it."""
    found: list[object] = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        before = random.getstate(), np.random.get_state()
        found.append(call())
        assert random.getstate() == before[0]
        np.testing.assert_equal(np.random.get_state(), before[1])
    assert found[0] == found[1]


def chunks(items: Sequence[T], sizes: Iterable[int]) -> Iterator[Sequence[T]]:
    """Split into parts of these sizes; the last takes the rest."""
    start = 0
    for size in sizes:
        if start + size >= len(items):
            break
        yield items[start : start + size]
        start += size
    yield items[start:]
