"""The interface of a method of explanation: ask, answer, store."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from fluxplain.evaluate import Encoding, Evaluator, Observed, Table
from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.table import MIXED, Labels, in_order
from fluxplain.explain import kernels
from fluxplain.explain.curve import Grid
from fluxplain.explain.losses import Loss, Target
from fluxplain.explain.players import Players

Axis = Floats | Grid
"""Evaluation points of a feature: numbers as an array, or categories."""


_SPREAD = Direct(kernels.spread)


class Question(NamedTuple):
    """The inputs that a method asks about.

    There are ``n`` of them: ``put`` turns copies of the observation, shape (n, columns), into them,
    before another observation is stored.
    ``about`` is what the method needs to sort the outputs.
    """

    n: int
    put: Callable[[Floats], None]
    about: Any = None

    @classmethod
    def of(cls, rows: Floats, about: Any = None) -> Self:
        """Return the question about these inputs, shape (inputs, columns)."""
        return cls(len(rows), lambda copies: np.copyto(copies, rows), about)


class Answers(NamedTuple):
    """The outputs by player, as an evaluation carries them.

    ``labels`` are those of the outputs' columns. Each block has a player's outputs, shape (outputs,
    labels), and ``points`` its evaluation points, of a pair those of both; None without points.
    Those of numeric features may be one array.
    """

    names: Sequence[str]
    labels: Labels
    blocks: Floats | Sequence[Floats]
    points: Sequence[Axis | tuple[Axis, Axis]] | Floats | None = None


def labels_of(known: Labels, own: Labels, found: Collection[tuple[Answers, int]]) -> Labels:
    """Return the known labels of a player's outputs, followed by new ones.

    A model may leave a class out. Its outputs have it nevertheless if it is in those on other
    inputs, and on which ones the model was asked depends on the shard. So a class counts only where
    its probability is above 0.

    Parameters
    ----------
    known
        The labels so far; empty for numbers.
    own
        Those of the output on the observation itself.
    found
        Answers about the player, each with its place there.

    Raises
    ------
    ValueError
        If some outputs are numbers and some probabilities.
    """
    given = {label: None for each, _ in found for label in each.labels}
    if None in {*own, *given} and {*own, *given} != {None}:
        raise ValueError(MIXED)
    more = [
        label
        for label in given
        if label not in own
        and any(
            np.any(np.asarray(each.blocks[place])[:, each.labels.index(label)])
            for each, place in found
            if label in each.labels
        )
    ]
    labels = (*own, *in_order(more))
    return labels if labels == (None,) else tuple(dict.fromkeys((*known, *labels)))


class Given(NamedTuple):
    """Arguments that every method gets besides its settings.

    ``pairs`` maps a pair to its features, ``asked`` names what to ask about, ``alpha`` is the first
    smoothing rate, and ``rng_of`` gives random numbers by name; those of the name ``""`` are the
    method's.
    """

    players: Players
    pairs: Mapping[str, tuple[str, str]]
    asked: Collection[str]
    categorical: Collection[str]
    alpha: float
    rng_of: Callable[[str], random.Random]


class Method(ABC):
    """Asks a model about changed inputs.

    It draws the same random numbers for any subset of players, so that shards, which divide the
    players among them, draw the same samples.

    The pipeline makes it by its class method ``configured(given, **settings)``, whose arguments are
    :class:`Given` and the settings of its table.
    """

    @property
    @abstractmethod
    def reach(self) -> int | None:
        """Observations over which answers depend on each other, as they share samples.

        None if they are biased by an unknown amount: then no standard error would hold.
        """

    @abstractmethod
    def prepare(self, encoding: Encoding) -> None:
        """Encode the stored values, which may extend the encoding, before the next observation."""

    @abstractmethod
    def ask(self, observed: Observed) -> Question | None:
        """Return the question about an observation; None while warming up."""

    def see(self, prediction: Table) -> None:  # noqa: B027  few methods need it
        """Take the model's output on the observation itself."""

    @abstractmethod
    def answer(self, question: Question, prediction: Table, table: Table) -> Answers:
        """Return the outputs by player, from those on the question's rows, ``table``.

        ``prediction`` is the output on the observation itself, which :meth:`see` has taken.
        """

    @abstractmethod
    def store(self, observed: Observed) -> None:
        """Store an explained observation as a source of replacements."""

    def forget_model(self) -> None:  # noqa: B027  few methods keep any
        """Forget the outputs of the former model."""

    @abstractmethod
    def take_over(self, before: Sequence[Any]) -> None:
        """Take over the samples of methods of this class, which covered at least these players."""


