"""How much larger the loss on a mean of few outputs is: losses with kinks, and one's own."""

import math
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Label, Output
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels
from fluxplain.explain import LOSSES
from fluxplain.explain.losses import Loss, Target, absolute_error, excesses_of, losses_on
from fluxplain.explain.sage import SAGE
from tests.kit.support import PROPERTY

DRAWS = 5


def pinball(y: Target, output: Output) -> float:
    difference = float(y) - cast(float, output)
    return max(0.8 * difference, -0.2 * difference)


def spherical(y: Target, output: Output) -> float:
    assert isinstance(output, dict)
    return -output[cast(Label, y)] / math.hypot(*output.values())


def squared(y: Target, output: Output) -> float:
    return (cast(float, output) - float(y)) ** 2


def brier(y: Target, output: Output) -> float:
    assert isinstance(output, dict)
    return sum((p - (label == y)) ** 2 for label, p in output.items())


def block(drawn: Floats, other: Floats) -> Floats:
    """Return the mean of draws with its variance, and an output that is known."""
    variances = drawn.var(axis=0, ddof=1) / len(drawn)
    return np.array([[drawn.mean(axis=0), other, variances, np.zeros(len(other))]])


def fall(loss: Loss, y: Target, labels: Labels, blocks: Floats) -> float:
    [found] = SAGE.increments(loss, [y], labels, blocks[:, 0], blocks)
    return float(found)


@PROPERTY
@given(st.lists(st.floats(0.05, 0.95), min_size=2, max_size=6))
def test_a_loss_of_ones_own_has_the_excess_of_the_same_that_is_known(outputs: list[float]) -> None:
    numbers = np.array(outputs)[:, None]
    blocks = block(numbers, numbers[0])
    known = fall(LOSSES["squared_error"], 0.7, (None,), blocks)
    assert fall(squared, 0.7, (None,), blocks) == pytest.approx(known, abs=1e-12)
    both = np.hstack([numbers, 1.0 - numbers])
    blocks = block(both, both[0])
    known = fall(LOSSES["brier"], "b", ("a", "b"), blocks)
    assert fall(brier, "b", ("a", "b"), blocks) == pytest.approx(known, abs=1e-12)


@pytest.mark.parametrize("loss", [absolute_error, pinball, spherical])
def test_the_excess_holds_on_average_over_labels(loss: Loss) -> None:
    """Over draws of many outputs, whose variance is estimated."""
    rng, n, classes = np.random.default_rng(1), 10_000, ("a", "b", "c")
    labels: Labels = (None,)
    if loss is spherical:
        labels = classes
        exact = rng.dirichlet([2.0] * 3, n)
        drawn = np.array([rng.dirichlet(4.0 * p, DRAWS) for p in exact])
        ys: list[Target] = [classes[rng.choice(3, p=p)] for p in exact]
    else:
        exact = rng.normal(size=(n, 1))
        drawn = exact[:, None] + 2.0 * rng.normal(size=(n, DRAWS, 1))
        ys = [*rng.normal(scale=1.5, size=n).tolist()]
    blocks = np.vstack([block(of, other) for of, other in zip(drawn, exact, strict=True)])
    few, known = losses_on(loss, ys, labels, blocks[:, :2]).T
    left = SAGE.increments(loss, ys, labels, blocks[:, 0], blocks)
    bias, error = (few - known).mean(), left.std() / math.sqrt(n)
    assert bias > 8.0 * error
    assert abs(left.mean()) < 3.0 * error + 0.1 * bias


def test_the_0_1_loss_which_is_not_continuous_has_no_excess() -> None:
    p = np.array([[0.4, 0.6], [0.7, 0.3]])
    assert fall(LOSSES["zero_one"], "a", ("a", "b"), block(p, p[1])) == 0.0
    assert fall(LOSSES["zero_one"], "a", ("a", "b"), block(p, p[0])) == -1.0


def test_a_loss_that_refuses_a_moved_output_has_no_excess() -> None:
    def strict(y: Target, output: Output) -> float:
        assert cast(float, output) > 0.0
        return -math.log(cast(float, output))

    blocks = np.array([[[0.1], [0.5], [0.04], [0.0]]])
    assert fall(strict, 1.0, (None,), blocks) == pytest.approx(math.log(5.0))


def test_a_loss_that_is_not_curved_has_no_excess() -> None:
    def strict(y: Target, output: Output) -> float:
        calls.append(output)
        return float(cast(float, output) > 0.5)

    calls: list[Output] = []
    blocks = np.array([[[0.1], [0.6], [0.3], [0.0]]])
    assert fall(strict, 1.0, (None,), blocks) != -1.0
    strict.is_curved = False  # type: ignore[attr-defined]
    calls.clear()
    assert fall(strict, 1.0, (None,), blocks) == -1.0
    assert calls == [0.1, 0.6]


@PROPERTY
@given(st.lists(st.floats(0.0, 2.0), min_size=2, max_size=4), st.floats(0.0, 1.0))
def test_scores_that_are_no_probabilities_have_no_huge_excess(
    scores: list[float], variance: float
) -> None:
    labels = (*"abcd"[: len(scores)],)
    blocks = np.array([[scores, [variance] * len(scores)]])
    losses = losses_on(brier, ["a"], labels, blocks[:, :1])
    # at most four rooms, each of a quarter
    assert abs(excesses_of(brier, ["a"], labels, blocks, losses).item()) < 16.0 * len(scores) ** 2


@PROPERTY
@given(
    st.lists(st.floats(), min_size=3, max_size=3),
    st.lists(st.floats(0.0), min_size=3, max_size=3),
    st.floats(),
)
def test_the_excess_is_finite_whatever_the_outputs(
    numbers: list[float], variances: list[float], given_loss: float
) -> None:
    def loss(y: Target, output: Output) -> float:
        values = [*output.values()] if isinstance(output, dict) else [output]
        return given_loss if values[0] < 0.5 else values[0] * values[-1]

    for labels in ((None,), ("a", "b"), ("a", "b", "c")):
        columns = slice(len(labels))
        blocks = np.array([[numbers[columns], variances[columns]]])
        losses = losses_on(loss, [1.0], labels, blocks[:, :1])
        assert np.isfinite(excesses_of(loss, [1.0], labels, blocks, losses)).all()
