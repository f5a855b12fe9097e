"""Several explainers of one model, asked with one evaluation."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from pipeline.evaluate import Evaluator, NoOutputError, Observation, Output
from pipeline.evaluate.inputs import NoNumberError, as_floats
from pipeline.evaluate.table import Table
from pipeline.explain.losses import Target
from pipeline.explain.questions import Question


class Explainer(Protocol):
    """What asks a model about changed inputs, and takes its answers."""

    evaluator: Evaluator

    @property
    def values(self) -> dict[str, float]:
        """Feature → current importance."""
        ...

    def ask(self, x: Observation) -> Question:
        """Return what to ask."""
        ...

    def take(self, y: Target | None, question: Any, answers: Sequence[Output] | Table) -> None:
        """Take the answers, in the order of the question's inputs."""
        ...

    def store(self, x: Observation) -> None:
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
    if len({id(explainer.evaluator) for explainer in explainers}) > 1:
        raise ValueError("the explainers ask different models, or one in different ways")
    questions = [explainer.ask(x) for explainer in explainers]
    if any(question.size for question in questions):
        try:
            _explain(explainers, questions, x, y)
        except NoOutputError:
            for explainer, question in zip(explainers, questions, strict=True):
                with suppress(NoOutputError):  # the model has nothing to say yet
                    _explain([explainer], [question], x, y)
    for explainer in explainers:
        explainer.store(x)
    return [explainer.values for explainer in explainers]


def _explain(
    explainers: Sequence[Explainer], questions: Sequence[Question], x: Observation, y: Any
) -> None:
    answers = _answers(explainers[0].evaluator, questions, x)
    begin = 0
    for explainer, question in zip(explainers, questions, strict=True):
        end = begin + question.size
        if end > begin:
            own = answers.part(begin, end) if isinstance(answers, Table) else answers[begin:end]
            explainer.take(y, question, own)
        begin = end


def _answers(
    evaluator: Evaluator, questions: Sequence[Question], x: Observation
) -> Sequence[Output] | Table:
    table = _table(evaluator, questions, x)
    if table is not None:
        return table
    replacements = [each for question in questions for each in question.replacements()]
    outputs = evaluator(x, replacements)
    if len(outputs) != len(replacements):
        raise ValueError(f"the evaluator gave {len(outputs)} outputs on {len(replacements)} inputs")
    return outputs


def _table(evaluator: Any, questions: Sequence[Question], x: Observation) -> Table | None:
    """Return the answers as an array; None if not all that is asked are numbers."""
    if not hasattr(evaluator, "table"):
        return None
    features = tuple(x)
    rows = np.empty((sum([question.size for question in questions]), len(features)))
    begin = 0
    try:
        rows[:] = as_floats(x.values())
        for question in questions:
            end = begin + question.size
            question.fill(features, rows[begin:end])
            begin = end
    except NoNumberError:
        return None
    return evaluator.table(x, rows)  # type: ignore[no-any-return]
