"""Anomaly detectors, explained through their score."""

from typing import Any

from fluxplain.evaluate import Label, Observation, Output


def minus_score(y: object, output: Output) -> float:  # noqa: ARG001  a loss is given the label
    """Return minus the score: the loss of a stream without labels.

    So a feature's importance is its contribution to the score. iPFI: how much the score would fall
    with other values. iSAGE: the feature's share of the score's excess over the mean.

    Raises
    ------
    TypeError
        If the output consists of probabilities.
    """
    if isinstance(output, dict):
        raise TypeError("minus_score needs a score, but the model gave class probabilities")
    return -output


minus_score.is_curved = False  # type: ignore[attr-defined]


def title(model: object) -> str:
    """Return a model's own name, or else its class."""
    return type(model).__name__ if type(model).__str__ is object.__str__ else str(model)


class _Detecting:
    """Wraps a detector, which learns without the label."""

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def __str__(self) -> str:
        return title(self.detector)

    def learn_one(self, x: Observation, y: object) -> None:  # noqa: ARG002  as other models
        """Learn the observation."""
        self.detector.learn_one(x)


class Scored(_Detecting):
    """A detector (``score_one(x)``, ``learn_one(x)``) whose prediction is its score.

    Its ``score_many`` becomes ``predict_many``, except River's, which takes data frames.
    """

    def __init__(self, detector: Any) -> None:
        from river import base  # noqa: PLC0415  the explainer needs the loss, but no River

        super().__init__(detector)
        score_many = getattr(detector, "score_many", None)
        if callable(score_many) and not isinstance(detector, base.Base):
            self.predict_many = score_many

    def predict_one(self, x: Observation) -> float:
        """Return the score."""
        return self.detector.score_one(x)  # type: ignore[no-any-return]


def as_asked(model: Any, label: str) -> Any:
    """Return a model in the form that is explained: a detector with its score as prediction.

    ``label`` is the label's type; a model for any other than ``"none"`` is returned as it is.

    Examples
    --------
    >>> from river import anomaly
    >>> as_asked(anomaly.HalfSpaceTrees(seed=1), "none").predict_one({"a": 0.5})
    0
    """
    return Scored(model) if label == "none" else model


class FaultClassifier(_Detecting):
    """Uses a detector's score as the probability of ``True``, a fault.

    It learns from every observation, without the label. One of River's filters (``QuantileFilter``,
    ``ThresholdFilter``) gives 1 or 0.

    Parameters
    ----------
    detector
        One of River's, or a pipeline that ends with one; a filter, or with scores between 0 and 1.

    Examples
    --------
    >>> from river import anomaly
    >>> model = FaultClassifier(anomaly.HalfSpaceTrees(seed=1))
    >>> model.learn_one({"a": 0.5}, False)
    >>> model.predict_proba_one({"a": 0.5})
    {False: 1.0, True: 0.0}
    """

    def __init__(self, detector: Any) -> None:
        from river import base  # noqa: PLC0415  as above

        from fluxplain.evaluate.generic import final_step  # noqa: PLC0415  loads River

        super().__init__(detector)
        final: Any = final_step(detector)
        self._filter = final if isinstance(final, base.AnomalyFilter) else None

    def predict_proba_one(self, x: Observation) -> dict[Label, float]:
        """Return both probabilities; raise ValueError if the score is outside [0, 1]."""
        score = self.detector.score_one(x)
        p = float(score if self._filter is None else self._filter.classify(score))
        if not 0.0 <= p <= 1.0:
            raise ValueError(
                f"the score {p:g} is not a probability: put anomaly.QuantileFilter or "
                "anomaly.ThresholdFilter around the detector, or set label.type to 'none'"
            )
        return {False: 1.0 - p, True: p}
