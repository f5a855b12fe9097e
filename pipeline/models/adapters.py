"""Adapters that give array-based models River's one-record interface.

Many observations are one call. In a batch of another size, as with another number of shards, an
output may differ in its last bits.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from fluxplain.evaluate import Label, Observation
from fluxplain.evaluate.encoding import Floats
from fluxplain.models.encoder import Rows

CLASS_TYPES = {"boolean": bool, "integer": int, "string": str}
"""Label type → type of its classes. The other label types are ``"number"`` and ``"none"``."""


class Learner(Protocol):
    """An array-based model."""

    def learn(self, row: Floats, target: Any) -> None:
        """Learn one row, shape (1, columns); the target is a class, a number, or a row."""

    def outputs(self, rows: Floats) -> Floats:
        """Return the outputs, shape (rows, outputs)."""


class Adapter:
    """A learner with its row encoder, and a display name."""

    def __init__(self, name: str, rows: Rows, learner: Learner) -> None:
        self._name = name
        self._rows = rows
        self._learner = learner

    def __str__(self) -> str:
        return self._name

    def outputs(self, xs: Sequence[Observation]) -> Floats:
        """Return the learner's outputs, shape (observations, outputs)."""
        return self._learner.outputs(self._rows.rows(xs))

    def _learn(self, x: Observation, target: object) -> None:
        self._rows.learn(x)
        self._learner.learn(self._rows.rows([x]), target)


class Classifier(Adapter):
    """Predicts the probability of each class; the learner has an output for each."""

    def __init__(self, name: str, rows: Rows, learner: Learner, classes: Sequence[Label]) -> None:
        super().__init__(name, rows, learner)
        self.classes = list(classes)

    def learn_one(self, x: Observation, y: Label) -> None:
        """Learn the class of an observation; raise ValueError if it is unknown."""
        if y not in self.classes:
            raise ValueError(f"the label {y!r} is not one of {self.classes}")
        self._learn(x, y)

    def predict_proba_one(self, x: Observation) -> dict[Label, float]:
        """Return class → probability."""
        return self.predict_proba_many([x])[0]

    def predict_proba_many(self, xs: Sequence[Observation]) -> list[dict[Label, float]]:
        """Return class → probability for each observation."""
        return [dict(zip(self.classes, row, strict=True)) for row in self.outputs(xs).tolist()]


class Regressor(Adapter):
    """Predicts a number, the learner's only output."""

    def learn_one(self, x: Observation, y: float) -> None:
        """Learn the number of an observation."""
        self._learn(x, y)

    def predict_one(self, x: Observation) -> float:
        """Return the number."""
        return self.predict_many([x])[0]

    def predict_many(self, xs: Sequence[Observation]) -> list[float]:
        """Return the number for each observation."""
        return self.outputs(xs)[:, 0].tolist()  # type: ignore[no-any-return]


class Detector(Adapter):
    """Scores how unusual an observation is: the learner's only output."""

    def learn_one(self, x: Observation) -> None:
        """Learn an observation."""
        self._learn(x, None)

    def score_one(self, x: Observation) -> float:
        """Return the score; the higher, the more unusual."""
        return self.score_many([x])[0]

    def score_many(self, xs: Sequence[Observation]) -> list[float]:
        """Return the score of each observation."""
        return self.outputs(xs)[:, 0].tolist()  # type: ignore[no-any-return]


class Autoencoder(Detector):
    """Learns to reproduce its input; the score is the mean squared difference."""

    def learn_one(self, x: Observation) -> None:
        """Learn an observation."""
        self._rows.learn(x)
        row = self._rows.rows([x])
        self._learner.learn(row, row[0])

    def score_many(self, xs: Sequence[Observation]) -> list[float]:
        """Return the score of each observation."""
        rows = self._rows.rows(xs)
        scores: list[float] = ((self._learner.outputs(rows) - rows) ** 2).mean(axis=1).tolist()
        return scores


def adapter(
    label: str, name: str, rows: Rows, learner: Learner, classes: Sequence[Label]
) -> Adapter:
    """Return the adapter for a label type; an autoencoder without labels."""
    if label == "none":
        return Autoencoder(name, rows, learner)
    if label == "number":
        return Regressor(name, rows, learner)
    return Classifier(name, rows, learner, classes)


def output_count(label: str, rows: Rows, classes: Sequence[Label]) -> int:
    """Return the number of outputs of an adapter's learner."""
    return {"number": 1, "none": rows.width}.get(label, len(classes))


def check_label(label: str) -> None:
    """Raise ValueError for an unknown label type."""
    allowed = [*CLASS_TYPES, "number", "none"]
    if label not in allowed:
        raise ValueError(f"label is {label!r}, but must be one of {', '.join(allowed)}")


def classes_of(label: str, classes: Sequence[Label] | None) -> list[Label]:
    """Return the configured classes in scikit-learn's order; none for numbers.

    Raises ValueError if they are missing, too few, or of another type.

    Examples
    --------
    >>> classes_of("boolean", None), classes_of("string", ["no", "maybe"])
    ([False, True], ['maybe', 'no'])
    """
    if label not in CLASS_TYPES:
        return []
    if classes is None:
        if label == "boolean":
            return [False, True]
        example = "[0, 1]" if label == "integer" else '["no", "yes"]'
        raise ValueError(f"classes is missing: it must name all {label} labels, as {example}")
    if not isinstance(classes, Sequence) or isinstance(classes, str):
        raise ValueError(f"classes is {classes!r}, but must be a list")
    wrong = [each for each in classes if type(each) is not CLASS_TYPES[label]]
    if wrong:
        raise ValueError(f"classes has {wrong[0]!r}, but label.type is {label!r}")
    if len(set(classes)) < len(classes) or len(classes) < 2:
        raise ValueError(f"classes is {classes!r}, but must hold at least two, each once")
    return sorted(classes)
