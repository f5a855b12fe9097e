"""The table ``[explain]``, and those in it."""

import json
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from fluxplain.config.base import Name, Section, Share, Size, with_tables, wrong
from fluxplain.explain.grids import MOST_CURVES, GridKind, GridSettings, StorageKind, check_pairs
from fluxplain.explain.parameter_checks import ALL
from fluxplain.schemas.methods import METHODS, Method

MOST_POINTS = 10_000
"""Most points of all curves in a record, or of a surface; with two classes half a message."""

MINUS_SCORE = "minus_score"
"""The loss without labels; see :func:`fluxplain.models.minus_score`."""

AUTO = "auto"
"""The loss that suits the type of the label."""

MethodNames = Annotated[list[Method], Field(min_length=1)]


def _inner_samples(value: object) -> object:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)  # from the environment
    if value == ALL or (type(value) is int and 1 <= value <= 1000):
        return value
    raise ValueError(f"must be an integer from 1 to 1,000, or {ALL!r}")


InnerSamples = Annotated[
    Any,
    AfterValidator(_inner_samples),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1000}, {"const": ALL}]}),
]


def _alpha(value: Any) -> Any:
    if isinstance(value, str):  # from the environment
        with suppress(ValueError):
            value = json.loads(value)
    rates = value if isinstance(value, list) else [value]
    fit = [rate for rate in rates if type(rate) in {int, float} and 0.0 < rate <= 1.0]
    if not rates or len(set(fit)) < len(rates):
        raise ValueError(
            "must be a number above 0 and at most 1, or a list of such numbers, each once"
        )
    return float(fit[0]) if len(fit) == 1 else [float(rate) for rate in fit]


_RATE = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}

Alpha = Annotated[
    Any,
    AfterValidator(_alpha),
    WithJsonSchema({"anyOf": [_RATE, {"type": "array", "items": _RATE}]}),
]


class ReservoirSettings(Section):
    """What methods with a reservoir share."""

    reservoir_size: Size = 100
    """Past observations to keep as sources of replacements. Where records resemble the ones before,
    up to four times as many wait to enter."""
    warm_up: Size | None = None
    """Observations before the first explanation; by default, and at most, `reservoir_size`."""

    @model_validator(mode="after")
    def _is_warm_when_full(self) -> Self:
        if self.warm_up is not None and self.warm_up > self.reservoir_size:
            reason = f"must be at most the reservoir_size, {self.reservoir_size}"
            raise wrong("warm_up", self.warm_up, reason)
        return self


