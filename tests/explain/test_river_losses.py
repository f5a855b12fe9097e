"""River's metrics as losses."""

import pickle
from typing import Any

import pytest
from river import metrics, utils

from fluxplain.explain import IncrementalPFI, get_loss
from fluxplain.explain.losses import (
    absolute_error,
    cross_entropy,
    squared_error,
    zero_one,
)
from tests.explain.kinds import KINDS, Known, explain, make, state, stream

SAME = {
    metrics.Accuracy: zero_one,
    metrics.CrossEntropy: cross_entropy,
    metrics.LogLoss: cross_entropy,
    metrics.MAE: absolute_error,
    metrics.MSE: squared_error,
}
PROBABILITIES: list[tuple[Any, Any]] = [
    (True, {False: 0.25, True: 0.75}),
    (False, {False: 0.25, True: 0.75}),
    (False, {False: 0.875, True: 0.125}),
]
NUMBERS: list[tuple[Any, Any]] = [(1.0, 2.5), (-3.0, 1.0), (0.5, 0.5)]


@pytest.mark.parametrize("metric", SAME, ids=lambda metric: metric.__name__)
def test_a_metric_that_is_the_mean_of_a_loss_of_ours_is_that_loss(metric: Any) -> None:
    loss = get_loss(metric())
    assert loss is SAME[metric]
    assert get_loss(metric) is loss
    mean, records = metric(), NUMBERS if issubclass(metric, metrics.MAE | metrics.MSE) else []
    for y, output in records or PROBABILITIES:
        predicted = max(output, key=output.get) if metric is metrics.Accuracy else output
        mean.update(y, predicted)
    ours = [loss(y, output) for y, output in records or PROBABILITIES]
    expected = 1.0 - mean.get() if metric is metrics.Accuracy else mean.get()
    assert sum(ours) / len(ours) == pytest.approx(expected)


class Pinball(metrics.base.MeanMetric, metrics.base.RegressionMetric):
    """A metric of a user's own."""

    def _eval(self, y_true: float, y_pred: float) -> float:
        return max(0.9 * (y_true - y_pred), 0.1 * (y_pred - y_true))


@pytest.mark.parametrize("metric", [metrics.MAPE, metrics.SMAPE, Pinball])
def test_another_mean_is_asked_about_each_record(metric: Any) -> None:
    given = metric()
    given.update(100.0, -100.0)  # what it has seen does not count, and is kept
    before = given.get()
    loss, mean = get_loss(given), metric()
    for y, output in NUMBERS:
        mean.update(y, output)
    losses = [loss(y, output) for y, output in NUMBERS]
    assert sum(losses) / len(losses) == pytest.approx(mean.get())
    assert losses == [pickle.loads(pickle.dumps(loss))(y, output) for y, output in NUMBERS]
    assert given.get() == before
    with pytest.raises(TypeError, match=f"{metric.__name__} needs a number"):
        loss(True, {True: 1.0})


def test_an_explainer_takes_a_metric() -> None:
    for kind in KINDS[:6]:
        explainers = [
            make(kind, Known(), loss=loss) for loss in (metrics.MAE(), metrics.MAE, absolute_error)
        ]
        for x, y in stream(30):
            for explainer in explainers:
                explain(explainer, x, y + 1.0)
        assert state(explainers[0]) == state(explainers[1]) == state(explainers[2])


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (metrics.FBeta, "FBeta needs parameters, so give an object"),
        (metrics.F1, "F1 is no mean of losses.*cross_entropy"),
        (metrics.ROCAUC(), "ROCAUC is no mean"),
        (metrics.RMSE(), "RMSE is no mean.*squared_error"),
        (metrics.RMSLE, "RMSLE is no mean"),
        (metrics.R2(), "R2 is no mean.*squared_error"),
        (metrics.Silhouette(), "Silhouette is no mean"),
        (metrics.MAE() + metrics.MSE(), "Metrics is no mean"),
        (utils.Rolling(metrics.MAE, window_size=9), "window, but here alpha smooths"),
    ],
    ids=str,
)
def test_a_metric_that_is_no_mean_over_records_is_refused(metric: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IncrementalPFI(Known(), ["a"], loss=metric)


def test_a_metric_that_grows_with_success_is_refused() -> None:
    class Hits(Pinball):
        bigger_is_better = True

    with pytest.raises(ValueError, match="Hits grows as predictions get better"):
        get_loss(Hits)
