"""The model's output on each observation, as a prediction."""

import math
from collections.abc import Callable, Mapping

from fluxplain.config import Config, LabelType
from fluxplain.evaluate import Label, Output
from fluxplain.explain.losses import Target, predicted_class
from fluxplain.schemas import Prediction
from fluxplain.schemas.prediction import LabelCounts
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.limits import check_fits


class Predictions:
    """Checks outputs, measures their loss, and writes a prediction of each observation."""

    def __init__(self, config: Config, stream: str) -> None:
        self._stream = stream
        self._label = config.label.type
        self._loss = config.loss()
        self._previous_seq: int | None = None

    def loss(self, sample: Sample, output: Output) -> float | None:
        """Return the loss of an output; None without a label.

        Raises ``ValueError`` if the output is too large or has an impossible class, or if the loss
        is not finite.
        """
        classes = list(output) if isinstance(output, dict) else []
        check_fits("the prediction", 2 * max(len(classes), 1), classes)
        _check_classes(classes, self._label)
        if sample.y is None:
            return None
        loss = float(self._loss(sample.y, output))
        if not math.isfinite(loss):
            raise ValueError(f"the loss is not finite: {loss}")
        return loss

    def of(
        self,
        sample: Sample,
        output: Output | None,
        loss: float | None,
        *,
        labels: LabelCounts | None,
        model_version: str | None,
    ) -> Prediction:
        """Return the prediction record of an observation, empty if the model had no output."""
        late = sample.unlabelled
        record = Prediction(
            stream=self._stream,
            seq=sample.seq,
            previous_seq=self._previous_seq,
            id=sample.id,
            ts=sample.ts,
            prediction=predicted(output),
            classes=list(output) if isinstance(output, dict) else None,
            probabilities=list(output.values()) if isinstance(output, dict) else None,
            y=None if self._label == "none" else sample.y,
            loss=loss,
            observation=late.seq if late else None,
            first_prediction=late.prediction if late else None,
            labels=labels,
            missing=list(sample.missing) or None,
            model_version=model_version,
        )
        self._previous_seq = sample.seq
        return record


def predicted(output: Output | None) -> Target | None:
    """Return the predicted number or class."""
    return predicted_class(output) if isinstance(output, dict) else output


def _check_classes(classes: list[Label], kind: LabelType) -> None:
    """Raise ``ValueError`` for a class that no label can have: all losses would be wrong."""
    could_be = _COULD_BE.get(kind)
    other = [label for label in classes if could_be is not None and not could_be(label)]
    if other:
        takes = {bool: "boolean", int: "integer", str: "string"}.get(type(other[0]), "string")
        raise ValueError(
            f"an output has the class {other[0]!r}, but label.type is {kind!r}: set it to "
            f"{takes!r} and send labels as the model has them, or take a model that has learned "
            "these labels"
        )


_COULD_BE: Mapping[LabelType, Callable[[Label], bool]] = {
    "boolean": lambda label: label in {False, True},  # 0 and 1 are equal to them
    "integer": lambda label: not isinstance(label, str),
    "string": lambda label: isinstance(label, str),
}
