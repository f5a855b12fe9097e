"""Settings: one TOML file plus environment variables, validated as a whole.

An environment variable overrides the file: ``FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS`` is the key
``kafka.bootstrap_servers``.
"""

import hashlib
import inspect
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)
from pydantic import model_validator as validates_model
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from pipeline import warm_start
from pipeline.alerts.settings import AlertSettings
from pipeline.detectors import (
    DETECTORS,
    ADWINParameters,
    DetectorSettings,
    OfErrors,
    OfNumbers,
    Signal,
)
from pipeline.evaluate import Kind as EvaluatorKind
from pipeline.explain.checks import ALL
from pipeline.explain.grids import MOST_CURVES, GridKind, GridSettings, StorageKind, check_pairs
from pipeline.explain.players import Players
from pipeline.kafka.registry.settings import RegistrySettings
from pipeline.kafka.security import SecuritySettings, read_secret
from pipeline.overrides import Own, Partition, merged, refused
from pipeline.parts import Part, Role
from pipeline.references import load as load_reference
from pipeline.references import parameters
from schemas.change import Watched
from schemas.explanation import Method
from schemas.numbers import is_moderate
from schemas.record import stream_name

if TYPE_CHECKING:
    from pipeline.explain.losses import Loss

ENV_PREFIX = "FLUXPLAIN_"
EMBEDDED = "embedded"

MAX_VERSION = 200
"""Characters of a model's name."""

MAX_SHOWN = 300
"""Most characters of a wrong value in an error."""

MOST_POINTS = 10_000
"""Points of all curves in a record, or of a surface: with two classes they fill half a message."""

KEY_LENGTH = 32
"""Fewest characters of the key that signs checkpoints."""

MINUS_SCORE = "minus_score"
"""The loss where there are no labels; see :func:`pipeline.models.minus_score`."""

Asker = Role | Literal["reader"]
"""Whose process reads the settings, if it does not use all that they refer to."""

FeatureType = Literal["numeric", "categorical"]
LabelType = Literal["boolean", "integer", "string", "number", "none"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=249)]
Size = Annotated[int, Field(ge=1, le=1_000_000)]


def _reference(value: str) -> str:
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", value):
        return value
    raise ValueError("must be 'module:name', as 'river.tree:HoeffdingTreeClassifier'")


Reference = Annotated[str, AfterValidator(_reference)]


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
"""One smoothing rate, or several."""


class ConfigError(ValueError):
    """A setting that cannot be used. The message names the key, the value and what is allowed."""


