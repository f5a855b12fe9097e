"""All settings, validated together; settings of one stream; and the objects that they name."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ValidationError, model_validator

from fluxplain import explain, models
from fluxplain.config.base import ConfigError, check_names, content, is_bare_key, load, wrong
from fluxplain.config.explain_settings import AUTO, MINUS_SCORE, MOST_POINTS
from fluxplain.config.messages import explain_errors
from fluxplain.config.stream_settings import Own, merged, override_errors
from fluxplain.config.tables import Tables
from fluxplain.drift.detectors import OF_ERRORS, DetectorSettings
from fluxplain.explain.grids import SEPARATOR
from fluxplain.models import warm_start
from fluxplain.schemas.methods import METHODS, Watched
from fluxplain.schemas.numbers import is_moderate
from fluxplain.schemas.record import stream_name

if TYPE_CHECKING:
    from fluxplain.explain.losses import Loss

OPERATION = {"kafka", "registry", "checkpoint", "health", "alerts", "dashboard"}
"""Tables about operating the pipeline; they do not affect what it publishes."""

NOT_PUBLISHED: Mapping[str, Any] = {
    **dict.fromkeys({*OPERATION, "streams"}, True),
    # partitions is not among them: features are assigned to that many
    "topics": {"features_partitions", "replication", "retention_hours"},
    "label": {"column"},
    # every shard gives the same answers
    "model": {"directory", "shards"},
    # the effects of the budget are recorded in a topic
    "explain": {"budget_ms"},
}
"""Settings that do not affect published records."""

LEARNING: Mapping[str, Any] = {
    "features": True,
    "label": {"type"},
    "missing": True,
    "explain": {"methods", "loss", "alpha", "groups", *METHODS},
}
"""Settings that learned explanations depend on."""


LOSS_OF = {"number": "squared_error", "none": MINUS_SCORE}
"""The label's type → the loss by default, of classes the cross-entropy."""


