"""The monitors that are compared; all watch the same run."""

from collections.abc import Mapping, Sequence

import numpy as np
from river.drift import ADWIN

from fluxplain.evaluate.encoding import Floats
from tests.measure.case_study.payments import Payment
from tests.measure.experiments import drift_windows as windows
from tests.measure.experiments.drift_runs import WARM_UP
from tests.measure.late_labels import Signals, default_alarms

ARMS = {
    "errors": "ADWIN, wrong predictions",
    "errors_rise": "ADWIN, wrong predictions, rises only",
    "loss": "ADWIN, loss",
    "psi": "PSI, inputs",
    "ks": "KS, inputs",
    "label": "windows of input × label",
    "shap": "windows of mean absolute SHAP",
    "ours_ishap": "ours, iSHAP",
    "ours_ipdp": "ours, iPDP",
    "ours_ipfi": "ours, iPFI",
    "ours_isage": "ours, iSAGE",
    "ours_loss": "ours, loss",
}

OURS = tuple(arm for arm in ARMS if arm.startswith("ours"))

Alarms = dict[str, dict[str, list[int]]]
"""Arm → feature → payments that had arrived at each alarm; without a feature it is ``""``."""


def alarms_of(watched: Signals, payments: Sequence[Payment]) -> Alarms:
    """Return what each arm alarms at."""
    delay, labelled = watched.delay, payments[: len(payments) - watched.delay]
    inputs = {f: np.array([x[f] for x, _ in payments]) for f in payments[0][0]}
    known = {f: each[: len(labelled)] for f, each in inputs.items()}
    losses = watched.increments["loss"][""]
    sizes = {f: each[WARM_UP:] for f, each in watched.increments["ishap"].items()}
    found: Alarms = {
        "errors": {"": adwin(watched.errors)},
        "errors_rise": {"": adwin(watched.errors, rises_only=True)},
        "loss": {"": adwin(losses)},
        "psi": windows.alarms(windows.psi, inputs),
        "ks": windows.alarms(windows.ks, inputs),
        "label": windows.alarms(windows.mean, products(known, [y for _, y in labelled])),
        "shap": windows.alarms(windows.mean, sizes),
    }
    begins = dict.fromkeys(("errors", "errors_rise", "loss", "label"), delay) | {"shap": WARM_UP}
    shifted = {
        arm: {f: [t + begins.get(arm, 0) for t in places] for f, places in features.items()}
        for arm, features in found.items()
    }
    ours = default_alarms(watched)
    return shifted | {arm: ours[arm.removeprefix("ours_")] for arm in OURS}


def adwin(numbers: Floats, *, rises_only: bool = False) -> list[int]:
    """Return where ADWIN, with River's defaults, alarms; or where the mean has risen then."""
    detector, found = ADWIN(), []
    for t, number in enumerate(numbers.tolist()):
        before = detector.estimation
        detector.update(number)
        if detector.drift_detected and (not rises_only or detector.estimation > before):
            found.append(t)
    return found


def products(inputs: Mapping[str, Floats], labels: Sequence[bool]) -> dict[str, Floats]:
    """Return inputs times labels, both centred by the first window: their means are covariances."""
    first, ys = slice(0, windows.REFERENCE), np.array(labels, float)
    centred = ys - ys[first].mean()
    return {f: (each - each[first].mean()) * centred for f, each in inputs.items()}
