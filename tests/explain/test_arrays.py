"""What is computed in arrays is what is computed one by one, bit for bit."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import forest, linear_model, preprocessing

from fluxplain.evaluate import Label
from fluxplain.evaluate.table import Table
from fluxplain.explain import (
    LOSSES,
    IncrementalPairPDP,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    explain_together,
    loss_kernels,
)
from fluxplain.explain.losses import compiled_loss, losses_on
from fluxplain.explain.players import Players
from tests.explain.kinds import state
from tests.kit.support import NUMBERS, PROPERTY, Row, Scripted, agrawal, pickled

SHARES = st.floats(0.0, 1.0)
LABELS: tuple[Label, ...] = ("a", "b", "c")
ROWS = st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=12)


MODELS: dict[str, tuple[Callable[[], Any], str, Callable[[Row, int], Any]]] = {
    "logistic": (
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "cross_entropy",
        lambda x, y: bool(y),
    ),
    "logistic-number": (
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "zero_one",
        lambda x, y: y,
    ),
    "linear": (
        lambda: preprocessing.StandardScaler(with_std=False) | linear_model.LinearRegression(),
        "squared_error",
        lambda x, y: float(x["age"]) + y,
    ),
    "forest": (
        lambda: forest.ARFClassifier(n_models=3, seed=1),
        "brier",
        lambda x, y: f"class {y + (int(x['age']) > 50)}",
    ),
}


def explainers(
    model: Any, features: list[Any], loss: Any, evaluator: Any, inner_samples: int = 2
) -> list[Any]:
    options: dict[str, Any] = {"loss": loss, "alpha": 0.05, "seed": 1}
    options["inner_samples"] = inner_samples
    names = Players(features).features
    return [
        IncrementalPFI(model, features, reservoir_size=20, evaluator=evaluator, **options),
        IncrementalSAGE(model, features, reservoir_size=15, evaluator=evaluator, **options),
        *[
            kind(
                model, features, imputer=imputer, reservoir_size=15, evaluator=evaluator, **options
            )
            for kind in (IncrementalPFI, IncrementalSAGE)
            for imputer in ("product", "observational")
        ],
        IncrementalPDP(
            model,
            names,
            storage_size=20,
            entrance_probability=0.7,
            warm_up=5,
            ice=3,
            seed=1,
            evaluator=evaluator,
        ),
        IncrementalPDP(
            model, names, grid="range", window=30, storage_size=20, ice=2, evaluator=evaluator
        ),
        IncrementalPairPDP(
            model,
            [(names[0], names[1]), (names[2], names[0])],
            grid_size=3,
            storage_size=20,
            evaluator=evaluator,
        ),
    ]


def restored(explainer: Any, evaluator: Any) -> Any:
    """Return it out of a pickle, asking the model that goes on."""
    copy = pickled(explainer)
    copy.evaluator = evaluator
    return copy


FEATURES: dict[str, list[Any] | None] = {
    "some": ["salary", "age", "loan"],
    "all": None,
    "groups": [
        "loan",
        {"house": ["zipcode", "hvalue", "hyears"], "person": ["elevel", "age"]},
        "car",
    ],
}

QUICK = {"forest-some", "forest-all", "forest-groups", "logistic-all", "linear-groups"}
"""Each model of another evaluator, and each choice of features."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "features"),
    [
        pytest.param(name, features, id=case, marks=[] if case in QUICK else pytest.mark.slow)
        for name in MODELS
        for choice, features in FEATURES.items()
        if (case := f"{name}-{choice}")
    ],
)
def test_whatever_evaluator_and_loss_are_taken_the_estimates_are_the_same(
    name: str, features: list[Any] | None
) -> None:
    factory, loss, target = MODELS[name]
    model = factory()
    asked = features or list(agrawal(1)[0][0])
    arrays = explainers(model, asked, loss, "auto")
    called = explainers(model, asked, loss, "generic")
    # of several draws, iSAGE estimates the excess of a loss of one's own in another way
    one_draw = explainers(model, asked, loss, "auto", 1)
    own = explainers(model, asked, functools.partial(LOSSES[loss]), "auto", 1)
    for i, (raw, y) in enumerate(agrawal(80)):
        x = {feature: float(v) / 1e5 if float(v) > 1000 else v for feature, v in raw.items()}
        if i % 10 == 9:
            x = dict(reversed(x.items()))
        label = target(x, y)
        estimates = [explain_together(each, x, label) for each in (arrays, called, one_draw, own)]
        assert estimates[2] == estimates[3]
        for one, two in zip(estimates[0], estimates[1], strict=True):
            assert one == pytest.approx(two, rel=1e-6, abs=1e-9)
        if i % 30 == 20:
            evaluator = arrays[0].evaluator
            arrays = [restored(each, evaluator) for each in arrays]
            one_draw = [restored(each, evaluator) for each in one_draw]
        model.learn_one(x, label)
    for one, two in zip(one_draw, own, strict=True):
        assert state(one) == state(two)


@PROPERTY
@given(ROWS, st.sampled_from(["a", "c", "d"]), st.sampled_from(sorted(LOSSES)), NUMBERS)
def test_a_compiled_loss_is_the_function(
    rows: list[tuple[float, ...]], y: str, name: str, target: float
) -> None:
    loss = LOSSES[name]
    for label, table in (
        (y, Table(LABELS, np.array(rows))),
        (target, Table((None,), np.array(rows)[:, :1])),
    ):
        compiled, blocks = compiled_loss(loss, [label], table.labels), table.numbers[None]
        if compiled is not None:
            [given] = loss_kernels.losses(*compiled, blocks).tolist()
            assert given == [loss(label, output) for output in table.outputs()]
            assert [given] == losses_on(loss, [label], table.labels, blocks).tolist()


@pytest.mark.parametrize("value", ["text", 10**400, np.int64(3)], ids=["text", "large", "NumPy's"])
def test_what_is_no_number_fails_or_not_as_the_model_does(value: Any) -> None:
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    explainer = IncrementalPFI(model, ["a"], reservoir_size=3, seed=1)
    for i in range(5):
        x: Row = {"a": float(i)}
        model.learn_one(x, True)
        explainer.explain_one(x, True)
    try:
        model.predict_proba_one({"a": value})
    except Exception as error:
        with pytest.raises(type(error)):
            explainer.explain_one({"a": value}, True)
    else:
        assert explainer.explain_one({"a": value}, True)["a"] != 0.0


@pytest.mark.parametrize(("n", "asked"), [(1, 2), (5, 1)])
def test_an_evaluator_that_gives_too_few_or_too_many_outputs_is_named(n: int, asked: int) -> None:
    explainer = IncrementalPFI(
        Scripted(lambda x: 0.0),
        ["a"],
        loss="squared_error",
        reservoir_size=1,
        evaluator=lambda inputs: Table((None,), np.zeros((n, 1))),
    )
    with pytest.raises(ValueError, match=rf"gave outputs of the shape \({n}, .*on {asked} inputs"):  # noqa: PT012
        explainer.explain_one({"a": 1.0}, 1.0)
        explainer.explain_one({"a": 1.0}, 1.0)
