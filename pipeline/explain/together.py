"""Several explainers of one model, asked with one evaluation."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

import numpy as np

from pipeline.evaluate import Evaluator, NoOutputError, Observation, Output
from pipeline.evaluate.inputs import NoNumberError
from pipeline.evaluate.table import Table, TableEvaluator
from pipeline.explain.losses import Target
from pipeline.explain.questions import Observed, Question


class Explainer(Protocol):
    """What asks a model about changed inputs, and takes its answers."""

    evaluator: Evaluator

    @property
    def values(self) -> dict[str, float]:
        """Feature → current importance."""
        ...

    def ask(self, observed: Observed) -> Question:
        """Return what to ask."""
        ...

    def take(self, y: Target | None, question: Any, answers: Sequence[Output] | Table) -> None:
        """Take the answers, in the order of the question's inputs."""
        ...

    def store(self, observed: Observed) -> None:
        """Keep the observation as a source of replacements, after it was explained."""
        ...


def explain_together(
    explainers: Sequence[Explainer], x: Observation, y: Target | None = None
) -> list[dict[str, float]]:
    """Explain one observation, before the model learns it, by several explainers at once.

    The estimates are those of each explainer's ``explain_one``; asking once costs less.

    Parameters
    ----------
    explainers
        Explainers of the same model.
    x
        Feature → value; every explained feature must be there.
    y
        The label; without one, only explainers that need none may be among them.

    Returns
    -------
    The current estimates of each, in order.

    Raises
    ------
    ValueError
        If they explain different models, or ask it in different ways.

    Examples
    --------
    >>> from pipeline.explain import IncrementalPDP, IncrementalPFI
    >>> from river import linear_model
    >>> model = linear_model.LinearRegression()
    >>> pfi = IncrementalPFI(model, ["a"], loss="squared_error", reservoir_size=2, seed=1)
    >>> pdp = IncrementalPDP(model, ["a"], storage_size=5, seed=1)
    >>> for a in range(20):
    ...     importance, effect = explain_together([pfi, pdp], {"a": a % 3}, 2.0 * a)
    ...     model.learn_one({"a": a % 3}, 2.0 * a)
    >>> importance == pfi.values, effect == pdp.values
    (True, True)
    """
    evaluator = explainers[0].evaluator if explainers else None
    for explainer in explainers:
        if explainer.evaluator is not evaluator:
            raise ValueError("the explainers ask different models, or one in different ways")
    observed = Observed(x)
    questions = [explainer.ask(observed) for explainer in explainers]
    try:
        _explain(explainers, questions, observed, y)
    except NoOutputError:
        for explainer, question in zip(explainers, questions, strict=True):
            with suppress(NoOutputError):  # the model has nothing to say yet
                _explain([explainer], [question], observed, y)
    for explainer in explainers:
        explainer.store(observed)
    return [explainer.values for explainer in explainers]


def _explain(
    explainers: Sequence[Explainer], questions: Sequence[Question], observed: Observed, y: Any
) -> None:
    if not sum([question.size for question in questions]):
        return
    answers = ask_model(explainers[0].evaluator, questions, observed)
    begin = 0
    for explainer, question in zip(explainers, questions, strict=True):
        end = begin + question.size
        if end > begin:
            if isinstance(answers, Table):
                explainer.take(y, question, Table(answers.labels, answers.numbers[begin:end]))
            else:
                explainer.take(y, question, answers[begin:end])
        begin = end


def ask_model(
    evaluator: Evaluator, questions: Sequence[Question], observed: Observed
) -> Sequence[Output] | Table:
    """Return the answers to questions about one observation, those to one after the other.

    Raises
    ------
    NoOutputError
        If the model has nothing to say yet.
    """
    size = sum([question.size for question in questions])
    answers: Sequence[Output] | Table | None = _table(evaluator, questions, observed, size)
    if answers is None:
        replacements = [each for question in questions for each in question.replacements()]
        answers = evaluator(observed.x, replacements)
    given = len(answers.numbers if isinstance(answers, Table) else answers)
    if given != size:
        raise ValueError(f"the evaluator gave {given} outputs on {size} inputs")
    return answers


def _table(
    evaluator: Evaluator, questions: Sequence[Question], observed: Observed, size: int
) -> Table | None:
    """Return the answers as an array; None if not all that is asked are numbers."""
    if observed.numbers is None or not hasattr(evaluator, "evaluate_rows"):
        return None
    rows = np.empty((size, len(observed.numbers)))
    rows[:] = observed.numbers
    begin = 0
    try:
        for question in questions:
            question.fill(observed.features, rows, begin)
            begin += question.size
    except NoNumberError:
        return None
    return cast(TableEvaluator, evaluator).evaluate_rows(observed.x, rows)
