"""How a model of arrays looks to whoever learns and asks one observation at a time, or many.

Many observations are one call. Where they come in other company, as with another number of shards,
an output may differ in its last bits.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from pipeline.evaluate import Label, Observation
from pipeline.evaluate.inputs import Floats
from pipeline.models.encoder import Rows


class Learner(Protocol):
    """What learns rows."""

    def learn(self, row: Floats, target: Any) -> None:
        """Learn one row, shape (1, columns): its class, its number, or the numbers to give."""
        ...

    def outputs(self, rows: Floats) -> Floats:
        """Return what it says of each row, shape (rows, outputs)."""
        ...


class Front:
    """What all have in common.

    Parameters
    ----------
    name
        Of the model, for people.
    rows
        Turns observations into rows.
    learner
        Learns them.
    """

    def __init__(self, name: str, rows: Rows, learner: Learner) -> None:
        self._name = name
        self._rows = rows
        self._learner = learner

    def __str__(self) -> str:
        return self._name

    def _ask(self, xs: Sequence[Observation]) -> Floats:
        return self._learner.outputs(self._rows.rows(xs))

    def _learn(self, x: Observation, target: object) -> None:
        self._rows.learn(x)
        self._learner.learn(self._rows.rows([x]), target)


class Classifier(Front):
    """Says how probable each class is; see :class:`Front`.

    Parameters
    ----------
    name, rows, learner
        As for all.
    classes
        What the outputs of the learner stand for.
    """

    def __init__(self, name: str, rows: Rows, learner: Learner, classes: Sequence[Label]) -> None:
        super().__init__(name, rows, learner)
        self.classes = list(classes)

    def learn_one(self, x: Observation, y: Label) -> None:
        """Learn the class of an observation.

        Raises
        ------
        ValueError
            If there is no such class.
        """
        if y not in self.classes:
            raise ValueError(f"the label {y!r} is none of {self.classes}")
        self._learn(x, y)

    def predict_proba_one(self, x: Observation) -> dict[Label, float]:
        """Return class → probability."""
        return self.predict_proba_many([x])[0]

    def predict_proba_many(self, xs: Sequence[Observation]) -> list[dict[Label, float]]:
        """Return class → probability for each observation."""
        shares = self._ask(xs).tolist()
        return [dict(zip(self.classes, share, strict=True)) for share in shares]


class Regressor(Front):
    """Gives a number; see :class:`Front`."""

    def learn_one(self, x: Observation, y: float) -> None:
        """Learn the number of an observation."""
        self._learn(x, y)

    def predict_one(self, x: Observation) -> float:
        """Return the number."""
        return self.predict_many([x])[0]

    def predict_many(self, xs: Sequence[Observation]) -> list[float]:
        """Return the number for each observation."""
        numbers: list[float] = self._ask(xs)[:, 0].tolist()
        return numbers


class Detector(Front):
    """Says how unusual an observation is, by the learner's only output; see :class:`Front`."""

    def learn_one(self, x: Observation) -> None:
        """Learn an observation."""
        self._learn(x, None)

    def score_one(self, x: Observation) -> float:
        """Return how unusual an observation is: the more, the higher."""
        return self.score_many([x])[0]

    def score_many(self, xs: Sequence[Observation]) -> list[float]:
        """Return how unusual each observation is."""
        scores: list[float] = self._scores(self._rows.rows(xs)).tolist()
        return scores

    def _scores(self, rows: Floats) -> Floats:
        return self._learner.outputs(rows)[:, 0]


class Autoencoder(Detector):
    """Learns to give back what it is given; what it gives back badly is unusual.

    The score is the mean squared difference between the row and what comes out.
    """

    def learn_one(self, x: Observation) -> None:
        """Learn an observation."""
        self._rows.learn(x)
        row = self._rows.rows([x])
        self._learner.learn(row, row[0])

    def _scores(self, rows: Floats) -> Floats:
        scores: Floats = ((self._learner.outputs(rows) - rows) ** 2).mean(axis=1)
        return scores
