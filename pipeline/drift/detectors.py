"""Change detectors by name or ``module:Class``, with their parameters."""

import pickle
import random
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from fluxplain.errors import shown
from fluxplain.loading import import_strings

Signal = Literal["increment", "value"]
"""The watched series: each record's contribution to an explanation, or the smoothed explanation."""

OF_NUMBERS = {
    "adwin": "river.drift:ADWIN",
    "kswin": "river.drift:KSWIN",
    "page_hinkley": "river.drift:PageHinkley",
}
"""Detectors of any numbers."""

OF_ERRORS = {
    "ddm": "river.drift.binary:DDM",
    "eddm": "river.drift.binary:EDDM",
    "hddm_a": "river.drift.binary:HDDMA",
    "hddm_w": "river.drift.binary:HDDMW",
}
"""Detectors of errors: 1 where the model was wrong, else 0."""

DETECTORS = OF_NUMBERS | OF_ERRORS
"""Short name → River's class."""

ADWIN_DEFAULTS = {"min_window_length": 50}
"""Defaults of ADWIN (Bifet, Gavaldà 2007) that differ from River's. Its bound is for numbers from
0 to 1: two neighbouring outliers (cross-entropy reaches 34.5) shift the mean of River's 5 numbers
enough for a false alarm at any usual delta, but not the mean of 50."""

Fraction = Annotated[float, Field(gt=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]

LIMITS: dict[str, dict[str, Any]] = {
    "adwin": {
        "clock": Count,
        "max_buckets": Annotated[int, Field(ge=2, le=1_000)],
        "min_window_length": Count,
    },
    "kswin": {
        "alpha": Fraction,
        "window_size": Annotated[int, Field(ge=4, le=100_000)],
        "stat_size": Annotated[int, Field(ge=2, le=50_000)],
    },
    "page_hinkley": {
        "min_instances": Count,
        "delta": Annotated[float, Field(ge=0.0, allow_inf_nan=False)],
        "threshold": Positive,
        "alpha": Annotated[float, Field(gt=0.0, le=1.0)],
        "mode": Literal["up", "down", "both"],
    },
    "ddm": {"warm_start": Count, "drift_threshold": Positive},
    "eddm": {"warm_start": Count, "beta": Annotated[float, Field(gt=0.0, le=0.95)]},
    "hddm_a": {"drift_confidence": Fraction, "two_sided_test": bool},
    "hddm_w": {"drift_confidence": Fraction, "two_sided_test": bool, "lambda_val": Fraction},
}
"""Short name → its parameters with their types and limits, which River's signatures lack. River's
further parameters have no effect on alarms. Defaults are River's."""


@dataclass(frozen=True, slots=True)
class DetectorSettings:
    """A signal's detector; ``parameters`` override the defaults of the detector's class."""

    signal: Signal
    detector: str
    parameters: dict[str, Any]

    def make(self, seed: str) -> Any:
        """Return a new detector; the seed determines its random numbers, if any."""
        kind = import_strings.load(DETECTORS.get(self.detector, self.detector))
        given = dict(self.parameters)
        if "seed" in import_strings.parameters(kind):
            given.setdefault("seed", random.Random(seed).getrandbits(32))
        return kind(**given)

    def check(self, *, has_errors: bool) -> None:
        """Raise ``ValueError`` if the user's class cannot watch numbers, or errors (1 or 0)."""
        if self.detector in DETECTORS:
            return
        name = f"detector = {self.detector!r}"
        try:
            detector = self.make("")
            pickle.dumps(detector)  # as in a checkpoint
        except Exception as error:  # a user's class may raise anything
            raise ValueError(
                f"{name} with params = {self.parameters} failed: {type(error).__name__}: {error}"
            ) from error
        if not (
            callable(getattr(detector, "update", None)) and hasattr(detector, "drift_detected")
        ):
            raise ValueError(f"{name} must have update(x) and drift_detected, as River's have")
        kinds = {each.__name__ for each in type(detector).__mro__}
        if "FHDDM" in kinds:
            raise ValueError(f"{name} reports when errors fall, so when the model got better")
        if "BinaryDriftDetector" in kinds and not has_errors:
            raise ValueError(
                f"{name} takes errors (1 or 0): only the loss has them, with explain.loss = "
                "'zero_one'"
            )


def check_parameters(name: str, params: dict[str, Any]) -> None:
    """Raise ``ValueError``, which names the parameter, for invalid parameters of a short name."""
    if name not in LIMITS:
        return
    for key, value in params.items():
        if name == "adwin" and key in {"delta", "grace_period"}:
            raise ValueError(f"{key} belongs next to params, not inside")
        if key not in LIMITS[name]:
            allowed = ", ".join(LIMITS[name])
            raise ValueError(f"{key} is not a parameter of {name!r}; allowed here: {allowed}")
        try:
            TypeAdapter(LIMITS[name][key]).validate_python(value, strict=True)
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"]
            raise ValueError(f"{key} is {shown(value)}: {message}") from None
    window, part = params.get("window_size", 100), params.get("stat_size", 30)
    if name == "kswin" and 2 * part > window:
        raise ValueError(f"stat_size is {part}, but must be at most half of window_size, {window}")
