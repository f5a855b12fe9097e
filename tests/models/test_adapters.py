"""What every model of ``fluxplain.models`` keeps to, as River's models do."""

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

from fluxplain.evaluate import GenericEvaluator, choose
from fluxplain.models import as_asked, from_sklearn, from_torch
from tests.kit.outputs import assert_same, question
from tests.kit.shop import FEATURES, records
from tests.kit.support import Row, outputs_of

Factory = Callable[..., Any]


def sklearn(estimator: str, label: str, **options: Any) -> Factory:
    table = {"factory": f"sklearn.{estimator}", **options}
    return lambda seed=1: from_sklearn(
        table, features=FEATURES, label=label, classes=CLASSES.get(label), categories=3, seed=seed
    )


def torch(label: str, **options: Any) -> Factory:
    return lambda seed=1: from_torch(
        features=FEATURES,
        label=label,
        classes=CLASSES.get(label),
        categories=3,
        seed=seed,
        **options,
    )


def dropout(inputs: int, outputs: int) -> Any:
    """Return a network that draws random numbers while it learns."""
    from torch import nn  # noqa: PLC0415  few have it

    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, outputs))


CLASSES: dict[str, list[Any]] = {"string": ["small", "large", "medium"], "integer": [2, 0, 1]}

ADAM = {"factory": "torch.optim:Adam", "lr": 0.05}

MODELS: dict[str, tuple[str, Factory]] = {
    "logistic": ("boolean", sklearn("linear_model:SGDClassifier", "boolean", loss="log_loss")),
    "hinge": ("string", sklearn("linear_model:SGDClassifier", "string")),
    "network of three classes": (
        "string",
        sklearn("neural_network:MLPClassifier", "string", hidden_layer_sizes=[5]),
    ),
    "integers": ("integer", sklearn("naive_bayes:BernoulliNB", "integer")),
    "regression": ("number", sklearn("linear_model:SGDRegressor", "number")),
    "regression network": ("number", sklearn("neural_network:MLPRegressor", "number")),
    "autoencoder": (
        "none",
        sklearn("neural_network:MLPRegressor", "none", hidden_layer_sizes=[4, 2, 4]),
    ),
    "one class": ("none", sklearn("linear_model:SGDOneClassSVM", "none")),
}
TORCH: dict[str, tuple[str, Factory]] = {
    "torch": ("boolean", torch("boolean")),
    "torch, adam": ("string", torch("string", optimizer=ADAM, hidden=[8, 4])),
    "torch, dropout": ("integer", torch("integer", module=dropout, optimizer=ADAM)),
    "torch, regression": ("number", torch("number", activation="torch.nn:Tanh")),
    "torch, autoencoder": ("none", torch("none", hidden=[4, 2, 4])),
}
ALIKE = {"integers", "hinge", "autoencoder", "network of three classes"}
"""Models of kinds that others of the quick suite have, too."""

NAMES = [
    *(pytest.param(n, marks=[pytest.mark.slow] if n in ALIKE else []) for n in MODELS),
    *(pytest.param(name, marks=pytest.mark.torch) for name in TORCH),
]


def made(name: str, seed: int = 1) -> tuple[Any, str]:
    """Return a model as the pipeline asks it, and the type of its labels."""
    label, factory = {**MODELS, **TORCH}[name]
    model = factory(seed=seed)
    return as_asked(model, label), label


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMES)
def test_many_answers_are_those_of_asking_one_by_one(name: str) -> None:
    model, label = made(name)
    choice, rng = choose(model), random.Random(1)
    assert choice.kind == "batch"
    past: list[Row] = []
    for x, y in records(150, label):
        past.append(x)
        asked = question(x, past, rng)
        before = copy.deepcopy((x, asked)), pickle.dumps(model)
        outputs = outputs_of(choice.evaluator, x, asked)
        assert_same(outputs, outputs_of(GenericEvaluator(model), x, asked))
        assert ((x, asked), pickle.dumps(model)) == before, "asking changes nothing"
        model.learn_one(x, y)
    changed = {**x, "shop": "never learned"}
    given = outputs_of(choice.evaluator, x, [changed])
    assert_same(given, outputs_of(GenericEvaluator(model), changed, [{}]))


@pytest.mark.parametrize("name", NAMES)
def test_a_restart_and_the_same_seed_change_no_bit(name: str) -> None:
    model, label = made(name)
    again, _ = made(name)
    assert pickle.dumps(again) == pickle.dumps(model)
    stream = records(100, label)
    asked = [x for x, _ in stream[:20]]
    for t, (x, y) in enumerate(stream):
        if t % 40 == 20:
            again = pickle.loads(pickle.dumps(again))
        for each in (model, again):
            each.learn_one(dict(x), y)
        given = [outputs_of(choose(each).evaluator, x, asked) for each in (model, again)]
        assert given[0] == given[1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMES)
def test_it_learns(name: str) -> None:
    model, label = made(name)
    evaluate, stream = choose(model).evaluator, records(600, label)

    def error() -> float:
        return sum(_error(label, outputs_of(evaluate, x, [{}])[0], y) for x, y in stream[-100:])

    early = error()
    for x, y in stream[:-100]:
        model.learn_one(x, y)
    if label == "none":  # it has scaled its input meanwhile, so this is all that can be said
        assert error() not in {0.0, early}
    else:
        assert 0.0 < error() < 0.8 * early


def _error(label: str, output: Any, y: Any) -> float:
    if label == "none":
        return abs(float(output))
    return 1.0 - float(output[y]) if isinstance(output, dict) else abs(output - y)
