"""Change detectors by name or ``module:Class``, with their parameters."""

import inspect
import pickle
import random
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from fluxplain.errors import shown
from fluxplain.loading import import_strings
from fluxplain.spelling import hint

Signal = Literal["increment", "value"]
"""The watched series: each record's contribution to an explanation, or the smoothed explanation."""

OF_NUMBERS = {
    "glr": "fluxplain.drift.glr:GLR",
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
"""Short name → class: ours, and River's."""

ADWIN_DEFAULTS = {"min_window_length": 50}
"""Defaults of ADWIN (Bifet, Gavaldà 2007) that differ from River's. Its bound is for numbers from
0 to 1: two neighbouring outliers (cross-entropy reaches 34.5) shift the mean of River's 5 numbers
enough for a false alarm at any usual delta, but not the mean of 50."""

LARGEST = 100_000
"""Largest count or size; a window of KSWIN keeps so many numbers, about 3 MB."""

Count = Annotated[int, Field(ge=1, le=LARGEST)]
Amount = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0.0, lt=1.0)]

KINDS: dict[str, Any] = {
    # ADWIN keeps so many buckets of each size, and looks at all of them
    "max_buckets": Annotated[int, Field(ge=1, le=1_000)],
    "mode": Literal["up", "down", "both"],
    "stat_size": Annotated[int, Field(ge=2, le=LARGEST)],
    **dict.fromkeys(("threshold", "drift_threshold"), Positive),
    **dict.fromkeys(("alpha", "drift_confidence", "lambda_val"), Share),
    "eddm.beta": Annotated[float, Field(gt=0.0, le=0.95)],  # its alpha
    "page_hinkley.alpha": Annotated[float, Field(gt=0.0, le=1.0)],
}
"""Parameter, of one detector or of all → its type, where River's default allows too much."""

WITHOUT_EFFECT = {"warning_threshold", "warning_confidence", "eddm.alpha"}
"""Parameters that change River's warnings only, not its alarms."""

BESIDE = {"adwin": {"delta", "grace_period"}, "glr": {"false_alarms"}}
"""Detector → parameters that are keys of ``[drift]`` itself."""


@dataclass(frozen=True, slots=True)
class DetectorSettings:
    """A signal's detector; ``parameters`` override the defaults of the detector's class."""

    signal: Signal | Literal["trend", "error", "mean", "spread", "share"]
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
        """Raise ``ValueError`` if the detector cannot watch numbers, or errors (1 or 0)."""
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


def parameters(name: str) -> dict[str, tuple[Any, Any]]:
    """Return the parameters of a short name with default and type, by River's signature."""
    beside = dict.fromkeys(BESIDE.get(name, ()))
    defaults = {**beside, **ADWIN_DEFAULTS} if name == "adwin" else beside
    signature = inspect.signature(import_strings.load(DETECTORS[name])).parameters
    known = {key: defaults.get(key, each.default) for key, each in signature.items()}
    types = {bool: bool, int: Count, float: Amount, str: str}
    return {
        key: (default, KINDS.get(f"{name}.{key}", KINDS.get(key, types[type(default)])))
        for key, default in known.items()
        if default is not None and not {key, f"{name}.{key}"} & WITHOUT_EFFECT
    }


def check_parameters(name: str, params: dict[str, Any]) -> None:
    """Raise ``ValueError``, which names the parameter, for invalid parameters of a short name."""
    if not params or name not in DETECTORS:
        return
    allowed = parameters(name)
    for key, value in params.items():
        if key in BESIDE.get(name, ()):
            raise ValueError(f"{key} belongs next to params, not inside")
        if key not in allowed:
            names = ", ".join(allowed) or "nothing"
            raise ValueError(
                f"{key} is not a parameter of {name!r}; allowed here: {names}{hint(key, allowed)}"
            )
        try:
            TypeAdapter(allowed[key][1]).validate_python(value, strict=True)
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"]
            raise ValueError(f"{key} is {shown(value)}: {message}") from None
    window, part = params.get("window_size", 100), params.get("stat_size", 30)
    if name == "kswin" and 2 * part > window:
        raise ValueError(f"stat_size is {part}, but must be at most half of window_size, {window}")
    try:
        import_strings.load(DETECTORS[name])(**params)
    except ValueError as error:
        given = ", ".join(f"{key} is {shown(value)}" for key, value in params.items())
        raise ValueError(f"{given}: {error}") from None
