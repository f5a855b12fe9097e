"""Frozen forests, one of each concept of the Agrawal generator, and a stream that switches."""

import itertools
import random
from collections.abc import Sequence

import numpy as np
from river import forest
from river.datasets import synth

from fluxplain.evaluate import Encoding, Inputs, Table, evaluator_for
from fluxplain.evaluate.table import aligned
from tests.measure.experiments.array_sage import Floats, Places
from tests.measure.experiments.streams import Record

CONCEPTS = 6
TREES = 3


class Forests:
    """Forests that learn no more, and which of them is in use: an evaluator of that one.

    Parameters
    ----------
    forests
        ``river.forest.ARFClassifier`` of classes 0 and 1.

    Attributes
    ----------
    used
        The place of the one in use.
    """

    def __init__(self, forests: Sequence[forest.ARFClassifier]) -> None:
        self._evaluators = [evaluator_for(each, "hoeffding") for each in forests]
        self.used = 0

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`~fluxplain.evaluate.Evaluator`."""
        return self._evaluators[self.used](inputs)

    def probabilities(self, features: Sequence[str], rows: Floats) -> Floats:
        """Return the probabilities of 0 and 1 for whole inputs, shape (rows, 2)."""
        x = dict(zip(features, rows[0].tolist(), strict=True))
        return aligned(self(Inputs(Encoding().observe(x), rows)), (0, 1))


def concept_records(concept: int, seed: int, n: int) -> list[Record]:
    """Return the first records of a concept."""
    return list(synth.Agrawal(classification_function=concept, seed=seed).take(n))


def as_arrays(records: Sequence[Record]) -> tuple[list[str], Floats, Places]:
    """Return the features, the observations, shape (records, features), and the labels."""
    xs = np.array([list(x.values()) for x, _ in records], np.float64)
    return list(records[0][0]), xs, np.array([y for _, y in records])


def trained_forests(seed: int, training: int) -> Forests:
    """Return a forest of each concept, trained on so many records of it."""
    forests = []
    for concept in range(CONCEPTS):
        model = forest.ARFClassifier(n_models=TREES, seed=CONCEPTS * seed + concept)
        for x, y in concept_records(concept, CONCEPTS * seed + concept, training):
            model.learn_one(x, y)
        forests.append(model)
    return Forests(forests)


def switching_stream(probability: float, n: int, seed: int) -> tuple[list[Record], Places]:
    """Return records, and the concept of each.

    Parameters
    ----------
    probability
        With what the concept becomes another one, each as likely, at a record.
    n
        How many records.
    seed
        Of the switches, and of the generators of all concepts.
    """
    rng = random.Random(seed)
    streams = [
        iter(synth.Agrawal(classification_function=concept, seed=rng.getrandbits(31)))
        for concept in range(CONCEPTS)
    ]
    records, concepts = [], []
    concept = rng.randrange(CONCEPTS)
    for _ in itertools.repeat(None, n):
        if rng.random() < probability:
            concept = rng.choice([c for c in range(CONCEPTS) if c != concept])
        records.append(next(streams[concept]))
        concepts.append(concept)
    return records, np.array(concepts)
