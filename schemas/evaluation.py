"""Records of the topic ``evaluations``: the model's answers on perturbed inputs (internal)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Self, cast, get_args

from pydantic import Field

from fluxplain.schemas.methods import Method
from fluxplain.schemas.record import (
    FIRST_INCARNATION,
    BadRecordError,
    Incarnation,
    Label,
    Record,
    Target,
    Timestamp,
    Value,
    load_object,
)

# tried in this order: to look for the best fit takes three times as long
Row = Annotated[list[float] | float, Field(union_mode="left_to_right")]
"""One output: a number, or one probability a class."""


@dataclass(frozen=True, slots=True)
class Evaluation(Record):
    """The model's answers for a run of observations and one feature or pair of features.

    All lists are as long.

    Where a run begins and ends depends on how many observations were waiting, so it has no
    meaning: each observation stands for itself.

    Identity: (incarnation, stream, feature, seq) of each observation.

    Attributes
    ----------
    stream, feature
        Which stream, which feature or group of features; of a pair ``first|second``.
    previous_seq
        The seq evaluated before the first one here; None at the start of the stream.
    seqs, ts, y, loss
        Offset, time and label of each observation, and the loss of the model on it; None without a
        label. Where the model needs none, it is 0.0.
    classes
        The classes that probabilities stand for; None for regression.
    prediction
        The output on each observation itself.
    model_version
        Of the model that was asked; None if it has none.
    coverage
        Share of the observations until then that had a value of the feature; of a group or a pair,
        of all of its features.
    skipped
        Observations of the stream until then that were not explained, to save time: see
        ``explain.every``.
    outputs
        Method → of each observation the outputs; None where it was not asked. iPFI: with the
        feature replaced, M of them. iSAGE: the restricted outputs before and after the feature is
        revealed. iPDP: those at the evaluation points; of a pair at each point of the first feature
        with each of the second.
    points
        Method → of each observation the evaluation points, of methods that have some. Of a pair the
        number of points of the first feature, these, and those of the second.
    incarnation
        That of the predictions.
    """

    TOPIC: ClassVar[str] = "evaluations"

    stream: str
    feature: str
    previous_seq: int | None
    seqs: list[int]
    ts: list[Timestamp | None]
    y: list[Target | None]
    loss: list[float | None]
    classes: list[Label] | None
    prediction: list[Row]
    coverage: list[float]
    skipped: list[int]
    outputs: dict[Method, list[list[Row] | None]]
    points: dict[Method, list[list[Value] | None]]
    model_version: str | None = None
    incarnation: Incarnation = FIRST_INCARNATION

    def message_key(self) -> str:
        """Return the feature."""
        return self.feature

    @classmethod
    def decode(cls, value: bytes | None) -> Self:
        """Return the run in a message.

        Raises
        ------
        BadRecordError
            If it is no such record, or its lists are not equally long.
        """
        return cls.of(load_object(value))

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the run of these fields.

        Raises
        ------
        BadRecordError
            If it is none, or its lists are not equally long.
        """
        seqs, answers = fields.get("seqs"), {}
        if isinstance(seqs, list) and len(seqs) >= LONG:
            answers = {name: _plain(name, fields.get(name)) for name in ("prediction", *_BLOCKS)}
        if not answers or None in answers.values():
            run = cls.validated(fields)
        else:  # to validate these thousands of lists would mean to copy them
            rest: dict[str, Any] = {"prediction": [], **{name: {} for name in _BLOCKS}}
            run = replace(cls.validated({**fields, **rest}), **cast(Any, answers))
        if not run.seqs or set(map(len, run._lists())) != {len(run.seqs)}:
            raise BadRecordError(f"the lists must be as long as seqs ({len(run.seqs)}), and not 0")
        return run

    def _lists(self) -> Iterator[list[Any]]:
        """Yield all that has an item for each observation."""
        yield from (getattr(self, name) for name in _COLUMNS)
        for name in _BLOCKS:
            yield from getattr(self, name).values()

    def continues(self, other: "Evaluation") -> bool:
        """Return whether ``other`` may be appended to this run."""
        return (
            self.stream == other.stream
            and self.feature == other.feature
            and self.classes == other.classes
            and self.model_version == other.model_version
            and self.incarnation == other.incarnation
            and self.outputs.keys() == other.outputs.keys()
            and self.points.keys() == other.points.keys()
            and self.seqs[-1] == other.previous_seq
        )

    def extended(self, others: list["Evaluation"]) -> "Evaluation":
        """Return one run of this and the ones that continue it."""
        runs = (self, *others)
        return self._made(lambda of: [item for run in runs for item in of(run)])

    def single(self, i: int) -> "Evaluation":
        """Return the run that holds the i-th observation alone."""
        before = self.seqs[i - 1] if i else self.previous_seq
        return replace(self._made(lambda of: [of(self)[i]]), previous_seq=before)

    def _made(self, make: Callable[[Callable[[Self], list[Any]]], list[Any]]) -> "Evaluation":
        """Return a run in which each list is made from those of other runs."""
        made: dict[str, Any] = {name: make(attrgetter(name)) for name in _COLUMNS}
        for name in _BLOCKS:
            made[name] = {
                method: make(partial(_block, name, method)) for method in getattr(self, name)
            }
        return replace(self, **made)


def _block(name: str, method: Method, run: Evaluation) -> list[Any]:
    blocks: list[Any] = getattr(run, name)[method]
    return blocks


_BLOCKS = ("outputs", "points")

_COLUMNS = ("seqs", "ts", "y", "loss", "prediction", "coverage", "skipped")

LONG = 12
"""Runs of fewer observations are validated sooner than they are looked through."""


def _plain(name: str, column: Any) -> list[Any] | dict[str, list[Any]] | None:
    """Return answers as validation does, or None if only validation can tell."""
    if name == "prediction":
        return column if type(column) is list and _are_rows(column) else None
    if type(column) is not dict or not column.keys() <= set(get_args(Method)):
        return None
    for blocks in column.values():
        if type(blocks) is not list:
            return None
        known = [block for block in blocks if block is not None]
        if not set(map(type, known)) <= {list}:
            return None
        items = list(chain.from_iterable(known))
        is_plain = set(map(type, items)) <= _VALUES if name == "points" else _are_rows(items)
        if not is_plain:
            return None
    return column


_VALUES = {bool, int, float, str}


def _are_rows(rows: list[Any]) -> bool:
    kinds = set(map(type, rows))
    if kinds == {list}:
        kinds = set(map(type, chain.from_iterable(rows)))
    return kinds <= {float}
