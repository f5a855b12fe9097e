"""The reference of iPFI, by counting pairs, and the error."""

import pytest

from fluxplain.evaluate import GenericEvaluator, Observation, Output
from fluxplain.explain.losses import cross_entropy
from tests.kit.command import Clock
from tests.measure.benchmarks.variance import batch_pfi, square_error


class Model:
    def predict_proba_one(self, x: Observation) -> Output:
        p = 0.1 + 0.2 * float(x["a"])
        return {0: 1.0 - p, 1: p}


def test_batch_pfi_takes_every_other_record() -> None:
    model = Model()
    records = [({"a": a, "b": 1.0}, y) for a, y in ((0.0, 0), (1.0, 1), (1.0, 0), (3.0, 1))]
    grown = 0.0
    for i, (x, y) in enumerate(records):
        base = cross_entropy(y, model.predict_proba_one(x))
        for j, (other, _) in enumerate(records):
            if i != j:
                grown += cross_entropy(y, model.predict_proba_one(other)) - base
    assert batch_pfi(GenericEvaluator(model), records, Clock()) == {
        "a": pytest.approx(grown / 12),
        "b": pytest.approx(0.0),
    }


def test_errors_are_squared_and_averaged() -> None:
    assert square_error({"a": 1.0, "b": 4.0}, {"a": 2.0, "b": 1.0}) == 5.0
