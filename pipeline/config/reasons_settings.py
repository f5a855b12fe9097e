"""The table ``[reasons]``."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from fluxplain.config.base import Section, Share, Size, wrong
from fluxplain.config.label_settings import LabelType

Class = StrictBool | StrictInt | StrictStr
Label = Class
Finite = Annotated[float, Field(allow_inf_nan=False)]
Id = StrictInt | Finite | StrictStr

CLASSES: Mapping[LabelType, tuple[type, str]] = {
    "boolean": (bool, "true or false"),
    "integer": (int, "integers"),
    "string": (str, "texts"),
}
"""Type of the labels → that of the classes, and its name."""

MOST_NAMES = 1_000
"""Most features in a record: more might not fit into a message."""


class ReasonsSettings(Section):
    """Why single observations got their output: the contribution of each feature."""

    enabled: bool = False
    """Whether to publish reasons, in the topic `reasons`."""
    share: Share = 1.0
    """Share of the observations that get reasons, chosen at random among those that the other keys
    allow."""
    at_least: Finite | None = None
    """Give reasons only if the explained output is at least this."""
    at_most: Finite | None = None
    """Give reasons only if the explained output is at most this."""
    predicted: list[Class] = []
    """Give reasons only if the predicted class is one of these; by default for all."""
    ids: list[Id] = []
    """Observations that get reasons in any case, by their `id`. `"40"` and 40.0 stand for the
    number 40, too."""
    labels: Literal["predicted", "all"] | list[Label] = "predicted"
    """Classes whose probability is explained, each in a record of its own: the predicted one, all,
    or those in a list."""
    names: Annotated[int, Field(ge=1, le=MOST_NAMES)] = 10
    """Most features and groups in a record: those with the largest contributions."""
    reservoir_size: Size = 100
    """Recent observations that the output is compared with. Where records resemble the ones before,
    up to four times as many wait to be among them."""
    warm_up: Size | None = None
    """Observations before the first reasons; by default, and at most, `reservoir_size`."""
    error: Share = 0.05
    """Estimates end once no standard error exceeds this share of the largest contribution."""
    most_inputs: Annotated[int, Field(ge=10, le=1_000_000)] = 10_000
    """Most inputs to evaluate for the reasons of an observation, but at least `reservoir_size` and
    16 for each feature. An estimate that reaches this limit has larger standard errors than
    `error` asks for."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.warm_up is not None and self.warm_up > self.reservoir_size:
            reason = f"must be at most the reservoir_size, {self.reservoir_size}"
            raise wrong("warm_up", self.warm_up, reason)
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise wrong("at_least", self.at_least, f"must be at most at_most, {self.at_most}")
        if self.labels == []:
            raise wrong("labels", self.labels, "must be 'predicted', 'all', or name a class")
        return self

    def check(self, label: LabelType) -> None:
        """Raise ``ValueError`` if no output of a model with such labels can meet a condition.

        Without reasons nothing is raised: nobody waits for them.
        """
        if not self.enabled:
            return
        named = {"predicted": self.predicted, "labels": self.labels}
        for name, classes in named.items():
            if isinstance(classes, list) and classes:
                _check_classes(f"reasons.{name}", classes, label)
        if label not in CLASSES:
            return
        if self.at_least is not None and self.at_least > 1.0:
            reason = "must be at most 1: the explained output is a probability"
            raise wrong("reasons.at_least", self.at_least, reason)
        if self.at_most is not None and self.at_most < 0.0:
            reason = "must be at least 0: the explained output is a probability"
            raise wrong("reasons.at_most", self.at_most, reason)


def _check_classes(key: str, classes: list[Class], label: LabelType) -> None:
    if label not in CLASSES:
        remedy = "leave it out, and choose by reasons.at_least and at_most"
        reason = f"label.type is {label!r}, so there are no classes: {remedy}"
        raise wrong(key, classes, reason)
    kind, allowed = CLASSES[label]
    if any(type(each) is not kind for each in classes):
        raise wrong(key, classes, f"label.type is {label!r}, so classes must be {allowed}")
