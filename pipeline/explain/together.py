"""Several explainers of one model, asked with one evaluation."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Protocol

from pipeline.evaluate import Evaluator, NoOutputError, Observation, Output, Value
from pipeline.explain.losses import Target


class Explainer(Protocol):
    """What asks a model about changed inputs, and takes its answers."""

    evaluator: Evaluator

    @property
    def values(self) -> dict[str, float]:
        """Feature → current importance."""
        ...

    def ask(self, x: Observation) -> tuple[Any, list[dict[str, Value]]]:
        """Return what the answers will be taken with, and the replacements to ask about."""
        ...

    def take(self, x: Observation, y: Target | None, asked: Any, outputs: Sequence[Output]) -> None:
        """Take the answers, in order."""
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
    asked = [(explainer, *explainer.ask(x)) for explainer in explainers]
    replacements = [each for _, _, own in asked for each in own]
    if replacements:
        try:
            outputs: Iterator[Output] = iter(explainers[0].evaluator(x, replacements))
            for explainer, question, own in asked:
                if own:
                    explainer.take(x, y, question, list(islice(outputs, len(own))))
        except NoOutputError:
            _ask_each(asked, x, y)
    for explainer in explainers:
        explainer.store(x)
    return [explainer.values for explainer in explainers]


def _ask_each(asked: Sequence[tuple[Explainer, Any, Any]], x: Observation, y: Any) -> None:
    for explainer, question, own in asked:
        with suppress(NoOutputError):  # the model has nothing to say yet
            explainer.take(x, y, question, explainer.evaluator(x, own))
