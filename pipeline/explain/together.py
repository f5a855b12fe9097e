"""Runs several explainers of one model with a single evaluation."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from fluxplain.evaluate import Encoding, Evaluator, NoOutputError, Observation, Observed, Table
from fluxplain.explain.losses import Target
from fluxplain.explain.method import Method, Question, ask_model


class Explainer(Protocol):
    """A method with estimates; ``encoding`` is its own, used when it runs alone."""

    evaluator: Evaluator
    encoding: Encoding

    @property
    def method(self) -> Method:
        """The method that asks the model."""
        ...

    @property
    def values(self) -> dict[str, float]:
        """Feature → current importance."""
        ...

    def check(self, observed: Observed) -> None:
        """Raise ``ValueError`` if an observation cannot be explained."""
        ...

    def take(self, y: Any, question: Question | None, prediction: Table, table: Table) -> None:
        """Take the outputs on the observation itself and on the question's inputs, if any."""
        ...


def explain_together(
    explainers: Sequence[Explainer], x: Observation, y: Target | None = None
) -> list[dict[str, float]]:
    """Explain one observation, before the model learns it, by several explainers at once.

    The estimates equal those of each explainer's ``explain_one``; one evaluation costs less.

    Parameters
    ----------
    explainers
        Explainers of the same model.
    x
        Feature → value; every explained feature must be there.
    y
        The label; without one, all explainers must be such that need none.

    Returns
    -------
    The current estimates of each, in order.

    Raises
    ------
    ValueError
        If they explain different models, or use different evaluators.

    Examples
    --------
    >>> from fluxplain.explain import IncrementalPDP, IncrementalPFI
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
            raise ValueError("the explainers have different models or evaluators")
    encoding = explainers[0].encoding if explainers else Encoding()
    for explainer in explainers:
        explainer.method.prepare(encoding)
    observed = encoding.observe(x)
    for explainer in explainers:
        explainer.check(observed)
    questions = [explainer.method.ask(observed) for explainer in explainers]
    try:
        _explain(explainers, questions, observed, y)
    except NoOutputError:
        for explainer, question in zip(explainers, questions, strict=True):
            with suppress(NoOutputError):  # the model may have no output before it learns
                _explain([explainer], [question], observed, y)
    for explainer in explainers:
        explainer.method.store(observed)
    return [explainer.values for explainer in explainers]


def _explain(
    explainers: Sequence[Explainer],
    questions: Sequence[Question | None],
    observed: Observed,
    y: Any,
) -> None:
    if not explainers:
        return
    prediction, tables = ask_model(explainers[0].evaluator, observed, questions)
    for explainer, question, table in zip(explainers, questions, tables, strict=True):
        explainer.method.see(prediction)
        explainer.take(y, question, prediction, table)
