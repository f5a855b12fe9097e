"""One run of the case study: the model, and what the monitors find."""

from typing import Any, NamedTuple

import numpy as np

from tests.measure.case_study.arms import Alarms, alarms_of
from tests.measure.case_study.payments import Fault, payments
from tests.measure.experiments.drift_streams import logistic
from tests.measure.late_labels import signals


class Plan(NamedTuple):
    """Numbers of payments.

    The model has learned ``pretraining`` ones with their labels at once. Then ``records`` are
    watched, with labels that come ``delay`` payments late. The fault ``begins`` and ``ends`` at
    payments counted from there.
    """

    pretraining: int = 5_000
    records: int = 10_000
    begins: int = 3_000
    ends: int = 7_000
    delay: int = 1_000


class Found(NamedTuple):
    """The alarms of each arm, and the shares of right predictions in ``accuracy_places``."""

    alarms: Alarms
    accuracy: list[float]


def run(plan: Plan, fault: Fault, seed: int) -> Found:
    """Run the model and all monitors on the same payments."""
    end = plan.pretraining + plan.records
    begins, ends = plan.pretraining + plan.begins, plan.pretraining + plan.ends
    all_ = payments(end, fault, begins, ends, seed)
    model = logistic(seed)
    for x, y in all_[: plan.pretraining]:
        model.learn_one(x, y)
    watched_payments = all_[plan.pretraining :]
    watched = signals(model, watched_payments, delay=plan.delay, seed=seed)
    return Found(alarms_of(watched, watched_payments), _accuracy(plan, watched.errors))


def accuracy_places(plan: Plan) -> list[tuple[int, int]]:
    """Return where accuracy is measured: before the fault, in each part of it, and right after.

    A part is as long as the labels' delay.
    """
    length = plan.delay
    parts = [(a, a + length) for a in range(plan.begins, plan.ends, length)]
    return [(0, plan.begins), *parts, (plan.ends, plan.ends + length)]


def _accuracy(plan: Plan, errors: Any) -> list[float]:
    return [1.0 - float(np.mean(errors[a:b])) for a, b in accuracy_places(plan)]
