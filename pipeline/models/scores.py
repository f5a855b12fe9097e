"""Anomaly detectors, explained through their score."""

from collections.abc import Sequence
from typing import Any

from pipeline.evaluate import Label, Observation, Output


def minus_score(y: object, output: Output) -> float:  # noqa: ARG001  a loss is given the label
    """Return minus the score: the loss of a stream without labels.

    So the importance of a feature is what its value adds to the score: iPFI, by how much the score
    would fall with other values; iSAGE, the feature's share in what the score is above the mean.

    Raises
    ------
    TypeError
        If the output is no score, but probabilities.
    """
    if isinstance(output, dict):
        raise TypeError("minus_score needs a score, but the model gave class probabilities")
    return -output


def title(model: object) -> str:
    """Return what a model calls itself, or else its class.

    Examples
    --------
    >>> from river import preprocessing, tree
    >>> title(preprocessing.StandardScaler() | tree.HoeffdingTreeClassifier()), title(object())
    ('StandardScaler | HoeffdingTreeClassifier', 'object')
    """
    return type(model).__name__ if type(model).__str__ is object.__str__ else str(model)


class Scored:
    """A detector whose prediction is its score, and that is given a label, but does not get it.

    Parameters
    ----------
    detector
        Has ``score_one(x)`` and, unless it is frozen, ``learn_one(x)``.

    Examples
    --------
    >>> from river import anomaly
    >>> detector = Scored(anomaly.HalfSpaceTrees(n_trees=3, height=3, window_size=5, seed=1))
    >>> for _ in range(10):
    ...     detector.learn_one({"a": 0.5}, None)
    >>> detector.predict_one({"a": 0.5}) < detector.predict_one({"a": 0.9})
    True
    """

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def __str__(self) -> str:
        return title(self.detector)

    def learn_one(self, x: Observation, y: object) -> None:  # noqa: ARG002  as other models
        """Learn the observation; there is no label."""
        self.detector.learn_one(x)

    def predict_one(self, x: Observation) -> float:
        """Return the score."""
        score: float = self.detector.score_one(x)
        return score


class ScoredTogether(Scored):
    """One that takes many observations in one call, with ``score_many``."""

    def predict_many(self, xs: Sequence[Observation]) -> Sequence[float]:
        """Return the score of each observation."""
        scores: Sequence[float] = self.detector.score_many(xs)
        return scores


def as_asked(model: Any, label: str) -> Any:
    """Return a model as the pipeline asks it: without labels, for its score.

    Parameters
    ----------
    model
        Of any kind that can be explained.
    label
        The label's type; ``"none"`` without labels.
    """
    return scored(model) if label == "none" else model


def scored(detector: Any) -> Scored:
    """Return the detector as a model whose prediction is its score.

    River's own ``score_many`` takes data frames, so it is not used.
    """
    from river import base  # noqa: PLC0415  the explainer needs the loss, but no River

    is_rivers = isinstance(detector, base.Base)
    many = callable(getattr(detector, "score_many", None)) and not is_rivers
    return ScoredTogether(detector) if many else Scored(detector)


class FaultClassifier:
    """Takes a detector's score as the probability of ``True``, a fault.

    It learns from every observation, without the label. A filter of River's (``QuantileFilter``,
    ``ThresholdFilter``) says 1 or 0.

    Parameters
    ----------
    detector
        One of River's, or a pipeline that ends with one; its score must be between 0 and 1, or it
        a filter.

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

        from pipeline.evaluate.generic import final_step  # noqa: PLC0415  loads River

        self.detector = detector
        final: Any = final_step(detector)
        self._filter = final if isinstance(final, base.AnomalyFilter) else None

    def __str__(self) -> str:
        return title(self.detector)

    def learn_one(self, x: Observation, y: object) -> None:  # noqa: ARG002  as other models
        """Learn the observation; what it is does not matter."""
        self.detector.learn_one(x)

    def predict_proba_one(self, x: Observation) -> dict[Label, float]:
        """Return how probable it is that the observation is no fault, or one.

        Raises
        ------
        ValueError
            If the score is no probability.
        """
        score = self.detector.score_one(x)
        p = float(score if self._filter is None else self._filter.classify(score))
        if not 0.0 <= p <= 1.0:
            raise ValueError(
                f"the score {p:g} is no probability: put anomaly.QuantileFilter or "
                "anomaly.ThresholdFilter around the detector, or set label.type to 'none'"
            )
        return {False: 1.0 - p, True: p}
