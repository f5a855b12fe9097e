"""Trees of arrays in wrappers, which change their target or select what they learn."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from river import compose, forest, imblearn, preprocessing, tree

from fluxplain.forest import as_arrays, as_river
from fluxplain.forest.conversion import is_of_arrays
from tests.forest.streams import STREAMS, with_targets
from tests.forest.test_bagging import compare

TREE = tree.HoeffdingTreeRegressor(grace_period=30, tau=0.2)

WRAPPED: dict[str, Callable[[], Any]] = {
    "standard": lambda: preprocessing.TargetStandardScaler(TREE.clone()),
    "range": lambda: preprocessing.TargetMinMaxScaler(
        preprocessing.StandardScaler() | TREE.clone()
    ),
    "clipped": lambda: (
        preprocessing.MinMaxScaler()
        | preprocessing.PredClipper(forest.ARFRegressor(n_models=3, seed=1), y_min=-1.0, y_max=9.0)
    ),
    "sampled": lambda: imblearn.ChebyshevUnderSampler(TREE.clone(), seed=1),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_regressor_is_of_arrays(name: str) -> None:
    stream = with_targets(STREAMS["digits"](300), has_text=False)
    river, ours = WRAPPED[name](), as_arrays(WRAPPED[name]())
    assert is_of_arrays(ours)
    assert not is_of_arrays(river)
    compare(river, ours, stream[:200])
    back = as_river(pickle.loads(pickle.dumps(ours)))
    assert not is_of_arrays(back)
    compare(river, back, stream[200:])


def test_a_regressor_without_arrays_stays_as_it_is() -> None:
    model = compose.TargetTransformRegressor(
        preprocessing.StandardScaler(), func=float, inverse_func=float
    )
    assert as_arrays(model) is model
