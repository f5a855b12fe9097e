"""The pipeline publishes the numbers of the library: same seeds, same stream, bit for bit."""

import copy
import math
from typing import Any

import pytest

from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from fluxplain.schemas.methods import Method
from tests.kit.stages import explanations
from tests.kit.support import STREAM, agrawal, linear_config, linear_records, make_config

CLASSIFIERS: dict[str, dict[str, Any]] = {
    "forest": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 3}},
    "tree": {"factory": "river.tree:HoeffdingTreeClassifier", "params": {"grace_period": 20}},
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
"""The same players as the library takes them, in the order of their first features."""


def known(error: float) -> float | None:
    return error if math.isfinite(error) else None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", [pytest.param("forest", marks=pytest.mark.slow), "tree", "regression"]
)
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
        records: list[tuple[dict[str, Any], Any]] = [(r["x"], r["y"]) for r in linear_records(40)]
    else:
        explain = {"loss": loss, "emit_every": 1, **methods}
        config = make_config(model=CLASSIFIERS[name], explain=explain)
        kinds = config.features.items()
        records = [
            ({n: float(x[n]) if each == "numeric" else x[n] for n, each in kinds}, y)
            for x, y in agrawal(100)
        ]
    published = explanations(config, [{"x": x, "y": y} for x, y in records])
    values: dict[tuple[str, str, int], tuple[float, float | None]] = {
        (e.method, e.feature, e.seq): (e.value, e.std_error) for e in published
    }
    errors = {(e.feature, e.seq): e.effect_std_error for e in published if e.method == "ipdp"}
    trends = {(e.feature, e.seq): e.trends for e in published if e.method == "ipdp"}
    assert all(e.trends is None for e in published if e.method != "ipdp")
    model, features = config.make_model(), list(config.features)
    players = AS_ONE[kind] if grouped else features

    def given(method: Method, *names: str) -> dict[str, Any]:
        """Return the settings of a method as the library takes them."""
        return {
            "alpha": config.explain.alpha,
            "categorical": [n for n, each in config.features.items() if each == "categorical"],
            "seed": f"{config.seed}/{STREAM}/{method}",
            **{name: getattr(config.explain.of(method), name) for name in names},
        }

    of_players: dict[str, Any] = {"loss": loss, "imputer": imputer}
    sizes = ("reservoir_size", "inner_samples")
    pfi = IncrementalPFI(model, players, **of_players, **given("ipfi", *sizes))
    sage = IncrementalSAGE(model, players, **of_players, **given("isage", *sizes))
    pdp = IncrementalPDP(model, features, **given("ipdp"), **methods["ipdp"])
    compared = 0
    for seq, (x, y) in enumerate(records):
        pfi.explain_one(x, y)
        sage.explain_one(x, y)
        pdp.explain_one(x)
        for method, explainer in (("ipfi", pfi), ("isage", sage), ("ipdp", pdp)):
            for feature in explainer.increments:
                expected = explainer.values[feature], known(explainer.std_errors[feature])
                assert values[method, feature, seq] == expected
                compared += 1
        curve_errors: Any = pdp.curve_errors
        assert pdp.trends.keys() == pdp.increments.keys()
        for feature in pdp.trends:
            assert trends[feature, seq] == [pdp.trends[feature]]
            assert errors[feature, seq] == [*map(known, curve_errors[feature])]
        model.learn_one(copy.deepcopy(x), y)
    assert compared == len(values) > 0
