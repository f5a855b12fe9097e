"""Checks of settings that depend on several tables; errors begin with the key."""

from fluxplain.config.base import check_names, wrong
from fluxplain.config.explain import MOST_POINTS
from fluxplain.config.tables import Tables
from fluxplain.drift.detectors import OF_ERRORS
from fluxplain.schemas.methods import METHODS
from fluxplain.schemas.numbers import is_moderate


def check(config: Tables) -> None:
    """Raise ``ValueError`` for the first setting that contradicts another."""
    _check_missing(config)
    _check_pairs(config)
    _check_groups(config)
    _check_methods_of_features(config)
    explained, shards = config.explained, config.model.shards
    check_names("alerts.features", config.alerts.features or (), explained, "what is explained")
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
