"""River's change detectors, by name, with their parameters and what these may be."""

import random
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Signal = Literal["increment", "value"]
"""What is watched: what each record adds to an explanation, or the smoothed explanation."""

OfNumbers = Literal["adwin", "kswin", "page_hinkley"]
"""Detectors that take any numbers."""

OfErrors = Literal["ddm", "eddm", "hddm_a", "hddm_w"]
"""Detectors that take errors: 1 where the model was wrong, else 0.

River's FHDDM is none of them: it reports that its input falls, which of errors means that the model
got better.
"""

Share = Annotated[float, Field(gt=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class Parameters(BaseModel):
    """The parameters of a detector; unknown ones are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ADWINParameters(Parameters):
    """Of ADWIN (Bifet, Gavaldà 2007), besides its delta and grace period.

    ADWIN's bound is for numbers between 0 and 1. Two outliers close to each other, such as
    cross-entropy has up to 34.5, shift the mean of River's 5 enough to alarm at any usual delta;
    they do not shift that of 50.
    """

    clock: Count = 32
    max_buckets: Annotated[int, Field(ge=2, le=1_000)] = 5
    min_window_length: Count = 50


class KSWINParameters(Parameters):
    """Of KSWIN (Raab, Heusinger, Schleif 2020): a Kolmogorov-Smirnov test of two samples."""

    alpha: Share = 0.005
    window_size: Annotated[int, Field(ge=4, le=100_000)] = 100
    stat_size: Annotated[int, Field(ge=2, le=50_000)] = 30

    @model_validator(mode="after")
    def _samples_fit(self) -> Self:
        if 2 * self.stat_size > self.window_size:
            raise ValueError(
                f"stat_size is {self.stat_size}, but must be at most half of window_size, "
                f"{self.window_size}"
            )
        return self


class PageHinkleyParameters(Parameters):
    """Of the Page-Hinkley test (Page 1954)."""

    min_instances: Count = 30
    delta: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.005
    threshold: Positive = 50.0
    alpha: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9999
    mode: Literal["up", "down", "both"] = "both"


class DDMParameters(Parameters):
    """Of DDM (Gama, Medas, Castillo, Rodrigues 2004)."""

    warm_start: Count = 30
    drift_threshold: Positive = 3.0


class EDDMParameters(Parameters):
    """Of EDDM (Baena-García et al. 2006)."""

    warm_start: Count = 30
    beta: Annotated[float, Field(gt=0.0, le=0.95)] = 0.9


class HDDMAParameters(Parameters):
    """Of HDDM with means (Frías-Blanco et al. 2014)."""

    drift_confidence: Share = 0.001
    two_sided_test: bool = False


class HDDMWParameters(HDDMAParameters):
    """Of HDDM with weighted means (Frías-Blanco et al. 2014)."""

    lambda_val: Share = 0.05


DETECTORS: dict[OfNumbers | OfErrors, tuple[str, type[Parameters]]] = {
    "adwin": ("river.drift.ADWIN", ADWINParameters),
    "kswin": ("river.drift.KSWIN", KSWINParameters),
    "page_hinkley": ("river.drift.PageHinkley", PageHinkleyParameters),
    "ddm": ("river.drift.binary.DDM", DDMParameters),
    "eddm": ("river.drift.binary.EDDM", EDDMParameters),
    "hddm_a": ("river.drift.binary.HDDMA", HDDMAParameters),
    "hddm_w": ("river.drift.binary.HDDMW", HDDMWParameters),
}
"""Name → where River has it, and its parameters: River's defaults, but ADWIN's smallest window."""


def river_class(name: OfNumbers | OfErrors) -> Any:
    """Return River's class of a detector; River is imported only by who makes one."""
    path, _ = DETECTORS[name]
    module, _, kind = path.rpartition(".")
    return getattr(import_module(module), kind)


@dataclass(frozen=True, slots=True)
class DetectorSettings:
    """What is watched, and by which detector.

    Attributes
    ----------
    signal
        What is watched.
    detector
        Name of the detector.
    parameters
        What River's class is made with; of others it takes its defaults.
    """

    signal: Signal
    detector: OfNumbers | OfErrors
    parameters: dict[str, Any]

    def make(self, seed: str) -> Any:
        """Return a new detector; what is random about it (of KSWIN) follows from the seed."""
        seeded = {}
        if self.detector == "kswin":
            seeded["seed"] = random.Random(seed).getrandbits(32)
        return river_class(self.detector)(**self.parameters, **seeded)
