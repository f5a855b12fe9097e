"""The table ``[label]``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fluxplain.config.base import Name, Section, wrong

LabelType = Literal["boolean", "integer", "string", "number", "none"]


class LabelSettings(Section):
    """The label that the model predicts, and late labels."""

    type: LabelType = "boolean"
    """Type of the labels: `"number"` for regression, `"none"` for anomaly detectors, which need no
    label; the others are classes."""
    max_classes: Annotated[int, Field(ge=2, le=10_000)] = 100
    """Most classes of integers and strings; labels of further ones go to dead-letters. An id in the
    place of a label would otherwise become a class each time, and a model of many is slow."""
    column: Name | None = None
    """Column of the label in a file, for `fluxplain replay` and `local`; `--label` overrides it."""
    topic: bool = False
    """Whether late labels have their own topic, `labels`; otherwise they arrive in `features`."""
    wait: Annotated[int, Field(ge=0, le=1_000_000)] = 10_000
    """How many observations an unlabelled one (with an `id`) may wait for its label."""
    wait_s: Annotated[float, Field(gt=0.0, le=10**9)] | None = None
    """How many seconds it may wait, by message timestamps; by default there is no limit."""
    unlabelled: Literal["count", "dead-letter"] = "count"
    """What to do with an observation whose label never arrives: only count it, or also send it to
    dead-letters."""

    @model_validator(mode="after")
    def _has_a_label(self) -> Self:
        for key in ("column", "topic"):
            if self.type == "none" and getattr(self, key):
                raise wrong(key, getattr(self, key), "type is 'none': there is no label")
        return self