class ImportanceMethod(Method):
    """A method whose answers become one increment per player."""

    players: Players

    @staticmethod
    @abstractmethod
    def increments(
        loss: Loss, ys: Sequence[Target], labels: Labels, predictions: Floats, blocks: Floats
    ) -> Floats:
        """Return the increments of the importance, one per block.

        There is one label and one prediction for all blocks (several players of one observation),
        or one for each (several observations of one player). ``predictions`` are the outputs on the
        observations themselves, shape (blocks or 1, labels); ``blocks`` are the answers, shape
        (blocks, outputs, labels).

        Each increment depends on its own block, label and prediction only: how many are given at
        once is arbitrary. A classifier that has learned no class yet gives 0 columns, and ``ys``
        are None if the method needs no label.
        """

    @staticmethod
    def moves(labels: Labels, predictions: Floats, blocks: Floats) -> Floats:
        """Return how far each player moves the output, whatever the label is.

        Arguments as of :meth:`increments`. By default the mean distance of its outputs from the one
        on the observation itself; with classes, half of the sum over all.
        """
        found: Floats = distances(labels, blocks - predictions[:, None, :]).mean(axis=1)
        return found


class OutputMethod(ImportanceMethod):
    """A method about the model's output: its increments are how far players move that."""

    @classmethod
    def increments(
        cls,
        loss: Loss,  # noqa: ARG003  it is about the output
        ys: Sequence[Target],  # noqa: ARG003
        labels: Labels,
        predictions: Floats,
        blocks: Floats,
    ) -> Floats:
        """Return how far each player moves the output."""
        return cls.moves(labels, predictions, blocks)


def distances(labels: Labels, differences: Floats) -> Floats:
    """Return the sizes of differences of outputs, whose last axis are the labels."""
    found: Floats = abs(differences).sum(axis=-1) * (1.0 if labels == (None,) else 0.5)
    return found


def as_grid(axis: Axis) -> Grid:
    """Return evaluation points as a list: of categories the same one, until there are others."""
    return axis.tolist() if isinstance(axis, np.ndarray) else axis


def copies(observed: Observed, n: int) -> Floats:
    """Return n rows of the observation itself."""
    rows = np.empty((n, len(observed.features)))
    _SPREAD.call(rows, observed.numbers)
    return rows


def ask_model(
    evaluator: Evaluator, observed: Observed, questions: Sequence[Question | None]
) -> tuple[Table, list[Table]]:
    """Return the output on the observation itself, and the outputs on each question's inputs.

    Raises ``NoOutputError`` if the model has no output yet.
    """
    inputs = inputs_of(observed, questions)
    table = evaluator(inputs)
    # models may return any layout and type; compiled functions take this one
    numbers = np.ascontiguousarray(table.numbers, np.float64)
    if numbers.shape != (len(inputs.rows), len(table.labels)):
        given = f"outputs of the shape {numbers.shape} on {len(inputs.rows)} inputs"
        raise ValueError(f"the evaluator gave {given}, for {len(table.labels)} labels")
    table = Table(table.labels, numbers)
    return table.part(0, 1), parts_of(table, questions)


def parts_of(table: Table, questions: Iterable[Question | None]) -> list[Table]:
    """Return the outputs on each question's inputs, from those on :func:`inputs_of` them."""
    tables, begin = [], 1
    for question in questions:
        end = begin + (0 if question is None else question.n)
        tables.append(table.part(begin, end))
        begin = end
    return tables


def inputs_of(observed: Observed, questions: Iterable[Question | None]) -> Inputs:
    """Return the observation itself, and after it the inputs of the questions."""
    asked = [question for question in questions if question is not None]
    rows = copies(observed, 1 + sum([question.n for question in asked]))
    begin = 1
    for n, put, _ in asked:
        put(rows[begin : begin + n])
        begin += n
    return Inputs(observed, rows)
