"""Frozen forests, one of each concept of the Agrawal generator, and their SAGE values.

Those of a whole batch come from one call of the model: what ``batch_sage`` gives, for less.
"""

import itertools
import random
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from river import forest
from river.datasets import synth

from fluxplain.evaluate import Encoding, Inputs, Table, evaluator_for
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import aligned
from tests.kit.support import agrawal
from tests.measure.experiments.streams import Record

Places = NDArray[np.int64]

CONCEPTS = 6
TREES = 3

Ask = Callable[[Floats], Floats]
"""Inputs, shape (rows, features) → probabilities of the classes 0 and 1, shape (rows, 2)."""

CLIP = 1e-15
"""As the library's cross-entropy."""


class Forests:
    """An evaluator of the forest in use, whose place is ``used``; they have the classes 0 and 1."""

    def __init__(self, forests: Sequence[forest.ARFClassifier]) -> None:
        self._evaluators = [evaluator_for(each, "hoeffding") for each in forests]
        self.used = 0

    def __call__(self, inputs: Inputs) -> Table:
        return self._evaluators[self.used](inputs)

    def probabilities(self, features: Sequence[str], rows: Floats) -> Floats:
        """Return the probabilities of 0 and 1 for whole inputs, shape (rows, 2)."""
        x = dict(zip(features, rows[0].tolist(), strict=True))
        return aligned(self(Inputs(Encoding().observe(x), rows)), (0, 1))


def as_arrays(records: Sequence[Record]) -> tuple[list[str], Floats, Places]:
    """Return the features, the observations, shape (records, features), and the labels."""
    xs = np.array([list(x.values()) for x, _ in records], np.float64)
    return list(records[0][0]), xs, np.array([y for _, y in records])


def trained_forests(seed: int, training: int) -> Forests:
    """Return a forest of each concept, trained on so many records of it."""
    forests = []
    for concept in range(CONCEPTS):
        model = forest.ARFClassifier(n_models=TREES, seed=CONCEPTS * seed + concept)
        for x, y in agrawal(training, CONCEPTS * seed + concept, concept):
            model.learn_one(x, y)
        forests.append(model)
    return Forests(forests)


def switching_stream(probability: float, n: int, seed: int) -> tuple[list[Record], Places]:
    """Return n records, and the concept of each.

    At a record the concept becomes another one with the probability, each of the others as likely.
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


def array_sage(ask: Ask, xs: Floats, ys: Places, orders: Places, hidden: Floats) -> Floats:
    """Return what each observation adds to the SAGE values of a binary classifier.

    The loss is the cross-entropy.

    Each observation of ``xs``, shape (n, features), with a label of ``ys``, 0 or 1, has an order in
    which the features are revealed. In place of hidden ones stand m inputs for each observation and
    number of revealed features from 1 on: ``hidden`` has the shape (n, features - 1, m, features),
    or one that broadcasts to it. The increments have the shape of ``xs``, the values are their
    means. What the loss of a mean of m outputs has too much is taken off, to second order.

    References
    ----------
    iSAGE (Muschalik et al. 2023), Algorithm 5.
    """
    n, d = xs.shape
    rows = np.where(revealed(orders)[:, :, None], xs[:, None, None], hidden)
    all_revealed = ask(xs)
    drawn = ask(rows.reshape(-1, d)).reshape(n, d - 1, -1, 2)
    some_revealed, m = drawn.mean(axis=2), drawn.shape[2]
    none_revealed = np.broadcast_to(all_revealed.mean(axis=0), (n, 1, 2))
    outputs = np.concatenate([none_revealed, some_revealed, all_revealed[:, None]], axis=1)
    given = np.take_along_axis(outputs, ys[:, None, None], axis=2)[:, :, 0]
    losses = -np.log(np.clip(given, CLIP, 1.0 - CLIP))
    if m > 1:
        variances = np.take_along_axis(drawn.var(axis=2, ddof=1) / m, ys[:, None, None], axis=2)
        is_smooth = (given[:, 1:-1] > CLIP) & (given[:, 1:-1] < 1.0 - CLIP)
        squares = np.where(is_smooth, given[:, 1:-1], 1.0) ** 2
        losses[:, 1:-1] -= is_smooth * 0.5 * variances[:, :, 0] / squares
    increments: Floats = np.take_along_axis(-np.diff(losses, axis=1), _places(orders), axis=1)
    return increments


def revealed(orders: Places) -> NDArray[np.bool_]:
    """Return for 1, 2, … revealed features which ones, shape (n, features - 1, features)."""
    steps = np.arange(1, orders.shape[1])
    known: NDArray[np.bool_] = _places(orders)[:, None, :] < steps[:, None]
    return known


def _places(orders: Places) -> Places:
    return np.argsort(orders, axis=1)


def interventional(xs: Floats, chosen: Places) -> Floats:
    """Return whole observations in place of hidden features, the same along the order.

    ``chosen`` are the places of m of them for each observation, shape (n, m).
    """
    return xs[chosen][:, None]


def random_draws(rng: np.random.Generator, n: int, d: int, m: int) -> tuple[Places, Places]:
    """Return random orders of d features and m choices of an observation, for each of n."""
    orders = rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)
    return orders, rng.integers(n, size=(n, m))
