"""Asks a method about observations, as an explainer does."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fluxplain.evaluate import Encoding, evaluator_for
from fluxplain.explain.method import Answers, Method, ask_model


def answers_of(
    model: Any, method: Method, observations: Iterable[Mapping[str, Any]]
) -> Iterator[Answers]:
    """Yield the answers about each observation that the method asks about."""
    encoding, evaluator = Encoding(), evaluator_for(model)
    for x in observations:
        method.prepare(encoding)
        observed = encoding.observe(x)
        question = method.ask(observed)
        if question is not None:
            prediction, [table] = ask_model(evaluator, observed, [question])
            yield method.answer(question, prediction, table)
        method.store(observed)
