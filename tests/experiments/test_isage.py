"""What the experiments of iSAGE count on."""

import numpy as np
import pytest

from tests.experiments.array_sage import random_draws, revealed
from tests.experiments.forests import as_arrays, concept_records, switching_stream
from tests.experiments.isage_imputers import FEATURE, NO_COMMISSION_FROM, TOLD_BY, conditional
from tests.experiments.isage_sensors import FOUND_WITHIN, found_after
from tests.experiments.sensor_network import FAULTS, break_sensor, readings


def test_conditional_draws_are_possible_with_what_is_revealed() -> None:
    """Whatever is revealed, commission is 0 exactly where salary is at least 75,000."""
    features, xs, _ = as_arrays(concept_records(1, 1, 300))
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


def test_records_have_the_labels_of_the_concept_in_use() -> None:
    records, concepts = switching_stream(0.02, 2_000, seed=1)
    assert set(concepts.tolist()) == set(range(6))
    for (x, y), concept in zip(records, concepts.tolist(), strict=True):
        if concept == 0:  # the one of function 1
            assert y == (0 if 40 <= float(x["age"]) < 60 else 1)


@pytest.mark.parametrize(
    ("held", "found"),
    [([True] * 501, 0), ([False] * 7 + [True] * 494, 7), ([True] * 500 + [False], None)],
)
def test_a_sensor_is_found_from_where_it_stays_first(held: list[bool], found: int | None) -> None:
    values = np.column_stack([held, np.full(len(held), 0.5)]).astype(float)
    assert found_after(np.vstack([values, np.zeros((9, 2))]), 0) == found
    assert len(held) == FOUND_WITHIN + 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_one_sensor_while_it_lasts(fault: str) -> None:
    pressures = readings(np.random.default_rng(1))
    broken = pressures.copy()
    break_sensor(broken, 3, fault, range(1000, 1200), np.random.default_rng(2))
    changed = broken != pressures
    assert changed[1001:1200, 3].all()
    changed[1000:1200, 3] = False
    assert not changed.any()