class SAGESettings(ReservoirSettings):
    """iSAGE: each feature's share of the loss reduction."""

    imputer: Literal["interventional", "product", "observational"] = "interventional"
    """How to replace or hide features: by values of one past observation (`"interventional"`), of a
    separate one for each feature (`"product"`), or by values that fit the other features
    (`"observational"`)."""
    inner_samples: InnerSamples = 5
    """Draws for each record. A single one biases iSAGE and leaves its errors unknown; several bias
    it only with the loss `zero_one`. `"all"` uses the whole reservoir, for the imputer
    `"interventional"` only."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.inner_samples == ALL and self.imputer != "interventional":
            reason = f"must be a number for the imputer {self.imputer!r}"
            raise wrong("inner_samples", self.inner_samples, reason)
        return self


class PFISettings(SAGESettings):
    """iPFI: how much the loss relies on each feature."""

    inner_samples: InnerSamples = 1
    """Draws for each record; `"all"` uses the whole reservoir, for the imputer `"interventional"`
    only."""
    sampler: Literal["geometric", "uniform", "window"] = "geometric"
    """Which past observations serve as replacements: mostly recent ones (`"geometric"`), all with
    the same probability (`"uniform"`), or the last ones (`"window"`). The imputer
    `"observational"` has only `"geometric"`."""

    @model_validator(mode="after")
    def _sampler_fits(self) -> Self:
        if self.imputer == "observational" and self.sampler != "geometric":
            reason = "must be 'geometric' for the imputer 'observational'"
            raise wrong("sampler", self.sampler, reason)
        return self


class PDPSettings(Section):
    """iPDP: each feature's effect on the prediction, as a curve."""

    grid: GridKind = "quantile-range"
    """Evaluation points of a numeric feature: evenly spaced from the 5 % to the 95 % quantile of
    recent values, wider where they resemble the ones before (`"quantile-range"`), or from the
    smallest to the largest of the last values (`"range"`); or the quantiles themselves, at levels
    from 5 % to 95 % (`"quantiles"`). Those of a categorical feature are the categories in its
    store."""
    grid_size: Annotated[int, Field(ge=2, le=1000)] = 10
    """Evaluation points of a numeric feature for each record; with `pairs` at most 100. A curve has
    up to four times as many points: those evaluated for recent records."""
    storage: StorageKind = "frequency"
    """Eviction policy of the value store: the oldest value (`"frequency"`), or a random one
    weighted by age (`"age-weighted"`). With the grid `"range"` only categorical features have a
    store."""
    storage_size: Size = 100
    """Recent values to keep of each feature."""
    window: Size | None = None
    """How many of the last values the grid `"range"` spans; for that grid only. By default
    `storage_size`."""
    entrance_probability: Share = 1.0
    """Probability p to store a value: the store then covers about the last `storage_size` / p
    values. Not for numeric features with the grid `"range"`."""
    warm_up: Size | None = None
    """Values before the first curve; by default and at most `storage_size`, or a smaller
    `window`."""
    ice: Annotated[int, Field(ge=0, le=MOST_CURVES)] = 0
    """ICE curves in each record, of the last observations; `grid_size` · (`ice` + 1) may be at most
    10,000."""
    pairs: list[tuple[Name, Name]] = []
    """Pairs of different features to explain together as well, such as `[["age", "salary"]]`. Each
    has `grid_size`² points, at most 10,000; a categorical feature has up to `storage_size`."""

    @model_validator(mode="after")
    def _grid_fits(self) -> Self:
        self.grid_settings()
        if self.grid_size * (1 + self.ice) > MOST_POINTS:
            most = f"{MOST_POINTS // self.grid_size - 1} with grid_size = {self.grid_size}"
            raise wrong("ice", self.ice, f"must be at most {most}: more does not fit a message")
        if self.pairs:
            check_pairs(self.pairs)
        return self

    def grid_settings(self) -> GridSettings:
        """Return the settings that choose the evaluation points."""
        same = {"storage", "storage_size", "window", "entrance_probability", "warm_up"}
        return GridSettings(kind=self.grid, size=self.grid_size, **self.model_dump(include=same))


class InteractionSettings(ReservoirSettings):
    """Interactions: which features act together. Each record takes 1.5 inputs for each feature."""


class SHAPSettings(ReservoirSettings):
    """iSHAP: how far each feature moves the output."""

    inner_samples: Annotated[int, Field(ge=1, le=1000)] = 3
    """Draws for each record; each takes twice as many inputs as there are features."""


class ExplainSettings(Section):
    """Methods, loss and smoothing of the explanations."""

    methods: MethodNames = ["ipfi", "isage", "ipdp"]
    """The methods to compute."""
    loss: str = AUTO
    """The loss: for classes `"cross_entropy"`, `"zero_one"` or `"brier"`; for regression
    `"squared_error"` or `"absolute_error"`; without labels `"minus_score"`; or your own,
    `"module:function"`. `"auto"` takes the first one for the type of the label."""
    alpha: Alpha = 0.001
    """Smoothing rate, or a list of rates. 2 / (N + 1) averages over about the last N records."""
    emit_every: Size = 10
    """Observations between two explanation records of a feature and method; each record holds all
    increments since the previous one."""
    every: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Explain one of this many consecutive observations, chosen at random. The model learns from
    all."""
    budget_ms: Annotated[float, Field(gt=0.0, le=60_000.0)] | None = None
    """Average milliseconds that the model role may take for an observation; above that it explains
    fewer observations. By default there is no limit. Needs `control.topic`."""
    file: Path | None = None
    """Learned explanations to start from, written by `fluxplain model export` with `--explanations`
    for the same features and explanations. Unpickling the file runs its code."""
    features: dict[Name, MethodNames] = {}
    """Feature or group → the methods that explain it, out of `methods`; by default all."""
    groups: dict[Name, Annotated[list[Name], Field(min_length=1)]] = {}
    """Name of a group → the features that iPFI and iSAGE explain as one. A feature can be in one
    group only. iPDP still explains single features."""

    @property
    def alphas(self) -> list[float]:
        """The smoothing rates; changes are detected on the explanations with the first."""
        rates: list[float] = self.alpha if isinstance(self.alpha, list) else [self.alpha]
        return rates

    def of(self, method: Method) -> Any:
        """Return the table of a method."""
        return getattr(self, method)


if not TYPE_CHECKING:
    ExplainSettings = with_tables(
        ExplainSettings, {method: resolve_name(info.settings) for method, info in METHODS.items()}
    )