class Section(BaseModel):
    """A table of the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSettings(Section, SecuritySettings):
    """How to reach Kafka."""

    bootstrap_servers: str = Field(
        "localhost:9092",
        min_length=1,
        description='Your brokers, as `host:port`, comma-separated; or `"embedded"`: the one that '
        "`fluxplain up --embedded` or `fluxplain broker` runs on this machine.",
    )
    group_instance_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]+$",
        max_length=200,
        description="Makes workers static members of their groups, so that a quick restart moves "
        "no partitions. Another one for each worker of a role.",
    )

    @validates_model(mode="after")
    def _embedded_is_open(self) -> Self:
        if self.bootstrap_servers == EMBEDDED and self.security_protocol != "PLAINTEXT":
            raise ValueError(
                f"security_protocol is {self.security_protocol!r}, but bootstrap_servers is "
                f"{EMBEDDED!r}: the embedded broker has only 'PLAINTEXT'"
            )
        return self


class TopicSettings(Section):
    """How topics are named and created."""

    prefix: str = Field(
        "fluxplain.",
        pattern=r"^[A-Za-z0-9._-]*$",
        max_length=200,
        description="Before the name of each topic and consumer group.",
    )
    partitions: int = Field(
        4, ge=1, le=1000, description="Of each topic but `features`, when created."
    )
    features_partitions: int = Field(
        1, ge=1, le=1000, description="Of `features`, when created: one model each."
    )
    replication: int = Field(
        1,
        ge=1,
        le=10,
        description="Copies of each message: 3 on a cluster. From 3 on, `fluxplain topics create` "
        "has two of them written before a message counts (`min.insync.replicas` = 2).",
    )
    retention_hours: float = Field(
        168.0, gt=0.0, description="How long messages are kept. Checkpoints stay."
    )


class LabelSettings(Section):
    """What is predicted."""

    type: LabelType = Field(
        "boolean",
        description='What labels are: `"number"` is regression, `"none"` is for anomaly detectors, '
        "which need no label, the others are classes.",
    )
    column: Name | None = Field(
        None,
        description="Column of a file that holds it, for `fluxplain replay` and `fluxplain "
        "local`; `--label` goes before it.",
    )
    topic: bool = Field(
        False,
        description="Whether labels that come later have a topic of their own, `labels`; else they "
        "stand in `features`.",
    )
    wait: int = Field(
        10_000,
        ge=0,
        le=1_000_000,
        description="Observations for which one with an `id` and without a label waits for it.",
    )
    wait_s: float | None = Field(
        None,
        gt=0.0,
        le=10**9,
        description="Seconds for which it waits, by the time of the messages; by default any.",
    )
    unlabelled: Literal["count", "dead-letter"] = Field(
        "count", description="What becomes of an observation that waited in vain."
    )

    @validates_model(mode="after")
    def _there_is_a_label(self) -> Self:
        if self.type == "none" and self.column is not None:
            raise ValueError(f"column is {self.column!r}, but type is 'none': there is no label")
        if self.type == "none" and self.topic:
            raise ValueError("topic is true, but type is 'none': there is no label")
        return self


MissingPolicy = Literal["dead-letter", "skip", "impute"]


class Missing(Section):
    """What happens where a feature has no value: it is absent, or null."""

    policy: MissingPolicy = Field(
        "dead-letter",
        description="Of all features: the observation goes to dead-letters, or is passed over, or "
        "a value is filled in.",
    )
    features: dict[Name, MissingPolicy] = Field(
        default_factory=dict, description="Feature → its own policy."
    )
    values: dict[Name, bool | int | float | str] = Field(
        default_factory=dict,
        description="Feature → the value to fill in. By default the mean of the feature's values, "
        "smoothed as explanations are; of a categorical one, the most frequent of its last 100.",
    )

    def of(self, feature: str) -> MissingPolicy:
        """Return the policy of a feature."""
        return self.features.get(feature, self.policy)


class ModelSettings(Section):
    """The model that is explained."""

    factory: Reference | None = Field(
        None,
        description="`module:name` of a River class, of `from_river`, `from_sklearn` or "
        "`from_torch` in `pipeline.models`, or of your own function or class.",
    )
    file: Path | None = Field(
        None,
        description="A pickled model to start from, instead of what a factory makes. Unpickling "
        "runs its code.",
    )
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="Its arguments; `seed`, `features`, `label` and `learn` are added if it takes "
        "them.",
    )
    learn: bool = Field(
        True,
        description="Whether it learns; a frozen model predicts and is explained, but never "
        "learns.",
    )
    version: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_VERSION,
        description="Name of the model, told in all that is published of it, until another one is "
        "announced.",
    )
    directory: Path = Field(
        Path(".fluxplain/models"),
        description="Where announced models are, each in a regular file that is called as its "
        "digest. Who can write there can run code here.",
    )
    evaluator: EvaluatorKind = Field(
        "auto",
        description='How the model is asked about changed inputs: `"hoeffding"` follows trees and '
        'ensembles of them, `"linear"` is for linear models, `"batch"` makes one call for all, '
        '`"generic"` one for each; `"auto"` takes the first of these that fits, which `fluxplain '
        "check` names.",
    )
    shards: int = Field(
        1,
        ge=1,
        le=100,
        description="Replicas of the model: each learns everything, and asks its copy about a "
        "share of the features. At most as many as there are features, groups and pairs.",
    )

    @validates_model(mode="after")
    def _comes_from_one(self) -> Self:
        if (self.factory is None) == (self.file is None):
            both = "are both set" if self.file else "are both missing"
            raise ValueError(f"factory and file {both}: give one of them")
        if self.file is not None and self.params:
            raise ValueError("params are for a factory, but file is set: its model has its own")
        return self

    @property
    def origin(self) -> str:
        """The setting that says where the model comes from, for people."""
        return f"model.factory = {self.factory!r}" if self.factory else f"model.file = {self.file}"


Imputer = Literal["interventional", "product", "observational"]
"""What replaces a feature; see :data:`pipeline.explain.sampling.imputers.IMPUTERS`."""

_WARM_UP = (
    "Observations before the first explanation, at most `reservoir_size`; by default as many."
)


class PFISettings(Section):
    """iPFI."""

    imputer: Imputer = Field(
        "interventional",
        description='What replaces a feature: values of one past observation, `"product"`: for '
        'each feature of a separate one, `"observational"`: such as go with the other features.',
    )
    sampler: Literal["geometric", "uniform", "window"] = Field(
        "geometric",
        description="Whether replacements come rather from recent observations, from all alike, or "
        'from the last ones. For the imputer `"observational"` only the first.',
    )
    reservoir_size: Size = Field(100, description="Observations kept to draw from.")
    warm_up: Size | None = Field(None, description=_WARM_UP)
    inner_samples: InnerSamples = Field(
        1,
        description='Draws for each record; `"all"`, for the imputer `"interventional"` only: '
        "the whole reservoir.",
    )


class SAGESettings(Section):
    """iSAGE."""

    imputer: Imputer = Field("interventional", description="What hides features, as for iPFI.")
    reservoir_size: Size = Field(100, description="Observations kept to draw from.")
    warm_up: Size | None = Field(None, description=_WARM_UP)
    inner_samples: InnerSamples = Field(
        5, description='Draws for each record; few bias iSAGE. `"all"` as for iPFI.'
    )


class PDPSettings(Section):
    """iPDP."""

    grid: GridKind = Field(
        "quantile-range",
        description="Where a numeric feature's curve has its points: from the 5 % to the 95 % "
        "quantile of recent values, from the smallest to the largest of the last ones, or at the "
        "quantiles themselves (levels from 5 % to 95 %). A categorical feature has the categories "
        "now in its storage.",
    )
    grid_size: Annotated[int, Field(ge=2, le=1000)] = Field(
        10, description="Points of a numeric feature's curve; with `pairs` at most 100."
    )
    storage: StorageKind = Field(
        "frequency",
        description="Which of the recent values goes for a new one: the oldest, or any, with a "
        'chance in proportion to its age. The grid `"range"` has it for categories only.',
    )
    storage_size: Size = Field(100, description="Recent values kept of each feature.")
    window: Size | None = Field(
        None,
        description='How many last values the grid `"range"` is the range of; only for that. By '
        "default `storage_size`.",
    )
    entrance_probability: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        1.0,
        description="Chance of a value to be stored: the values are those of about the last "
        '`storage_size` / this. Not for numeric features with the grid `"range"`.',
    )
    warm_up: Size | None = Field(
        None,
        description="Values before the first explanation; by default `storage_size`, or `window` "
        "if that is less, and at most that.",
    )
    ice: int = Field(
        0,
        ge=0,
        le=MOST_CURVES,
        description="Curves of the last observations in each record; `grid_size` · (`ice` + 1) is "
        f"at most {MOST_POINTS:,}.",
    )
    pairs: list[tuple[Name, Name]] = Field(
        default_factory=list,
        description="Pairs of different features whose effect together is explained too, such as "
        '`[["age", "salary"]]`, at `grid_size`² points each. At most '
        f"{MOST_POINTS:,} points, where a categorical feature may have `storage_size`.",
    )

    @validates_model(mode="after")
    def _grid_fits(self) -> Self:
        self.grid_settings()
        if self.grid_size * (1 + self.ice) > MOST_POINTS:
            raise ValueError(
                f"ice is {self.ice}, but must be at most {MOST_POINTS // self.grid_size - 1} with "
                f"grid_size = {self.grid_size}: more does not fit into a message"
            )
        if self.pairs:
            check_pairs(self.pairs)
        return self

    def grid_settings(self) -> GridSettings:
        """Return how evaluation points are chosen."""
        return GridSettings(
            kind=self.grid,
            size=self.grid_size,
            storage=self.storage,
            storage_size=self.storage_size,
            window=self.window,
            entrance_probability=self.entrance_probability,
            warm_up=self.warm_up,
        )


class ExplainSettings(Section):
    """The explanations."""

    methods: list[Method] = Field(
        default=["ipfi", "isage", "ipdp"], min_length=1, description="What to compute."
    )
    loss: str = Field(
        "cross_entropy",
        description='What accuracy means. For classes `"cross_entropy"`, `"zero_one"`, `"brier"`; '
        'for regression `"absolute_error"` or `"squared_error"`; or your own, `"module:function"`.',
    )
    alpha: Alpha = Field(
        0.001,
        description="Smoothing: about 2 / (N + 1) for the last N records. A list explains with "
        "each of its rates.",
    )
    emit_every: Size = Field(
        10,
        description="Observations between two explanation records of a feature and method; the "
        "increments in between are in the next one.",
    )
    every: int = Field(
        1,
        ge=1,
        le=10_000,
        description="One of so many observations in a row is explained, chosen at random; all are "
        "predicted and learned.",
    )
    budget_ms: float | None = Field(
        None,
        gt=0.0,
        le=60_000.0,
        description="Milliseconds that the model role may take for an observation in the mean: if "
        "it takes more, fewer are explained. By default any. It needs `control.topic`.",
    )
    file: Path | None = Field(
        None,
        description="What explanations have learned, to start from: written by `fluxplain model "
        "export` with --explanations, of the same features and explanations. Unpickling runs its "
        "code.",
    )
    features: dict[Name, Annotated[list[Method], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="Feature or group → the methods that explain it, of those under `methods`; by "
        "default all.",
    )
    groups: dict[Name, Annotated[list[Name], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="Name of a group → features that iPFI and iSAGE explain as one; each in one "
        "group at most. iPDP explains each feature.",
    )
    ipfi: PFISettings = PFISettings()
    isage: SAGESettings = SAGESettings()
    ipdp: PDPSettings = PDPSettings()

    @property
    def alphas(self) -> list[float]:
        """The smoothing rates; changes are those of the explanations with the first."""
        rates: list[float] = self.alpha if isinstance(self.alpha, list) else [self.alpha]
        return rates

    @validates_model(mode="after")
    def _warm_ups_fit(self) -> Self:
        for name, warm_up, size in (
            ("ipfi", self.ipfi.warm_up, self.ipfi.reservoir_size),
            ("isage", self.isage.warm_up, self.isage.reservoir_size),
        ):
            if warm_up is not None and warm_up > size:
                raise ValueError(
                    f"{name}.warm_up is {warm_up}, but must be at most the storage's size, {size}"
                )
        return self

    @validates_model(mode="after")
    def _imputers_fit(self) -> Self:
        for name, method in (("ipfi", self.ipfi), ("isage", self.isage)):
            if method.inner_samples == ALL and method.imputer != "interventional":
                raise ValueError(
                    f"{name}.inner_samples is {ALL!r}, but must be a number for {name}.imputer "
                    f"{method.imputer!r}"
                )
        if self.ipfi.imputer == "observational" and self.ipfi.sampler != "geometric":
            raise ValueError(
                f"ipfi.sampler is {self.ipfi.sampler!r}, but must be 'geometric' for ipfi.imputer "
                f"'observational'"
            )
        return self


Delta = Annotated[float, Field(gt=0.0, lt=1.0)]
GracePeriod = Annotated[int, Field(ge=1)]

_AS_DRIFT = "By default as under `[drift]`."
_PARAMS = "Replace all of `[drift.params]`."


class MethodDriftSettings(Section):
    """How the explanations of one method are watched."""

    enabled: bool = Field(True, description="Whether they are watched.")
    signal: Signal | None = Field(None, description=_AS_DRIFT)
    detector: OfNumbers | None = Field(None, description=_AS_DRIFT)
    delta: Delta | None = Field(None, description=_AS_DRIFT)
    grace_period: GracePeriod | None = Field(None, description=_AS_DRIFT)
    params: dict[str, Any] | None = Field(None, description=_PARAMS)


class LossDriftSettings(Section):
    """How the loss of the model is watched."""

    enabled: bool = Field(True, description="Whether it is watched.")
    detector: OfNumbers | OfErrors | None = Field(
        None,
        description=f'{_AS_DRIFT} Those from `"ddm"` on take errors, so only with `explain.loss` = '
        '`"zero_one"`.',
    )
    delta: Delta | None = Field(None, description=_AS_DRIFT)
    grace_period: GracePeriod | None = Field(None, description=_AS_DRIFT)
    params: dict[str, Any] | None = Field(None, description=_PARAMS)


DELTA = 2e-3
DELTA_OF_INCREMENTS: dict[Watched, float] = {"ipfi": 1e-4, "ipdp": 1e-12}
"""Of ADWIN: River's, and smaller ones where ADWIN expects what is not so. Increments of iPFI are at
times very far from their mean, and those of iPDP depend on each other, since its grid follows the
last values."""


class DriftSettings(Section):
    """Detectors over the explanations, and over the loss."""

    signal: Signal = Field(
        "increment",
        description="What is watched: what each record adds, or the smoothed value.",
    )
    detector: OfNumbers = Field(
        "adwin", description='Which of River\'s detectors; `"kswin"` is slow.'
    )
    delta: Delta | None = Field(
        None,
        description="Of ADWIN; smaller: fewer false alarms, later detections. By default "
        f"{DELTA_OF_INCREMENTS['ipfi']:g} for increments of iPFI, "
        f"{DELTA_OF_INCREMENTS['ipdp']:g} for those of iPDP, and else {DELTA:g}: so a feature has "
        "about one false alarm in 100,000 records, or less.",
    )
    grace_period: GracePeriod = Field(
        10,
        description="Of ADWIN: values before the first alarm; it takes 2 · `min_window_length` "
        "anyway.",
    )
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="Further parameters of River's detector, such as `clock = 1`. Their defaults "
        "are River's, but for ADWIN's `min_window_length` = "
        f"{ADWINParameters().min_window_length}.",
    )
    incident_window: int = Field(
        1000,
        ge=0,
        le=10**9,
        description="Changes of a stream within so many observations are one incident.",
    )
    ipfi: MethodDriftSettings = MethodDriftSettings()
    isage: MethodDriftSettings = MethodDriftSettings()
    ipdp: MethodDriftSettings = MethodDriftSettings()
    loss: LossDriftSettings = LossDriftSettings()

    @validates_model(mode="after")
    def _parameters_fit(self) -> Self:
        tables = {f"{method}.": self._own(method) for method in get_args(Watched)}
        for prefix, table in {"": self, **tables}.items():
            detector = table.detector or self.detector
            wrong = _wrong_parameter(detector, table.params or {})
            if wrong:
                raise ValueError(f"{prefix}params.{wrong}")
        for prefix, own in tables.items():
            detector = own.detector or self.detector
            for name in ("delta", "grace_period"):
                if detector != "adwin" and getattr(own, name) is not None:
                    raise ValueError(_not_of(f"{prefix}{name}", getattr(own, name), detector))
        if "adwin" not in {own.detector or self.detector for own in tables.values()}:
            for name in ("delta", "grace_period"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(_not_of(name, getattr(self, name), self.detector))
        return self

    def of(self, method: Watched) -> DetectorSettings | None:
        """Return how a method or the loss is watched; None if it is not."""
        own = self._own(method)
        if not own.enabled:
            return None
        # each record has a loss of its own, and nobody smooths it
        signal: Signal = "increment"
        if isinstance(own, MethodDriftSettings):
            signal = own.signal or self.signal
        detector = own.detector or self.detector
        common = self.params if detector == self.detector else {}
        _, kind = DETECTORS[detector]
        parameters = kind.model_validate(common if own.params is None else own.params).model_dump()
        if detector == "adwin":
            deltas = DELTA_OF_INCREMENTS if signal == "increment" else {}
            parameters["delta"] = own.delta or self.delta or deltas.get(method, DELTA)
            parameters["grace_period"] = own.grace_period or self.grace_period
        return DetectorSettings(signal, detector, parameters)

    def _own(self, method: Watched) -> MethodDriftSettings | LossDriftSettings:
        own: MethodDriftSettings | LossDriftSettings = getattr(self, method)
        return own


def _wrong_parameter(detector: OfNumbers | OfErrors, params: dict[str, Any]) -> str | None:
    """Return which parameter the detector does not take, and why; None if it takes all."""
    _, kind = DETECTORS[detector]
    try:
        kind.model_validate(params)
    except ValidationError as error:
        item = error.errors(include_url=False)[0]
        name, message = ".".join(map(str, item["loc"])), item["msg"].removeprefix(_OWN)
        if item["type"] == "extra_forbidden":
            if detector == "adwin" and name in {"delta", "grace_period"}:
                return f"{name} belongs beside params, not into it"
            allowed = ", ".join(kind.model_fields)
            return f"{name} is not a parameter of {detector!r}; allowed here: {allowed}"
        return f"{name} is {_shown(item['input'])}: {message}" if name else message
    return None


def _not_of(key: str, value: object, detector: str) -> str:
    return f"{key} is {value}, but it is of the detector 'adwin', not of {detector!r}: see params"


class CheckpointSettings(Section):
    """Where and how often state is saved."""

    store: Literal["directory", "topic"] = Field(
        "directory",
        description='Where state is kept: `"directory"` is for one machine, `"topic"` for workers '
        "that move between machines.",
    )
    directory: Path = Field(
        Path(".fluxplain/checkpoints"),
        description="The directory, relative to where the worker runs.",
    )
    key: SecretStr | None = Field(
        None,
        description=f"Signs checkpoints: at least {KEY_LENGTH} characters. Needed for the store "
        '`"topic"`.',
    )
    key_file: Path | None = Field(None, description="A file that holds the key.")
    out_of_range: Literal["fail", "earliest", "latest"] = Field(
        "fail",
        description="What to do when messages were deleted before they were read: end the "
        "worker, or go on with the oldest or the next new message, and publish the gap.",
    )
    interval_s: float = Field(
        5.0, ge=0.05, le=3600.0, description="Seconds between two checkpoints."
    )

    @validates_model(mode="after")
    def _key_fits(self) -> Self:
        if self.key is not None and self.key_file is not None:
            raise ValueError("key and key_file are both set: give one of them")
        if self.store == "topic" and self.key is None and self.key_file is None:
            raise ValueError(
                "store is 'topic', which needs a key that signs checkpoints, since they are "
                f"unpickled: set the environment variable {ENV_PREFIX}CHECKPOINT__KEY, or "
                "checkpoint.key_file"
            )
        self.signing_key()
        return self

    @property
    def place(self) -> str:
        """Where state is kept, for people."""
        return "the topic for them" if self.store == "topic" else str(self.directory.absolute())

    def signing_key(self) -> bytes | None:
        """Return the key that signs checkpoints; None if there is none.

        Raises
        ------
        ValueError
            If the key is too short, or its file cannot be read.
        """
        if self.key is not None:
            name, text = "key", self.key.get_secret_value()
        elif self.key_file is not None:
            name, text = f"key_file {self.key_file}", read_secret("key_file", self.key_file)
        else:
            return None
        if len(text) < KEY_LENGTH:
            raise ValueError(
                f"{name} has {len(text)} characters, but must have at least {KEY_LENGTH}: "
                "`openssl rand -hex 32` makes one"
            )
        return text.encode()


class ControlSettings(Section):
    """What changes while the pipeline runs."""

    topic: bool = Field(
        False,
        description="Whether there is a topic `control`, by which what holds for a stream can "
        "change while it runs.",
    )


class HealthSettings(Section):
    """The health endpoint of each worker, and its watchdog."""

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address on which `/healthz`, `/readyz` and `/metrics` listen.",
    )
    port: int = Field(
        0,
        ge=0,
        le=65535,
        description="0 takes any free port, which the log names. `fluxplain up` gives its n-th "
        "worker `port` + n − 1.",
    )
    stall_s: float = Field(
        60.0,
        ge=1.0,
        le=86400.0,
        description="Seconds without progress, while messages wait and the broker answers, after "
        "which a worker ends itself; longer than the model ever needs for one observation.",
    )


class DashboardSettings(Section):
    """The page that shows live what is published."""

    enabled: bool = Field(True, description="Whether `fluxplain up` serves it too.")
    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address to listen on. The page has no authentication: beyond this machine "
        "put a proxy before it that has.",
    )
    port: int = Field(8777, ge=0, le=65535, description="0 takes any free port, which is told.")
    names: list[Name] = Field(
        default_factory=list,
        description="Names by which browsers reach it, beside addresses and localhost, such as "
        "that of a proxy; others are refused, since a page of somebody else could have them.",
    )


class Config(BaseSettings):
    """All settings of a pipeline."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
        hide_input_in_errors=True,  # among it there may be a password
    )

    seed: int = Field(42, ge=0, le=2**31 - 1, description="Seeds all random numbers.")
    features: dict[Name, FeatureType] = Field(
        min_length=1,
        description='What the model sees: name → `"numeric"` (finite numbers) or '
        '`"categorical"` (strings, integers, booleans).',
    )
    missing: Missing = Missing()
    label: LabelSettings = LabelSettings()
    model: ModelSettings
    explain: ExplainSettings = ExplainSettings()
    drift: DriftSettings = DriftSettings()
    control: ControlSettings = ControlSettings()
    streams: dict[Partition, Own] = Field(
        default_factory=dict,
        description="Partition → what its stream has of its own: the tables `missing`, `label`, "
        "`model`, `explain` and `drift`, as `[streams.3.model.params]`. See [Many streams]"
        "(streams.md#many-streams).",
    )
    kafka: KafkaSettings = KafkaSettings()
    topics: TopicSettings = TopicSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    health: HealthSettings = HealthSettings()
    registry: RegistrySettings = RegistrySettings()
    alerts: AlertSettings = AlertSettings()
    dashboard: DashboardSettings = DashboardSettings()

    @validates_model(mode="after")
    def _what_is_named_is_explained(self) -> Self:
        methods = self.explain.methods
        if self.explain.ipdp.pairs and "ipdp" not in methods:
            raise ValueError(
                f"explain.ipdp.pairs are explained by 'ipdp' only, but explain.methods is {methods}"
            )
        if self.explain.groups and methods == ["ipdp"]:
            raise ValueError(
                "explain.groups are explained by 'ipfi' and 'isage' only, but explain.methods is "
                "['ipdp']"
            )
        return self

    @validates_model(mode="after")
    def _missing_is_of_features(self) -> Self:
        for table in ("features", "values"):
            for feature in getattr(self.missing, table):
                if feature not in self.features:
                    raise ValueError(
                        f"missing.{table} has {feature!r}, but must have features only: "
                        f"{', '.join(self.features)}"
                    )
        for feature, value in self.missing.values.items():
            key, kind = f"missing.values.{feature}", self.features[feature]
            if self.missing.of(feature) != "impute":
                raise ValueError(
                    f"{key} is {value!r}, but missing.features.{feature} is "
                    f"{self.missing.of(feature)!r}: a value is filled in by 'impute' only"
                )
            is_number = not isinstance(value, bool | str) and is_moderate(value)
            if kind == "numeric" and not is_number:
                raise ValueError(f"{key} is {value!r}, but must be a finite number: it is numeric")
            if kind == "categorical" and isinstance(value, float):
                raise ValueError(
                    f"{key} is {value!r}, but must be a string, an integer or a boolean: it is "
                    "categorical"
                )
        return self

    @validates_model(mode="after")
    def _pairs_fit(self) -> Self:
        ipdp = self.explain.ipdp
        most = {"categorical": ipdp.storage_size, "numeric": ipdp.grid_size}
        for name, pair in self.pairs.items():
            for feature in pair:
                if feature not in self.features:
                    raise ValueError(
                        f"explain.ipdp.pairs has {feature!r}, but must have features only: "
                        f"{', '.join(self.features)}"
                    )
            if name in {*self.features, *self.explain.groups}:
                raise ValueError(
                    f"explain.ipdp.pairs has {list(pair)!r}, which is published as {name!r}, but "
                    "that is a feature or group: give that one another name"
                )
            first, second = (most[self.features[feature]] for feature in pair)
            if first * second > MOST_POINTS:
                raise ValueError(
                    f"explain.ipdp.pairs has {name!r}, which may have {first:,} times {second:,} "
                    f"points, but at most {MOST_POINTS:,} fit into a message: a categorical "
                    "feature may have storage_size, a numeric one has grid_size"
                )
        return self

    @validates_model(mode="after")
    def _groups_are_of_features(self) -> Self:
        group_of: dict[str, str] = {}
        for group, members in self.explain.groups.items():
            key = f"explain.groups.{group}"
            if group in self.features:
                raise ValueError(f"{key} has the name of a feature: give the group another one")
            for feature in members:
                if feature not in self.features:
                    raise ValueError(
                        f"{key} has {feature!r}, but must have features only: "
                        f"{', '.join(self.features)}"
                    )
                if feature in group_of:
                    raise ValueError(
                        f"{key} has {feature!r}, which explain.groups.{group_of[feature]} has "
                        "already: a feature can be in a group once"
                    )
                group_of[feature] = group
        return self

    @validates_model(mode="after")
    def _budget_can_be_kept(self) -> Self:
        if self.explain.budget_ms is not None and not self.control.topic:
            raise ValueError(
                f"explain.budget_ms is {self.explain.budget_ms}, which needs control.topic = true: "
                "what is explained is announced there, so that a new start does the same"
            )
        return self

    @validates_model(mode="after")
    def _methods_of_features_fit(self) -> Self:
        for name, methods in self.explain.features.items():
            key = f"explain.features.{name}"
            if name not in {*self.features, *self.explain.groups}:
                raise ValueError(
                    f"{key} is no feature and no group; there are: "
                    f"{', '.join([*self.features, *self.explain.groups])}"
                )
            for method in methods:
                if method not in self.explain.methods:
                    raise ValueError(
                        f"{key} has {method!r}, but must have methods of explain.methods only: "
                        f"{', '.join(self.explain.methods)}"
                    )
            if not self.methods_of(name):
                grouped = (
                    "iPDP explains no group"
                    if name in self.explain.groups
                    else ("iPFI and iSAGE explain its group, and not the feature")
                )
                raise ValueError(f"{key} is {methods!r}, but {grouped}")
        return self

    @validates_model(mode="after")
    def _each_shard_has_a_share(self) -> Self:
        if self.model.shards > len(self.explained):
            raise ValueError(
                f"model.shards is {self.model.shards}, but must be at most the number of features, "
                f"groups and pairs that are explained, {len(self.explained)}"
            )
        return self

    @validates_model(mode="after")
    def _alerts_are_of_what_is_explained(self) -> Self:
        for feature in self.alerts.features or ():
            if feature not in self.explained:
                raise ValueError(
                    f"alerts.features has {feature!r}, but must have what is explained only: "
                    f"{', '.join(self.explained)}"
                )
        return self

    @validates_model(mode="after")
    def _errors_are_watched(self) -> Self:
        detector, is_watched = self.drift.loss.detector, self.drift.loss.enabled
        if is_watched and detector in get_args(OfErrors) and self.explain.loss != "zero_one":
            raise ValueError(
                f"drift.loss.detector is {detector!r}, which takes errors (1 or 0), so "
                f"explain.loss must be 'zero_one', not {self.explain.loss!r}"
            )
        return self

    @validates_model(mode="after")
    def _streams_fit(self) -> Self:
        lines = []
        for partition, own in self.streams.items():
            lines += [f"streams.{partition}.{line}" for line in self._wrong_in(partition, own)]
        if lines:
            raise ValueError("\n".join(lines))
        return self

    def _wrong_in(self, partition: int, own: Own) -> list[str]:
        """Return what is wrong with a stream's own settings, each line beginning with a key."""
        wrong = list(refused(own))
        if wrong:
            return wrong
        try:
            explained = self.of_stream(partition).explained
        except ValidationError as error:
            return explain_errors(error).splitlines()
        # each has its partition of evaluations
        more = [name for name in explained if name not in self.explained]
        if more:
            return [
                f"explain.methods and explain.features explain {', '.join(more)}, but must explain "
                f"only what is explained without [streams]: {', '.join(self.explained)}"
            ]
        return []

    @classmethod
    def settings_customise_sources(  # the signature is the library's
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment goes before the file."""
        return env_settings, init_settings

    def on_broker(self, bootstrap_servers: str) -> Self:
        """Return the same settings for another broker."""
        return self.model_copy(
            update={"kafka": self.kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})}
        )

    def of_stream(self, partition: int) -> "Config":
        """Return the settings of one stream: what it has of its own goes before the common ones."""
        own = self.streams.get(partition)
        if own is None:
            return self
        results = type(self).model_fields.keys() - _OPERATION - {"streams"}
        fields = {name: getattr(self, name) for name in results}
        tables = {name: merged(fields[name], table) for name, table in own.items()}
        operation = {name: getattr(self, name) for name in _OPERATION}
        return _OfStream(**{**fields, **tables}).model_copy(update=operation)

    @property
    def own_streams(self) -> "dict[str, Config]":
        """Stream → its settings, of those that have some of their own."""
        source = self.topic(self.source)
        return {stream_name(source, each): self.of_stream(each) for each in self.streams}

    @property
    def pairs(self) -> dict[str, tuple[str, str]]:
        """What iPDP explains together: name → the two features."""
        pairs = self.explain.ipdp.pairs
        return check_pairs(pairs) if pairs else {}

    @property
    def players(self) -> Players:
        """What iPFI and iSAGE explain: features, and groups in the place of their first feature."""
        groups = self.explain.groups
        group_of = {feature: group for group, members in groups.items() for feature in members}
        names = dict.fromkeys(group_of.get(feature, feature) for feature in self.features)
        return Players([{name: groups[name]} if name in groups else name for name in names])

    @property
    def explained(self) -> list[str]:
        """What there are explanations of: players, features that iPDP alone explains, and pairs."""
        methods = self.explain.methods
        players = self.players.names if {"ipfi", "isage"} & set(methods) else ()
        features = self.features if "ipdp" in methods else ()
        names = dict.fromkeys([*players, *features, *self.pairs])
        return [name for name in names if self.methods_of(name)]

    @property
    def members(self) -> dict[str, Sequence[str]]:
        """What is explained → the features that it is made of."""
        groups, pairs = self.explain.groups, self.pairs
        return {name: groups.get(name) or pairs.get(name) or [name] for name in self.explained}

    def methods_of(self, name: str) -> list[Method]:
        """Return the methods that explain a feature, a group or a pair."""
        with_curves = {*self.features, *self.pairs}
        wanted = self.explain.features.get(name, self.explain.methods)
        return [
            method
            for method in self.explain.methods
            if method in wanted
            and name in (with_curves if method == "ipdp" else self.players.names)
        ]

    def topic(self, name: str) -> str:
        """Return a topic's full name."""
        return self.topics.prefix + name

    @property
    def source(self) -> str:
        """The topic whose partitions are the streams, without the prefix."""
        return "observations" if self.is_joined else "features"

    @property
    def is_joined(self) -> bool:
        """Whether what the model role reads comes from several topics."""
        return self.label.topic or self.control.topic

    def inputs(self, role: Role) -> tuple[str, ...]:
        """Return the topics that a role reads, without the prefix."""
        topics: dict[Role, tuple[str, ...]] = {
            "join": (
                "features",
                *(["labels"] if self.label.topic else []),
                *(["control"] if self.control.topic else []),
            ),
            "model": (self.source,),
            "explainer": ("evaluations",),
            "drift": ("explanations",),
        }
        return topics[role]

    def parts(self, role: Role | None = None) -> list[Part]:
        """Return all that runs, in the order of the data's flow; or what a role consists of."""
        shards = self.model.shards
        join = [Part("join")] if self.is_joined else []
        model = [Part("model", shard, shards) for shard in range(shards)]
        parts = [*join, *model, Part("explainer"), Part("drift")]
        return [part for part in parts if role in {None, part.role}]

    def group(self, part: Part | Role) -> str:
        """Return the consumer group of a role, or of a shard."""
        return f"{self.topics.prefix}{part}"

    def group_instance_id(self, part: Part) -> str | None:
        """Return the worker's name as a static member of its group, if it has one."""
        name = self.kafka.group_instance_id
        return None if name is None else f"{name}-{part}"

    def loss(self) -> "Loss":
        """Return the loss, loading the user's function if it is one."""
        from pipeline.explain import get_loss  # noqa: PLC0415  loads Numba, and not all need a loss
        from pipeline.models import minus_score  # noqa: PLC0415

        name = self.explain.loss
        if name == MINUS_SCORE:
            return minus_score
        return cast("Loss", load("explain.loss", name)) if ":" in name else get_loss(name)

    def make_model(self) -> Any:
        """Return a new model; without labels one whose prediction is its score.

        Of ``seed``, ``features`` (name → kind), ``label`` (its type) and ``learn`` the factory gets
        what it takes and ``model.params`` has not.

        Raises
        ------
        ConfigError
            If the factory cannot be loaded or called.
        """
        from pipeline.models import as_asked  # noqa: PLC0415  not all need a model

        return as_asked(self.make_own_model(), self.label.type)

    def make_own_model(self) -> Any:
        """Return what the factory makes, or is in the file; see :meth:`make_model`."""
        if self.model.factory is None:
            return self._model_of_file()
        factory = load("model.factory", self.model.factory)
        known = {
            "seed": self.seed,
            "features": dict(self.features),
            "label": self.label.type,
            "learn": self.model.learn,
        }
        taken = parameters(factory)
        given = {name: value for name, value in known.items() if name in taken}
        try:
            return factory(**{**given, **self.model.params})
        except Exception as error:
            raise ConfigError(
                f"model.factory = {self.model.factory!r}, called with model.params = "
                f"{self.model.params}, failed: {type(error).__name__}: {error}"
            ) from error

    def _model_of_file(self) -> Any:
        from pipeline.exchange import unpickled  # noqa: PLC0415  only who has a model needs it

        try:
            return unpickled(_content(self.model.file, self.model.origin))
        except ValueError as error:
            raise ConfigError(f"{self.model.origin}: {error}") from error

    def learned(self, part: str | None = None) -> Any:
        """Return a part of what explanations start from; None without, or if none is asked for.

        Raises
        ------
        ConfigError
            If it cannot be read, or is of other settings or another version.
        """
        if self.explain.file is None:
            return None
        origin = f"explain.file = {self.explain.file}"
        data = _content(self.explain.file, origin)
        try:
            return warm_start.read(data, self.learning(), part)
        except ValueError as error:
            raise ConfigError(f"{origin} {error}") from error

    def learning(self) -> dict[str, Any]:
        """Return the settings on which rests what explanations learn: key → value, of JSON."""
        tables = self.model_dump(mode="json", include={**_LEARNING})
        tables["features"] = [*map(list, self.features.items())]  # they are in this order
        return {key: value for key, value in _flat(tables) if value != {}}

    def fingerprint(self) -> dict[str, str]:
        """Return every setting that changes what is published: key → digest of its value."""
        common = _prints(self._results())
        found = dict(common)
        for each in self.streams:
            own = _prints(self.of_stream(each)._results())
            others = {name for name, _ in common.items() ^ own.items()}
            found |= {f"streams.{each}.{name}": own.get(name, "none") for name in others}
        return found

    def _results(self) -> dict[str, Any]:
        """Return every setting that changes what is published, but for what single streams have."""
        settings = self.model_dump(mode="json", exclude=_OPERATION | {"streams"})
        # features are dealt to so many partitions
        settings["topics"] = self.topics.model_dump(include={"prefix", "partitions"})
        del settings["label"]["column"]
        del settings["explain"]["budget_ms"]  # what follows from it is announced in a topic
        del settings["model"]["directory"]
        if self.model.file is not None:
            settings["model"]["file"] = _digest(self.model.file, self.model.origin)
        if self.explain.file is not None:
            settings["explain"]["file"] = _digest(self.explain.file, "explain.file")
        del settings["model"]["shards"]  # whoever evaluates a feature, the answers are the same
        # their order is that of permutations and partitions
        settings["features"] = list(self.features.items())
        return settings


class _OfStream(Config):
    """The settings of one stream: neither the file nor the environment is asked again."""

    model_config = SettingsConfigDict(nested_model_default_partial_update=False)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is given."""
        return (init_settings,)


def load_config(path: Path, role: Asker | None = None) -> Config:
    """Return the validated settings of a TOML file and the environment.

    Parameters
    ----------
    path
        The file.
    role
        Who asks: it loads only what it uses, see :func:`check_references`.

    Raises
    ------
    ConfigError
        With one line per wrong setting: its key, its value, and what is allowed.
    """
    _check_environment()
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = "; `fluxplain init` writes one" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"cannot read {path}: {error.strerror}{hint}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    except ValueError as error:  # also of a number that is too long
        raise ConfigError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path} is not TOML that can be read: it is nested too deeply") from None
    _check_secrets(fields, path)
    try:
        config = Config(**fields)
    except ValidationError as error:
        raise ConfigError(explain_errors(error)) from None
    except SettingsError as error:
        raise ConfigError(f"the environment: {error}") from None
    except RecursionError:
        raise ConfigError("the environment: a variable is nested too deeply") from None
    check_references(config, role)
    return config


def check_references(config: Config, role: Asker | None = None) -> None:
    """Load what the settings refer to, so that mistakes show before anything starts.

    Parameters
    ----------
    config
        The settings.
    role
        Who uses them. The explainer uses the loss, but no model; join, drift and a reader of
        topics neither, so they start sooner, and where the user's model is not installed. All
        others check both.

    Raises
    ------
    ConfigError
        If the loss is unknown, or the model cannot be made, asked, taught or pickled.
    """
    if role in {"join", "drift", "reader"}:
        return
    _check_results(config, role)
    for partition in config.streams:
        try:
            _check_results(config.of_stream(partition), role)
        except ConfigError as error:
            raise ConfigError(f"streams.{partition}.{error}") from error.__cause__


def _check_results(config: Config, role: Asker | None) -> None:
    _check_loss(config)
    config.learned()
    if role != "explainer":
        _check_model(config)


def _check_loss(config: Config) -> None:
    from pipeline.explain import LOSSES  # noqa: PLC0415  as in Config.loss

    known = [*LOSSES, MINUS_SCORE]
    name = config.explain.loss
    if ":" not in name and name not in known:
        raise ConfigError(
            f"explain.loss is {name!r}, but must be one of {', '.join(known)}, or module:function"
        )
    loss = config.loss()
    try:
        inspect.signature(loss).bind("label", "output")
    except (TypeError, ValueError):  # the latter of built-in functions that do not tell
        raise ConfigError(
            f"explain.loss = {name!r} must be a function of (label, output)"
        ) from None
    label = config.label.type
    if label == "none":
        allowed = [MINUS_SCORE]
    else:
        allowed = [each for each in LOSSES if each.endswith("_error") == (label == "number")]
    if name in known and name not in allowed:
        raise ConfigError(
            f"explain.loss is {name!r}, but for label.type = {label!r} must be one of "
            f"{', '.join(allowed)}, or module:function"
        )


def _check_model(config: Config) -> None:
    from pipeline.models import as_asked  # noqa: PLC0415  loads River
    from pipeline.models.usable import check_kind, check_usable  # noqa: PLC0415

    model = config.make_own_model()
    given = f"{config.model.origin} gives a {type(model).__name__}"
    try:
        make, label = config.make_own_model, config.label.type
        check_usable(model, make, label=label, learns=config.model.learn)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{given}{error}") from error
    try:
        check_kind(model, config.label.type)
    except ValueError as error:
        raise ConfigError(f"{config.model.origin} gives a {error}") from error
    except Exception as error:  # as of a model that lacks what River's have
        raise ConfigError(f"{given} that cannot be asked what it is: {error}") from error
    try:
        _check_evaluator(config, as_asked(model, config.label.type))
    except ConfigError:
        raise
    except Exception as error:  # as of a model that lacks what River's have
        raise ConfigError(f"{given} that cannot be asked what it is: {error}") from error


def _check_evaluator(config: Config, model: Any) -> None:
    from pipeline.evaluate import choose  # noqa: PLC0415  loads River and Numba

    try:
        choose(model, config.model.evaluator)
    except TypeError as error:
        raise ConfigError(
            f"model.evaluator is {config.model.evaluator!r}, but {error}: use 'auto' or 'generic'"
        ) from None


def load(key: str, reference: str) -> Callable[..., Any]:
    """Return what ``module:name`` refers to; the working directory is searched too.

    Raises
    ------
    ConfigError
        If there is no such module or name.
    """
    try:
        return load_reference(reference)
    except ValueError as error:
        raise ConfigError(f"{key} = {reference!r}: {error}") from error


def explain_errors(error: ValidationError) -> str:
    """Return one line per wrong setting."""
    lines = []
    for item in error.errors(include_url=False):
        key = ".".join(str(part) for part in item["loc"] if part != "[key]")
        if item["type"] == "missing":
            lines.append(f"{key} is missing")
        elif item["type"] == "extra_forbidden":
            lines.append(f"{key} is not a setting{_suggest(item['loc'])}")
        else:
            lines.append(_explain_value(item["loc"], key, item["input"], item["msg"]))
    return "\n".join(lines)


_OPERATION = {"kafka", "registry", "checkpoint", "health", "alerts", "dashboard"}
"""Tables that say how the pipeline runs, not what it publishes."""

_LEARNING: Mapping[str, Any] = {
    "label": {"type"},
    "missing": True,
    "explain": {"methods", "loss", "alpha", "groups", "ipfi", "isage", "ipdp"},
}
"""Settings on which rests what explanations learn, beside the features."""


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each key of a table and those in it, as it is written, and its value."""
    for name, value in table.items():
        key = f"{above}{name if _BARE_KEY.fullmatch(name) else json.dumps(name)}"
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


_BARE_KEY = re.compile(r"[\w-]+", re.ASCII)
"""What TOML takes without quotes."""


def _prints(table: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each value."""
    return {
        key: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        for key, value in _flat(table)
    }


def _content(file: Path | None, origin: str) -> bytes:
    try:
        return Path(file or "").read_bytes()
    except OSError as error:
        raise ConfigError(f"{origin}: cannot be read: {error.strerror}") from None


def _digest(file: Path, origin: str) -> str:
    """Return what stands for a file, wherever it is."""
    return hashlib.sha256(_content(file, origin)).hexdigest()


_OWN = "Value error, "
"""What pydantic puts before the messages of this project's validators."""


def _explain_value(location: tuple[int | str, ...], key: str, value: Any, message: str) -> str:
    text = message.removeprefix(_OWN)
    if message.startswith(_OWN) and (isinstance(value, dict) or not key):
        return f"{key}.{text}" if key else text  # of a whole table: the text names the key
    secrets = _secrets(str(location[0]))
    if secrets and (len(location) == 1 or location[1] in secrets):
        return f"{key} cannot be used: {text}"  # the value is a secret, or holds one
    return f"{key} is {_shown(value)}: {text}"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes neither long numbers nor deep tables
        return "too large to be shown"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _check_secrets(fields: dict[str, Any], path: Path) -> None:
    for table, values in fields.items():
        for key in _secrets(table):
            if isinstance(values, dict) and key in values:
                raise ConfigError(
                    f"{table}.{key} is a secret and must not stand in {path}: set the environment "
                    f"variable {ENV_PREFIX}{table.upper()}__{key.upper()}, or {table}.{key}_file"
                )


def _secrets(table: str) -> list[str]:
    """Return the keys of a table that come from the environment only, and are never shown."""
    field = Config.model_fields.get(table)
    keys = getattr(field.annotation, "model_fields", {}) if field else {}
    return [name for name, key in keys.items() if SecretStr in get_args(key.annotation)]


def _check_environment() -> None:
    for name in os.environ:
        table = name.removeprefix(ENV_PREFIX).partition("__")[0].lower()
        if name.startswith(ENV_PREFIX) and table not in Config.model_fields:
            raise ConfigError(
                f"the environment variable {name} is not a setting: {ENV_PREFIX} must be followed "
                f"by one of {', '.join(each.upper() for each in Config.model_fields)}"
            )


def _suggest(location: tuple[int | str, ...]) -> str:
    """Return which key may be meant, and which there are, but for secrets: a file has none."""
    fields: dict[str, Any] = dict(Config.model_fields)
    for part in location[:-1]:
        annotation = fields[str(part)].annotation if str(part) in fields else None
        fields = dict(getattr(annotation, "model_fields", {}))
    names = [name for name in fields if name not in _secrets(str(location[0]))]
    close = get_close_matches(str(location[-1]), names, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"{meant}; allowed here: {', '.join(names)}" if names else ""
