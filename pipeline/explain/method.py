"""The interface of a method of explanation: ask, answer, store."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fluxplain.evaluate import Encoding, Evaluator, Observed, Table
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.table import Labels
from fluxplain.explain.curve import Grid
from fluxplain.explain.losses import Loss, Target
from fluxplain.explain.players import Players

Axis = Floats | Grid
"""Evaluation points of a feature: numbers as an array, or categories."""


class Question(NamedTuple):
    """The inputs that a method asks about.

    Attributes
    ----------
    rows
        Shape (inputs, features), with the columns of the observation.
    about
        What the method needs to sort the outputs.
    """

    rows: Floats
    about: Any = None


class Answers(NamedTuple):
    """The outputs by player, as an evaluation carries them.

    Attributes
    ----------
    names
        The players that were asked about.
    labels
        The labels of the outputs' columns: classes, or None for a number.
    blocks
        Each player's outputs, shape (outputs, labels).
    points
        Each player's evaluation points, of a pair those of both; None if the method has none.
    """

    names: Sequence[str]
    labels: Labels
    blocks: Floats | Sequence[Floats]
    points: Sequence[Axis | tuple[Axis, Axis]] | None = None


class Given(NamedTuple):
    """Arguments that every method gets besides its settings.

    Attributes
    ----------
    players
        Features and groups.
    pairs
        Pair → its features.
    asked
        Names of the players, or features, and pairs to ask about.
    categorical
        The categorical features.
    alpha
        The first smoothing rate.
    rng_of
        Gives random numbers by name; those of the name ``""`` are the method's.
    """

    players: Players
    pairs: Mapping[str, tuple[str, str]]
    asked: Collection[str]
    categorical: Collection[str]
    alpha: float
    rng_of: Callable[[str], random.Random]


class Method(Protocol):
    """Asks a model about changed inputs.

    It draws the same random numbers for any subset of players, so that shards, which divide the
    players among them, draw the same samples.

    The pipeline makes it by its class method ``configured(given, **settings)``, whose arguments are
    :class:`Given` and the settings of its table.

    Attributes
    ----------
    needs_label
        Whether the method explains the loss, so that an observation needs a label.
    """

    needs_label: bool

    def prepare(self, encoding: Encoding) -> None:
        """Encode the stored values, which may extend the encoding, before the next observation."""
        ...

    def ask(self, observed: Observed) -> Question | None:
        """Return the question about an observation; None while warming up."""
        ...

    def see(self, prediction: Table) -> None:
        """Take the model's output on the observation itself."""
        ...

    def answer(self, question: Question, prediction: Table, table: Table) -> Answers:
        """Return the outputs by player.

        Parameters
        ----------
        question
            The question.
        prediction
            The output on the observation itself; one row, which :meth:`see` has taken.
        table
            The outputs on the question's rows.
        """
        ...

    def store(self, observed: Observed) -> None:
        """Store an explained observation as a source of replacements."""
        ...

    def forget_model(self) -> None:
        """Forget the outputs of the former model."""
        ...

    def go_on(self, before: Sequence[Any]) -> None:
        """Take over the samples of methods of this class, which covered at least these players."""
        ...


class ImportanceMethod(Method, Protocol):
    """A method whose answers become one increment per player."""

    players: Players

    def increments(
        self, loss: Loss, ys: Sequence[Target], labels: Labels, predictions: Floats, blocks: Floats
    ) -> Floats:
        """Return the increments of the importance, one per block.

        There is one label and one prediction for all blocks (several players of one observation),
        or one for each (several observations of one player).

        Parameters
        ----------
        loss, ys, labels
            The loss, the observations' labels, and the labels of the outputs' columns.
        predictions
            The outputs on the observations themselves, shape (blocks or 1, labels).
        blocks
            The answers, shape (blocks, outputs, labels).
        """
        ...


def as_grid(axis: Axis) -> Grid:
    """Return evaluation points as a list."""
    return axis.tolist() if isinstance(axis, np.ndarray) else list(axis)


def copies(observed: Observed, n: int) -> Floats:
    """Return n rows of the observation itself."""
    rows = np.empty((n, len(observed.features)))
    rows[:] = observed.numbers
    return rows


def ask_model(
    evaluator: Evaluator, observed: Observed, questions: Sequence[Question | None]
) -> tuple[Table, list[Table]]:
    """Return the output on the observation itself, and the outputs on each question's inputs.

    Raises
    ------
    NoOutputError
        If the model has no output yet.
    """
    asked = [each.rows for each in questions if each is not None]
    rows = np.concatenate([observed.numbers[None, :], *asked])
    table = evaluator(Inputs(observed, rows))
    if len(table.numbers) != len(rows):
        raise ValueError(f"the evaluator gave {len(table.numbers)} outputs on {len(rows)} inputs")
    tables, begin = [], 1
    for question in questions:
        end = begin + (0 if question is None else len(question.rows))
        tables.append(table.part(begin, end))
        begin = end
    return table.part(0, 1), tables
