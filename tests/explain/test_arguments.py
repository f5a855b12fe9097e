"""Arguments out of their range, of explainers and of the functions that explain a batch."""

import math
from typing import Any

import pytest

from fluxplain.baselines import batch_pdp, batch_pfi, batch_sage, mean_decrease_in_impurity
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from tests.explain.kinds import IMPORTANCES, KINDS, WINDOWS, Kind, Known, make
from tests.kit.support import Linear

IPFI, ISAGE, PDP = ([Kind(of)] for of in (IncrementalPFI, IncrementalSAGE, IncrementalPDP))

WRONG: list[tuple[list[Kind], dict[str, Any], str]] = [
    *((KINDS, {"alpha": alpha}, r"alpha is .*\(0, 1\]") for alpha in (0.0, -1.0, 1.5, math.nan)),
    *((KINDS, {"size": size}, f"size is {size}") for size in (0, -3)),
    *((KINDS, {"warm_up": n}, rf"warm_up is {n}.*\[1, 5\]") for n in (0, -1, 6)),
    *((IMPORTANCES, {"inner_samples": n}, f"inner_samples is {n}") for n in (0, -2)),
    (IMPORTANCES, {"alpha": []}, "alpha is .*one number, or several different"),
    (IMPORTANCES, {"alpha": [0.1, 0.1]}, "alpha is .*one number, or several different"),
    (IMPORTANCES, {"alpha": [0.1, 2]}, r"alpha is 2, but must lie in \(0, 1\]"),
    (IPFI + ISAGE, {"imputer": "magic"}, r"'magic'.*interventional, product, observational"),
    (IPFI, {"sampler": "magic"}, r"'magic'.*uniform, geometric"),
    *(
        ([kind], {"inner_samples": "all"}, f"inner_samples is 'all'.*'{kind.options['imputer']}'")
        for kind in IMPORTANCES
        if kind.options
    ),
    (
        IPFI,
        {"imputer": "observational", "sampler": "uniform"},
        r"sampler must be 'geometric'.*'observational'",
    ),
    (PDP, {"grid_size": 1}, "grid_size is 1"),
    (PDP, {"grid_size": 0}, "grid_size is 0"),
    (PDP, {"entrance_probability": 0.0}, r"entrance_probability is 0\.0"),
    (PDP, {"grid": "deciles"}, "grid is 'deciles', but must be one of 'quantile-range', 'range'"),
    (PDP, {"storage": "newest"}, "storage is 'newest', but must be one of 'frequency'"),
    (PDP, {"window": 5}, "window is 5, but only the grid 'range' has one"),
    (PDP, {"grid": "range", "window": 0}, "window is 0, but must be at least 1"),
    (PDP, {"grid": "range", "window": 3, "warm_up": 4}, r"warm_up is 4.* must lie in \[1, 3\]"),
    (PDP, {"ice": -1}, r"ice is -1, but must lie in \[0, 1,000\]"),
    (PDP, {"ice": 1001}, "ice is 1001"),
    (PDP, {"features": ["a", {"pair": ["c", "b"]}]}, "features has the group 'pair'"),
    ([*KINDS, *WINDOWS], {"features": []}, "features is empty"),
    ([*KINDS, *WINDOWS], {"features": ["a", "b", "a"]}, "features names 'a' more than once"),
    ([*KINDS, *WINDOWS], {"features": "abc"}, "features is 'abc'"),
    (IMPORTANCES + WINDOWS, {"loss": "best"}, "unknown loss 'best'"),
    (WINDOWS, {"size": 1}, "(interval|window) is 1, but must be at least 2"),
    (WINDOWS[:1], {"permutations": 0}, "permutations is 0"),
    (WINDOWS[1:], {"stride": 0}, "stride is 0"),
    (WINDOWS[1:], {"inner_samples": 0}, "inner_samples is 0"),
]


@pytest.mark.parametrize(("kinds", "options", "message"), WRONG)
def test_an_argument_out_of_range_is_named(
    kinds: list[Kind], options: dict[str, Any], message: str
) -> None:
    for kind in kinds:
        with pytest.raises(ValueError, match=message):
            make(kind, Known(), **options)


@pytest.mark.parametrize("kind", [*KINDS, *WINDOWS], ids=str)
def test_a_model_that_cannot_be_asked_is_named(kind: Kind) -> None:
    with pytest.raises(TypeError, match=r"object .*predict_proba_one or predict_one"):
        make(kind, object())


LABELLED = {"ys": [1.0] * 3, "loss": "squared_error"}


@pytest.mark.parametrize(
    ("explain", "arguments", "message"),
    [
        (batch_pfi, {**LABELLED, "permutations": 0}, "permutations is 0"),
        (batch_sage, {**LABELLED, "inner_samples": 0}, "inner_samples is 0"),
        *(
            (explain, {**LABELLED, **arguments}, message)
            for explain in (batch_pfi, batch_sage)
            for arguments, message in (
                ({"features": []}, "features is empty"),
                ({"features": ["a", "a"]}, "'a' more than once"),
                ({"features": ["a", "z"]}, "lacks the feature 'z'"),
                ({"ys": [1.0]}, r"3 observations \(xs\), but 1 labels"),
                ({"xs": [{"a": 1.0}], "ys": [1.0]}, "at least 2"),
                ({"loss": "best"}, "unknown loss 'best'"),
                ({"evaluator": "best"}, "unknown evaluator 'best'"),
            )
        ),
        (batch_pdp, {"xs": []}, "xs is empty"),
        (batch_pdp, {"grid_size": 1}, "grid_size is 1"),
        (batch_pdp, {"features": ["z"]}, "lacks the feature 'z'"),
        (batch_pdp, {"features": ["a", {"pair": ["c", "b"]}]}, "features has the group 'pair'"),
    ],
)
def test_an_argument_of_a_batch_out_of_range_is_named(
    explain: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        explain(Linear({"a": 1.0}), **{"xs": [{"a": 1.0}] * 3, "features": ["a"], **arguments})


def test_impurities_are_of_single_features() -> None:
    with pytest.raises(ValueError, match="features has the group 'pair'"):
        mean_decrease_in_impurity(Linear({"a": 1.0}), ["a", {"pair": ["c", "b"]}])  # type: ignore[list-item]
