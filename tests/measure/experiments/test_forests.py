"""The experiments' SAGE of arrays gives what the library's batch SAGE gives."""

import random
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from river import forest

from fluxplain.baselines import SlidingWindowSAGE, batch_sage
from fluxplain.explain.imputers import draws
from fluxplain.explain.randoms import permuted
from tests.kit.support import agrawal
from tests.measure.experiments.forests import (
    Forests,
    Places,
    array_sage,
    as_arrays,
    interventional,
    random_draws,
    revealed,
)
from tests.measure.experiments.isage_imputers import (
    FEATURE,
    NO_COMMISSION_FROM,
    TOLD_BY,
    conditional,
)
from tests.measure.experiments.isage_table_2 import window_estimates
from tests.measure.experiments.streams import Record


@pytest.fixture(scope="module")
def forests() -> Forests:
    models = []
    for concept in (0, 2):
        model = forest.ARFClassifier(n_models=2, seed=concept)
        for x, y in agrawal(1_000, concept, concept):
            model.learn_one(x, y)
        models.append(model)
    return Forests(models)


def library_draws(records: Sequence[Record], m: int, seed: int) -> tuple[Places, Places]:
    """Return the orders and choices that ``batch_sage`` draws."""
    rng, d = random.Random(seed), len(records[0][0])
    drawn = [(permuted(d, rng), draws(len(records), m, rng)) for _ in records]
    return np.array([order for order, _ in drawn]), np.array([chosen for _, chosen in drawn])


@pytest.mark.parametrize("m", [1, 3])
def test_the_values_are_those_of_batch_sage_with_the_same_draws(forests: Forests, m: int) -> None:
    records = agrawal(200, 99, 0)
    features, xs, ys = as_arrays(records)
    observations, labels = [x for x, _ in records], [y for _, y in records]
    for used in (0, 1):
        forests.used = used
        orders, chosen = library_draws(records, m, seed=5)
        ask = partial(forests.probabilities, features)
        values = array_sage(ask, xs, ys, orders, interventional(xs, chosen)).mean(axis=0)
        wanted = batch_sage(
            None, observations, labels, features, inner_samples=m, seed=5, evaluator=forests
        )
        assert dict(zip(features, values, strict=True)) == pytest.approx(wanted, abs=1e-9)


def test_windows_begin_and_end_as_those_of_the_library(forests: Forests) -> None:
    """They use other random numbers, so what is compared is when the values change."""
    records, window = agrawal(140, 99, 0), 40
    concepts = np.array([0] * 100 + [1] * 40)
    ours = window_estimates(forests, records, concepts, window, 1, np.random.default_rng(1))
    features = list(records[0][0])
    sage = SlidingWindowSAGE(None, features, window=window, inner_samples=1, evaluator=forests)
    theirs = np.empty_like(ours)
    for t, (x, y) in enumerate(records):
        forests.used = concepts[t]
        theirs[t] = list(sage.explain_one(x, y).values())
    changed = [np.flatnonzero(np.diff(values, axis=0).any(axis=1)) for values in (ours, theirs)]
    assert changed[0].tolist() == changed[1].tolist()
    # the sum has no randomness: by efficiency it is what the model gains in the window
    assert ours.sum(axis=1) == pytest.approx(theirs.sum(axis=1), abs=1e-9)


def test_draws_are_permutations_and_choices() -> None:
    orders, chosen = random_draws(np.random.default_rng(1), 50, 4, 7)
    assert (np.sort(orders, axis=1) == np.arange(4)).all()
    assert set(chosen.ravel()) == set(range(50))
    assert chosen.shape == (50, 7)


def test_conditional_draws_are_possible_with_what_is_revealed() -> None:
    """Whatever is revealed, commission is 0 exactly where salary is at least 75,000."""
    features, xs, _ = as_arrays(agrawal(300))
    rng = np.random.default_rng(1)
    orders, chosen = random_draws(rng, len(xs), len(features), 5)
    hidden = conditional(features, xs, orders, chosen, rng)
    rows = np.where(revealed(orders)[:, :, None], xs[:, None, None], hidden)
    salary, commission = (rows[..., features.index(f)] for f in (TOLD_BY, FEATURE))
    assert ((commission == 0.0) == (salary >= NO_COMMISSION_FROM)).all()
    # by whole observations it is not so: the draws have something to put right
    joint = np.where(revealed(orders)[:, :, None], xs[:, None, None], xs[chosen][:, None])
    salary, commission = (joint[..., features.index(f)] for f in (TOLD_BY, FEATURE))
    assert ((commission == 0.0) != (salary >= NO_COMMISSION_FROM)).any()
