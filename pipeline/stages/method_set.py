"""Evaluates the model for all methods of a stream at once, and sorts the outputs by feature."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fluxplain.config import Config
from fluxplain.evaluate import Encoding, Evaluator, Inputs, Observed, Table, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import kernels
from fluxplain.explain.method import Answers, Question, inputs_of, parts_of
from fluxplain.explain.method import Method as Asks
from fluxplain.explain.point_storage import RNGOf
from fluxplain.schemas.dead_letter import MODEL_FAILED
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.numbers import MAX_NUMBER
from fluxplain.stages.metering import Work
from fluxplain.stages.method_code import make_method


@dataclass(frozen=True, slots=True)
class Questions:
    """An observation, and the questions of the methods that are warm, ``by_method``."""

    observed: Observed
    by_method: Mapping[Method, Question]

    @property
    def inputs(self) -> dict[Work, int]:
        """Number of inputs of each method."""
        return {method: question.n for method, question in self.by_method.items()}


@dataclass(frozen=True, slots=True)
class Outputs:
    """The model's outputs on the observation itself (one row) and on each method's inputs.

    Rows on which the model failed are NaN; ``failures`` maps method and row to the reason.
    """

    prediction: Table
    tables: Mapping[Method, Table]
    failures: Mapping[tuple[Method, int], str]


class MethodSet:
    """The configured methods of a stream, for some of its features, groups and pairs.

    Each method has its own random numbers, so that switching one off changes no other. They do not
    depend on which features are asked about.
    """

    def __init__(self, config: Config, explained: Sequence[str], rng_of: RNGOf) -> None:
        self.encoding = Encoding()
        names: dict[Method, list[str]] = {
            method: [name for name in explained if method in config.methods_of(name)]
            for method in config.explain.methods
        }
        self.methods: dict[Method, Asks] = {
            method: make_method(method, config, own, rng_of) for method, own in names.items() if own
        }

    def observe(self, x: dict[str, Value]) -> Observed:
        """Return an observation with its encoded row."""
        self.encoding.renew()
        for method in self.methods.values():
            method.prepare(self.encoding)
        return self.encoding.observe(x)

    def ask(self, observed: Observed, *, labelled: bool, unlabelled: bool) -> Questions:
        """Return the questions of the methods that need a label, that need none, or both."""
        questions = {
            name: method.ask(observed)
            for name, method in self.methods.items()
            if (labelled if METHODS[name].needs_label else unlabelled)
        }
        return Questions(observed, {n: each for n, each in questions.items() if each is not None})

    def see(self, prediction: Table) -> None:
        """Pass the model's output on the observation itself to each method, before `answers`."""
        for method in self.methods.values():
            method.see(prediction)

    def answers(
        self, questions: Questions, outputs: Outputs
    ) -> tuple[dict[Method, Answers], dict[str, str]]:
        """Return the answers by method, and name → reason where the model failed."""
        answered: dict[Method, Answers] = {}
        failed: dict[str, str] = {}
        for method, question in questions.by_method.items():
            table = outputs.tables[method]
            answered[method] = self.methods[method].answer(question, outputs.prediction, table)
            if outputs.failures:
                failed |= self._failed(method, question, outputs)
        return answered, failed

    def _failed(self, method: Method, question: Question, outputs: Outputs) -> dict[str, str]:
        """Return name → reason for the names that the failed rows concern."""
        reasons = {row: why for (of, row), why in outputs.failures.items() if of == method}
        failed: dict[str, str] = {}
        for reason in dict.fromkeys(reasons.values()):
            labels, numbers, _ = outputs.tables[method]
            here = [row for row, why in reasons.items() if why == reason]
            marked = np.zeros_like(numbers)
            marked[here] = np.nan
            answers = self.methods[method].answer(
                question, outputs.prediction, Table(labels, marked)
            )
            for name, block in zip(answers.names, answers.blocks, strict=True):
                if np.isnan(block).any():
                    failed.setdefault(name, reason)
        return failed

    def take_over(self, before: Sequence["MethodSet"]) -> None:
        """Take over the samples of other sets, which together cover at least these names."""
        for name, method in self.methods.items():
            method.take_over([each.methods[name] for each in before if name in each.methods])

    def store(self, observed: Observed) -> None:
        """Offer an observation to the reservoirs and storages, after it was explained."""
        for method in self.methods.values():
            method.store(observed)

    def forget_model(self) -> None:
        """Forget what another model has said."""
        for method in self.methods.values():
            method.forget_model()


def evaluate_robustly(evaluator: Evaluator, questions: Questions) -> Outputs:
    """Return the model's outputs on all questions, and why some failed.

    Raises
    ------
    Exception
        What the model raises on the observation itself.
    """
    try:
        return evaluate(evaluator, questions)
    except MemoryError:
        raise
    except Exception:  # one input at a time: it fails on some of them
        return evaluate_each(evaluator, questions)


def evaluate(evaluator: Evaluator, questions: Questions) -> Outputs:
    """Return the model's outputs on all questions, in one call.

    Raises
    ------
    Exception
        What the model raises on any of the inputs, or ``ValueError`` if an output is too large.
    """
    inputs = inputs_of(questions.observed, list(questions.by_method.values()))
    table = _evaluated(evaluator, inputs)
    parts = parts_of(table, questions.by_method.values())
    return Outputs(table.first(), dict(zip(questions.by_method, parts, strict=True)), {})


def evaluate_each(evaluator: Evaluator, questions: Questions) -> Outputs:
    """Return the model's outputs on all questions, one input at a time, and why some failed.

    Raises
    ------
    Exception
        What the model raises on the observation itself.
    """
    own = evaluate(evaluator, Questions(questions.observed, {}))
    tables: dict[Method, Table] = {}
    failures: dict[tuple[Method, int], str] = {}
    for method, question in questions.by_method.items():
        found: dict[int, Table] = {}
        inputs = inputs_of(questions.observed, [question])
        for row in range(question.n):
            try:
                table = _evaluated(evaluator, inputs.some([row + 1]))
            except MemoryError:
                raise
            except Exception as error:  # the model's own code may raise anything
                why = f"{MODEL_FAILED}{type(error).__name__}: {error}"
                failures[method, row] = why
            else:
                found[row] = table
        tables_ = (own.prediction, *found.values())
        labels: Labels = tuple(dict.fromkeys(label for each in tables_ for label in each.labels))
        numbers = np.full((question.n, len(labels)), np.nan)
        for row, table in found.items():
            numbers[row] = aligned(table, labels)[0]
        tables[method] = Table(labels, numbers)
    return Outputs(own.prediction, tables, failures)


def _evaluated(evaluator: Evaluator, inputs: Inputs) -> Table:
    """Return a copy of the outputs: answers are kept, and a model may reuse its array."""
    table = evaluator(inputs)
    numbers = table.numbers.copy()
    _check_moderate(numbers)
    return table._replace(numbers=numbers)


def _check_moderate(numbers: Floats) -> None:
    """Raise ``ValueError`` if a mean of the outputs could become infinite."""
    if not kernels.are_moderate(numbers, MAX_NUMBER):
        large = numbers[~(abs(numbers) <= MAX_NUMBER)][0]
        raise ValueError(f"the model's output is too large: {large}")
