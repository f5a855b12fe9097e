"""Checks an observation against the configured features and label."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from fluxplain.config import MAX_VERSION, FeatureType, LabelType
from fluxplain.schemas import BadRecordError, Control, LateLabel, Observation
from fluxplain.schemas.control import is_sha256
from fluxplain.schemas.numbers import MAX_NUMBER, is_moderate
from fluxplain.schemas.observation import FIELDS
from fluxplain.schemas.record import Target, Value, describe
from fluxplain.stages.intake import remedies
from fluxplain.stages.limits import check_key, check_length
from fluxplain.stages.stage import Message

MOST_SKIPPED = 10_000
"""Largest value of `every`: one of this many observations is explained."""

LABELS = {
    "boolean": "true or false, or 1 or 0",
    "integer": "an integer",
    "string": "a string",
}
"""Type of the labels → what they may be."""

NO_LABEL = 0.0
"""The label passed to the loss where the model needs none."""


class ObservationValidator:
    """Passes only configured features and labels, in the configured order and types.

    An observation without a ``required`` feature is refused; by default all are required.

    Examples
    --------
    >>> check = ObservationValidator({"age": "numeric", "city": "categorical"}, "integer")
    >>> check.x(Observation(x={"city": "Graz", "age": 61, "note": "not configured"}))
    {'age': 61.0, 'city': 'Graz'}
    >>> check.x(Observation(x={"age": "old", "city": "Graz"}))
    Traceback (most recent call last):
        ...
    fluxplain.schemas.record.BadRecordError: x.age must be a finite number, not a string "old"; \
"categorical" features take it
    """

    def __init__(
        self,
        features: Mapping[str, FeatureType],
        label: LabelType,
        required: Collection[str] | None = None,
    ) -> None:
        self._features = dict(features)
        self._label = label
        self._required = frozenset(features if required is None else required)

    def x(self, observation: Observation) -> dict[str, Value]:
        """Return the configured features that have a value, or raise ``BadRecordError``."""
        values = {}
        check_length("id", observation.id)
        check_length("ts", observation.ts)
        for feature, kind in self._features.items():
            value = observation.x.get(feature)
            if value is None:
                if feature in self._required:
                    others = (name for name in observation.x if name not in self._features)
                    hint = remedies.for_missing(feature, others)
                    raise BadRecordError(f"x.{feature} is missing{hint}")
                continue
            values[feature] = (
                _number(f"x.{feature}", value, remedies.for_feature)
                if kind == "numeric"
                else _category(f"x.{feature}", value)
            )
        return values

    def y(self, observation: Observation) -> Target | None:
        """Return the label, None without one, 0.0 where none is needed; or raise if unusable."""
        if self._label == "none":
            return NO_LABEL
        return None if observation.y is None else self._checked(observation.y)

    def late(self, label: LateLabel) -> LateLabel:
        """Return a late label, or raise ``BadRecordError`` if it is not wanted or unusable."""
        if self._label == "none":
            raise BadRecordError("a label that comes later is not wanted: label.type is 'none'")
        check_length("id", label.id)
        check_length("ts", label.ts)
        return replace(label, y=self._checked(label.y))

    def _checked(self, y: Target) -> Target:
        kind = self._label
        if kind == "number":
            return _number("y", y, lambda given: remedies.for_label(given, kind))
        if kind == "boolean" and type(y) is int and y in {0, 1}:
            return bool(y)  # as in files
        # in Python, bool is an int
        if type(y) is not {"boolean": bool, "integer": int, "string": str}[kind]:
            remedy = remedies.for_label(y, kind)
            raise BadRecordError(f"y must be {LABELS[kind]}, not {describe(y)}{remedy}")
        check_length("y", y)
        return y


def is_late_label(fields: Mapping[str, Any], features: Collection[str]) -> bool:
    """Return whether a message of ``features`` is a label that comes later.

    It has an ``id``, and no ``x``. But more than half of the features, and at least two, in an
    object of another name, or all of them beside ``y``, if they are several and none is null, are
    an observation with a misspelled ``x``, or without it; so is any object ``X``.

    Examples
    --------
    >>> is_late_label({"id": 7, "y": True, "age": 61}, ["age", "city"])
    True
    >>> is_late_label({"id": 7, "z": {"age": 61, "city": "Graz"}, "y": True}, ["age", "city"])
    False
    """
    if "x" in fields or "id" not in fields or isinstance(fields.get("X"), dict):
        return False
    beside = [name for name in features if name not in FIELDS]
    if len(beside) > 1 and all(fields.get(name) is not None for name in beside):
        return False
    objects = (value for value in fields.values() if isinstance(value, dict))
    held = max((sum(name in each for name in features) for each in objects), default=0)
    return held < 2 or 2 * held <= len(features)


def decoded_control(message: Message) -> Control:
    """Return the validated control record in a message, or raise ``BadRecordError``."""
    check_key(message)
    control = Control.of(message.fields())
    k, model = control.every, control.model
    if k is not None and not 1 <= k <= MOST_SKIPPED:
        raise BadRecordError(f"every must be from 1 to {MOST_SKIPPED:,}, not {describe(k)}")
    if model is not None:
        check_version("model.version", model.version)
        if not is_sha256(model.sha256):
            raise BadRecordError(
                "model.sha256 must be 64 hexadecimal digits, 0 to 9 and a to f, not "
                f"{_escaped(model.sha256)}"
            )
    if control.withdraw is not None:
        check_version("withdraw", control.withdraw)
    return control


def check_version(name: str, version: str) -> None:
    """Raise ``BadRecordError`` unless a text can be a model's name.

    Records and log lines contain it: control characters could forge lines.
    """
    if not 1 <= len(version) <= MAX_VERSION:
        raise BadRecordError(
            f"{name} has {len(version):,} characters, but must have 1 to {MAX_VERSION}"
        )
    if not version.isprintable():
        raise BadRecordError(f"{name} must be printable, not {_escaped(version)}")


def _escaped(text: str) -> str:
    """Return the beginning of a text, escaped for the log."""
    return f"a string {text[:60]!a}" + ("…" if len(text) > 60 else "")


def _number(name: str, value: Value, remedy: Callable[[Value], str]) -> float:
    if isinstance(value, bool | str) or not math.isfinite(value):
        raise BadRecordError(
            f"{name} must be a finite number, not {describe(value)}{remedy(value)}"
        )
    if not is_moderate(value):
        raise BadRecordError(
            f"{name} must lie between -{MAX_NUMBER:g} and {MAX_NUMBER:g}, not {describe(value)}"
        )
    return float(value)


def _category(name: str, value: Value) -> Value:
    if isinstance(value, float):
        raise BadRecordError(
            f"{name} must be a category (string, integer or boolean), not {describe(value)}; "
            '"numeric" features take it'
        )
    check_length(name, value)
    return value