class Config(Tables):
    """All settings of a pipeline."""

    @model_validator(mode="after")
    def _tables_fit(self) -> Self:
        if self.explain.loss == AUTO:
            loss = LOSS_OF.get(self.label.type, "cross_entropy")
            vars(self)["explain"] = self.explain.model_copy(update={"loss": loss})
        _check(self)
        lines = [
            f"streams.{partition}.{line}"
            for partition, own in self.streams.items()
            for line in self._errors_of_stream(partition, own)
        ]
        if lines:
            raise ValueError("\n".join(lines))
        return self

    def _errors_of_stream(self, partition: int, own: Own) -> list[str]:
        """Return the errors in a stream's own settings; each line begins with a key."""
        if lines := [*override_errors(own)]:
            return lines
        try:
            explained = self.of_stream(partition).explained
        except ValidationError as error:
            return explain_errors(error).splitlines()
        # each explained name has been assigned a partition of evaluations
        more = [name for name in explained if name not in self.explained]
        if not more:
            return []
        return [
            f"explain.methods and explain.features explain {', '.join(more)}, but must explain "
            f"only what is explained without [streams]: {', '.join(self.explained)}"
        ]

    def of_stream(self, partition: int) -> "Config":
        """Return the settings of one stream: its own ones override the common ones."""
        own = self.streams.get(partition)
        if own is None:
            return self
        fields = {name: getattr(self, name) for name in Config.model_fields if name != "streams"}
        operation = {name: fields.pop(name) for name in OPERATION}
        tables = {name: merged(fields[name], table) for name, table in own.items()}
        config = Config.__new__(Config)
        # BaseModel's constructor reads neither the file nor the environment again
        BaseModel.__init__(config, **{**fields, **tables})
        return config.model_copy(update=operation)

    @property
    def own_streams(self) -> "dict[str, Config]":
        """Stream → its settings, for the streams with settings of their own."""
        source = self.topic(self.source)
        return {stream_name(source, each): self.of_stream(each) for each in self.streams}

    @property
    def watches_errors(self) -> bool:
        """Whether detectors of the loss watch wrong predictions, too."""
        return self.explain.loss == "cross_entropy"

    def detector(self, method: Watched) -> DetectorSettings | None:
        """Return the settings of a method's detectors, or of the loss's; None if not watched."""
        watched: list[Watched] = ["loss"] * (1 + self.watches_errors)  # and the errors
        for name in self.explained:
            methods = self.methods_of(name)
            watched += methods
            if name not in self.pairs:  # the trends of curves
                watched += [each for each in methods if METHODS[each].is_curve]
        series = sum(self.drift.of(each) is not None for each in watched)
        return self.drift.of(method, max(series, 1))

    def loss(self) -> "Loss":
        """Return the loss function; imports the user's if one is named."""
        name = self.explain.loss
        if name == MINUS_SCORE:
            return models.minus_score
        return load("explain.loss", name) if ":" in name else explain.get_loss(name)

    def make_model(self) -> Any:
        """Return a new model; an anomaly detector is adapted to predict its score.

        Raises
        ------
        ConfigError
            If the factory cannot be loaded or called, or the file cannot be unpickled.
        """
        return models.as_asked(self.make_own_model(), self.label.type)

    def make_own_model(self) -> Any:
        """Return the factory's or the file's model, before it is adapted."""
        return self.model.make(
            seed=self.seed,
            features=dict(self.features),
            label=self.label.type,
            learn=self.model.learn,
        )

    def learned(self, part: str | None = None) -> Any:
        """Return a part of ``explain.file``, or None; without ``part`` only validate the file."""
        if self.explain.file is None:
            return None
        origin = f"explain.file = {self.explain.file}"
        data = content(self.explain.file, origin)
        try:
            return warm_start.read(data, self.learning(), part)
        except ValueError as error:
            raise ConfigError(f"{origin}: {error}") from error

    def learning(self) -> dict[str, Any]:
        """Return the settings that learned explanations depend on: key → JSON value."""
        tables = self._dumped(include=LEARNING)
        return {key: value for key, value in _flat(tables) if value != {}}

    def fingerprint(self) -> dict[str, str]:
        """Return key → digest of its value, for each setting that affects published records."""
        common = self._digests()
        found = dict(common)
        for each in self.streams:
            own = self.of_stream(each)._digests()
            others = {name for name, _ in common.items() ^ own.items()}
            found |= {f"streams.{each}.{name}": own.get(name, "none") for name in others}
        return found

    def _digests(self) -> dict[str, str]:
        settings = self._dumped(exclude=NOT_PUBLISHED)
        # of files the content counts, not the path
        for table, file in {"model": self.model.file, "explain": self.explain.file}.items():
            if file is not None:
                origin = f"{table}.file = {file}"
                settings[table]["file"] = hashlib.sha256(content(file, origin)).hexdigest()
        return {
            key: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
            for key, value in _flat(settings)
        }

    def _dumped(self, **which: Any) -> dict[str, Any]:
        tables = self.model_dump(mode="json", **which)
        # as a list: the order of features decides permutations and partitions
        tables["features"] = [*map(list, self.features.items())]
        return tables


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted TOML key and value for a table and the tables in it."""
    for name, value in table.items():
        key = f"{above}{name if is_bare_key(name) else json.dumps(name)}"
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _check(config: Tables) -> None:
    """Raise ``ValueError`` for the first setting that contradicts another."""
    _check_missing(config)
    _check_pairs(config)
    _check_groups(config)
    _check_methods_of_features(config)
    config.reasons.check(config.label.type)
    explained, shards = config.explained, config.model.shards
    check_names("alerts.features", config.alerts.features or (), explained, "what is explained")
    check_names("alerts.mute", config.alerts.mute, explained, "what is explained")
    named = list(dict.fromkeys([*config.features, *explained]))
    check_names("dashboard.features", config.dashboard.features, named, "what is explained")
    _check_shown(config.dashboard.features, named)
    check_names("dashboard.units", config.dashboard.units, config.features)
    if config.alerts.chooses_causes and not config.drift.causes:
        reason = "drift.causes is false, so no cause is known"
        raise wrong("alerts.causes", config.alerts.causes, reason)
    if shards > len(explained):
        most = f"the number of features, groups and pairs that are explained, {len(explained)}"
        raise wrong("model.shards", shards, f"must be at most {most}")
    if config.explain.budget_ms is not None and not config.control.topic:
        raise ValueError(
            f"explain.budget_ms is {config.explain.budget_ms}, which needs control.topic = true: "
            "the choice of observations to explain is recorded there, so that a restart repeats it"
        )
    loss = config.drift.loss
    if loss.enabled and loss.detector in OF_ERRORS and config.explain.loss != "zero_one":
        raise ValueError(
            f"drift.loss.detector is {loss.detector!r}, which takes errors (1 or 0), so "
            f"explain.loss must be 'zero_one', not {config.explain.loss!r}"
        )


def _check_shown(shown: Mapping[str, str], names: Sequence[str]) -> None:
    """Raise ``ValueError`` if two features could be taken for each other where people read."""
    taken: dict[str, str] = {}
    for name in names:
        parts = [name] if name in shown else name.split(SEPARATOR)  # of a pair
        text = SEPARATOR.join(shown.get(part, part) for part in parts)
        other = text if text != name and text in names else taken.get(text)
        if other is not None:
            raise ValueError(
                f"dashboard.features shows {name!r} as {text!r}, but {other!r} has that name "
                "already: give each another name"
            )
        taken[text] = name


def _check_missing(config: Tables) -> None:
    missing = config.missing
    check_names("missing.features", missing.features, config.features)
    check_names("missing.values", missing.values, config.features)
    for feature, value in missing.values.items():
        key, kind = f"missing.values.{feature}", config.features[feature]
        if (policy := missing.of(feature)) != "impute":
            reason = f"missing.features.{feature} is {policy!r}: only 'impute' fills in a value"
            raise wrong(key, value, reason)
        is_number = not isinstance(value, bool | str) and is_moderate(value)
        if kind == "numeric" and not is_number:
            raise wrong(key, value, "must be a finite number: it is numeric")
        if kind == "categorical" and isinstance(value, float):
            raise wrong(key, value, "must be a string, an integer or a boolean: it is categorical")


def _check_pairs(config: Tables) -> None:
    key, ipdp, methods = "explain.ipdp.pairs", config.explain.of("ipdp"), config.explain.methods
    if ipdp.pairs and "ipdp" not in methods:
        raise ValueError(f"{key} are explained by 'ipdp' only, but explain.methods is {methods}")
    most = {"categorical": ipdp.storage_size, "numeric": ipdp.grid_size}
    for name, pair in config.pairs.items():
        check_names(key, pair, config.features)
        if name in {*config.features, *config.explain.groups}:
            raise ValueError(
                f"{key} has {[*pair]!r}, which is published as {name!r}, but that is a feature or "
                "group: give that one another name"
            )
        first, second = (most[config.features[feature]] for feature in pair)
        if first * second > MOST_POINTS:
            raise ValueError(
                f"{key} has {name!r}, which may have {first:,} times {second:,} points, but at "
                f"most {MOST_POINTS:,} fit into a message: a categorical feature may have "
                "storage_size, a numeric one has grid_size"
            )


def _check_groups(config: Tables) -> None:
    groups = config.explain.groups
    methods = config.explain.methods
    if groups and all(METHODS[method].is_curve for method in methods):
        of_groups = " and ".join(repr(name) for name, info in METHODS.items() if not info.is_curve)
        raise ValueError(
            f"explain.groups are explained by {of_groups} only, but explain.methods is {methods}"
        )
    group_of: dict[str, str] = {}
    for group, members in groups.items():
        key = f"explain.groups.{group}"
        if group in config.features:
            raise ValueError(f"{key} has the name of a feature: give the group another one")
        check_names(key, members, config.features)
        for feature in members:
            if feature in group_of:
                raise ValueError(
                    f"{key} has {feature!r}, which explain.groups.{group_of[feature]} has already: "
                    "a feature can be in a group once"
                )
            group_of[feature] = group


def _check_methods_of_features(config: Tables) -> None:
    known = [*config.features, *config.explain.groups]
    for name, methods in config.explain.features.items():
        key = f"explain.features.{name}"
        if name not in known:
            raise ValueError(f"{key} is no feature and no group; there are: {', '.join(known)}")
        check_names(key, methods, config.explain.methods, "methods of explain.methods")
        if not config.methods_of(name):
            is_group = name in config.explain.groups
            grouped = "iPFI and iSAGE explain its group, and not the feature"
            raise wrong(key, methods, "iPDP explains no group" if is_group else grouped)
