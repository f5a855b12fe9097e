"""Explanations of models whose importances are known."""

import statistics

import pytest

from fluxplain.explain import IncrementalPFI, IncrementalSAGE
from tests.kit.support import AgrawalRule, Linear, agrawal, normal_rows

AGRAWAL_IPFI = {"age": 0.3419, "salary": 0.4734}


def test_the_rule_reproduces_every_label() -> None:
    rule = AgrawalRule()
    assert all(rule.predict_one(x) == y for x, y in agrawal(5_000))


# The uniform reservoir hardly changes late in the stream, so what it happens to hold shifts the
# estimate by about sd/sqrt(size): it must be large for that to be small beside the standard error.
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("sampler", "reservoir_size"), [("geometric", 100), ("uniform", 1_000)])
def test_ipfi_reaches_the_ground_truth_of_agrawal(sampler: str, reservoir_size: int) -> None:
    records = agrawal(10_000)
    pfi = IncrementalPFI(
        AgrawalRule(),
        list(records[0][0]),
        loss="zero_one",
        sampler=sampler,
        reservoir_size=reservoir_size,
        seed=1,
    )
    for x, y in records:
        pfi.explain_one(x, y)
    for feature, value in pfi.values.items():
        if feature in AGRAWAL_IPFI:
            # zero-one increments of a perfect model are 0 or 1, so the error is that of a share
            assert pfi.std_errors[feature] < 0.02
            assert abs(value - AGRAWAL_IPFI[feature]) < 3.0 * pfi.std_errors[feature]
        else:
            assert value == 0.0


@pytest.mark.slow
def test_inner_samples_leave_the_ipfi_value_and_lower_its_error() -> None:
    records = agrawal(4_000)
    one, many = (
        IncrementalPFI(
            AgrawalRule(), ["age", "salary"], loss="zero_one", inner_samples=m, alpha=0.002, seed=1
        )
        for m in (1, 10)
    )
    for x, y in records:
        one.explain_one(x, y)
        many.explain_one(x, y)
    for feature, expected in AGRAWAL_IPFI.items():
        assert many.std_errors[feature] < one.std_errors[feature]
        # the ten draws share the reservoir, so its noise (< 0.5/sqrt(100)/sqrt(renewals)) remains
        assert abs(many.values[feature] - expected) < 3.0 * one.std_errors[feature]


def test_all_inner_samples_are_the_exact_expectation_over_the_reservoir() -> None:
    model = Linear({"a": 2.0, "b": -1.0})
    rows = normal_rows(6, ["a", "b"], seed=3)
    *stored, x = rows
    y = 0.5
    pfi = IncrementalPFI(
        model, ["a", "b"], loss="squared_error", reservoir_size=5, inner_samples="all"
    )
    sage = IncrementalSAGE(
        model, ["a", "b"], loss="squared_error", reservoir_size=5, inner_samples="all"
    )
    for row in rows:
        pfi.explain_one(row, y)
        sage.explain_one(row, y)

    def loss(output: float) -> float:
        return (output - y) ** 2

    for feature in ("a", "b"):
        replaced = [loss(model.predict_one({**x, feature: row[feature]})) for row in stored]
        expected = statistics.fmean(replaced) - loss(model.predict_one(x))
        assert pfi.increments[feature] == pytest.approx(expected)
    # of two features the one that is revealed first is told by what the other hides
    known = {}
    for feature in ("a", "b"):
        outputs = [model.predict_one({**row, feature: x[feature]}) for row in stored]
        # and the loss of a mean is that of the expectation and the variance of the mean
        known[feature] = loss(statistics.fmean(outputs)) - statistics.variance(outputs) / 5
    nothing, everything = loss(sage.mean_prediction), loss(model.predict_one(x))  # type: ignore[arg-type]
    first_a = {"a": nothing - known["a"], "b": known["a"] - everything}
    first_b = {"b": nothing - known["b"], "a": known["b"] - everything}
    assert any(sage.increments == pytest.approx(each) for each in (first_a, first_b))
