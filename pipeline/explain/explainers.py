"""What all explainers of the library share, and several of them with a single evaluation."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fluxplain.evaluate import Encoding, Evaluator, NoOutputError, Observation, Observed, Table
from fluxplain.explain.descriptions import Described
from fluxplain.explain.losses import Target
from fluxplain.explain.method import Method, Question, ask_model
from fluxplain.explain.unusable_values import error_of_value


class Explainer(Described):
    """Base of all explainers: a method with its estimates.

    ``encoding`` is used when the explainer runs alone. Subclasses take these arguments:

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` (preferred) or ``predict_one``, or a scikit-learn
        classifier or regressor that was fitted to a data frame. It is evaluated, never changed.
    categorical
        Which features are categorical. By default those whose first value is text or a boolean.
    debias
        Whether to divide by the sum of the smoothing's weights.
    seed
        Random seed; None for a new one each time.
    evaluator
        How the model is evaluated: ``"hoeffding"``, ``"mondrian"``, ``"linear"``,
        ``"naive-bayes"``, ``"batch"``, ``"generic"``, or ``"auto"``, the first of these that fits;
        or an evaluator of your own.

    Raises
    ------
    ValueError
        For an argument out of its range; the message names it.
    TypeError
        If the model cannot be evaluated; the message says what to give instead.
    """

    def __init__(
        self, model: object, method: Method, features: tuple[str, ...], evaluator: Evaluator | str
    ) -> None:
        from fluxplain.evaluate import as_evaluator  # noqa: PLC0415  loads River

        self.model = model
        self._method = method
        self.evaluator = as_evaluator(model, evaluator)
        self._encoding = Encoding()
        self._needed = features

    def _check(self, observed: Observed) -> None:
        """Raise ``ValueError`` naming the first explained feature that the observation lacks."""
        check_observation(observed, self._needed)

    @abstractmethod
    def _take(self, y: Any, question: Question | None, prediction: Table, table: Table) -> None:
        """Process the outputs on the observation itself and on the question's inputs, if any."""


def check_observation(observed: Observed, features: tuple[str, ...]) -> None:
    """Raise ``ValueError`` naming the first explained feature that the observation lacks."""
    if observed.features != features:
        for feature in features:
            if feature not in observed.x:
                raise ValueError(f"the observation lacks the feature {feature!r}")


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
        Feature → value, as a dictionary or a row with names, such as a pandas row; every explained
        feature must be there.
    y
        The label; may be omitted if no explainer needs it.

    Returns
    -------
    The current estimates of each, in order.

    Raises
    ------
    ValueError
        If they explain different models, or use different evaluators.
    ValueError, TypeError
        If the model or an explainer cannot use a value; the message names it.

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
    if not explainers:
        return []
    evaluator, encoding = explainers[0].evaluator, explainers[0]._encoding
    for explainer in explainers:
        if explainer.evaluator is not evaluator:
            raise ValueError("the explainers have different models or evaluators")
    encoding.renew()
    for explainer in explainers:
        explainer._method.prepare(encoding)
    try:
        observed = encoding.observe(x)
        for explainer in explainers:
            explainer._check(observed)
        questions = [explainer._method.ask(observed) for explainer in explainers]
        try:
            _explain(explainers, questions, observed, y)
        except NoOutputError:
            for explainer, question in zip(explainers, questions, strict=True):
                with suppress(NoOutputError):  # the model may have no output before it learns
                    _explain([explainer], [question], observed, y)
        for explainer in explainers:
            explainer._method.store(observed)
    except Exception as error:
        if (named := error_of_value(error, x, encoding)) is not None:
            raise named from error
        raise
    return [explainer.values for explainer in explainers]


def _explain(
    explainers: Sequence[Explainer],
    questions: Sequence[Question | None],
    observed: Observed,
    y: Any,
) -> None:
    prediction, tables = ask_model(explainers[0].evaluator, observed, questions)
    for explainer, question, table in zip(explainers, questions, tables, strict=True):
        explainer._method.see(prediction)
        explainer._take(y, question, prediction, table)
