"""The table ``[drift]``, and those in it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from fluxplain.config.base import Section, is_reference, meant, with_tables
from fluxplain.drift import detectors
from fluxplain.schemas.methods import METHODS, WATCHED, Watched

ADWIN_DELTA, ADWIN_GRACE_PERIOD = 2e-3, 10  # River's

_NAMES = {reference: name for name, reference in detectors.DETECTORS.items()}


def _name(value: str, names: Mapping[str, str]) -> str:
    value = _NAMES.get(value, value)
    if value in names or (value not in detectors.DETECTORS and is_reference(value)):
        return value
    allowed = ", ".join(map(repr, names))
    raise ValueError(f"must be {allowed} or 'module:Class'{meant(value, names)}")


def _schema(names: Mapping[str, str]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"enum": [*names]}, {"const": "module:Class"}]})


OfNumbers = Annotated[
    str, AfterValidator(lambda n: _name(n, detectors.OF_NUMBERS)), _schema(detectors.OF_NUMBERS)
]
OfErrors = Annotated[
    str, AfterValidator(lambda n: _name(n, detectors.DETECTORS)), _schema(detectors.DETECTORS)
]
Delta = Annotated[float, Field(gt=0.0, lt=1.0)]
GracePeriod = Annotated[int, Field(ge=1)]
FalseAlarms = Annotated[float, Field(ge=1e-6, le=100.0)]


class DistributionDriftSettings(Section):
    """Change detection over the values of each feature, or the predictions: always by `"glr"`."""

    enabled: bool = True
    """Whether to detect changes."""


class LossDriftSettings(DistributionDriftSettings):
    """Change detection over the model's loss and errors; keys left out are taken from `[drift]`."""

    detector: OfErrors | None = None
    """The detector. `"ddm"` and the ones after it take errors, so they need `explain.loss` =
    `"zero_one"`."""
    delta: Delta | None = None
    """ADWIN's `delta`."""
    grace_period: GracePeriod | None = None
    """ADWIN's `grace_period`."""
    params: dict[str, Any] | None = None
    """The detector's parameters; they replace all of `[drift.params]`."""


class MethodDriftSettings(LossDriftSettings):
    """Change detection over one method's explanations; keys left out are taken from `[drift]`."""

    detector: OfNumbers | None = None
    """The detector."""
    signal: detectors.Signal | None = None
    """What to watch: each record's contribution (`"increment"`), or the smoothed value (`"value"`).
    """


class DriftSettings(Section):
    """Change detection over the explanations, the loss, the inputs and the predictions."""

    signal: detectors.Signal = "increment"
    """What to watch: each record's contribution (`"increment"`), or the smoothed value (`"value"`).
    """
    false_alarms: FalseAlarms = 1.0
    """Mean number of false alarms of `"glr"` in 100,000 records of a stream that does not change:
    this many of all features, methods, the loss and the errors together, and as many of all inputs
    and the predictions together. Fewer means later detections. There are more if increments vary in
    rare bursts, or in cycles of more than 500 records."""
    min_effect: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.05
    """Smaller changes are not published, but add up. The size of a change is its share of the
    importance of all features by this method; for the loss and the errors, its share of the larger
    mean; for inputs and predictions, the total variation distance of two normal distributions."""
    follow_up: Annotated[int, Field(ge=1, le=10**9)] = 1000
    """After so many observations, a second record says whether a change has lasted."""
    causes: bool = True
    """Whether to compare the model with older ones on some observations, so that a change can be
    traced to the data or the model, and a region found. It keeps two copies of the model, and up to
    two more while the outcome of a change of the loss is not known."""
    detector: OfNumbers = "glr"
    """`"glr"` compares means (generalized likelihood ratio); one of River's detectors (`"kswin"` is
    slow); or your own class with River's interface (`update` and `drift_detected`)."""
    delta: Delta | None = None
    """ADWIN's confidence parameter, by default 0.002: a smaller one gives fewer false alarms and
    later detections."""
    grace_period: GracePeriod | None = None
    """Values before ADWIN's first alarm, by default 10. ADWIN needs at least 2 ·
    `min_window_length` anyway."""
    params: dict[str, Any] = {}
    """The other parameters of River's detectors, such as `clock = 1`. Their defaults are River's,
    except ADWIN's `min_window_length` = 50."""
    incident_window: Annotated[int, Field(ge=0, le=10**9)] = 1000
    """Changes of a stream within this many observations form one incident."""
    loss: LossDriftSettings = LossDriftSettings()
    input: DistributionDriftSettings = DistributionDriftSettings()
    output: DistributionDriftSettings = DistributionDriftSettings()

    def check_parameters(self) -> None:
        """Raise ``ValueError`` for a parameter that its detector does not take; loads River."""
        tables = {f"{method}.": self._own(method) for method in WATCHED}
        every: dict[str, DriftSettings | LossDriftSettings] = {"": self, **tables}
        for prefix, table in every.items():
            try:
                detectors.check_parameters(table.detector or self.detector, table.params or {})
            except ValueError as error:
                raise ValueError(f"{prefix}params.{error}") from None

    @model_validator(mode="after")
    def _parameters_fit(self) -> Self:
        tables = {f"{method}.": self._own(method) for method in WATCHED}
        used = {own.detector or self.detector for own in tables.values()}
        for prefix, own in tables.items():
            _check_adwin(own, prefix, own.detector or self.detector)
        if "adwin" not in used:
            _check_adwin(self, "", self.detector)
        is_default = self.false_alarms == type(self).model_fields["false_alarms"].default
        if self.input.enabled or self.output.enabled:
            used.add("glr")
        if not is_default and "glr" not in used:
            raise ValueError(
                f"false_alarms is {self.false_alarms}, but it belongs to the detector 'glr', not "
                f"to {self.detector!r}"
            )
        return self

    def of(self, method: Watched, series: int = 1) -> detectors.DetectorSettings | None:
        """Return the detector settings of a method or the loss; None if it is not watched.

        ``series`` is the number of detectors of a stream, which share its false alarms.
        """
        own = self._own(method)
        if not own.enabled:
            return None
        # the loss is never smoothed
        signal: detectors.Signal = "increment"
        if isinstance(own, MethodDriftSettings):
            signal = own.signal or self.signal
        detector = own.detector or self.detector
        common = self.params if detector == self.detector else {}
        parameters = common if own.params is None else own.params
        if detector == "adwin":
            delta = own.delta or self.delta or ADWIN_DELTA
            grace_period = own.grace_period or self.grace_period or ADWIN_GRACE_PERIOD
            adwin = {**detectors.ADWIN_DEFAULTS, "delta": delta, "grace_period": grace_period}
            parameters = {**adwin, **parameters}
        elif detector == "glr":
            caution = 1.0 if method == "loss" else METHODS[method].caution
            parameters = {"false_alarms": caution * self.false_alarms / series}
        return detectors.DetectorSettings(signal, detector, parameters)

    def _own(self, method: Watched) -> LossDriftSettings:
        own: LossDriftSettings = getattr(self, method)
        return own


def _check_adwin(table: DriftSettings | LossDriftSettings, prefix: str, detector: str) -> None:
    for key in ("delta", "grace_period"):
        value = getattr(table, key)
        if value is not None and detector != "adwin":
            raise ValueError(
                f"{prefix}{key} is {value}, but it belongs to the detector 'adwin', not to "
                f"{detector!r}: see params"
            )


if not TYPE_CHECKING:
    DriftSettings = with_tables(DriftSettings, dict.fromkeys(METHODS, MethodDriftSettings))
