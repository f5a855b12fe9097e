"""Records of the topic ``evaluations``: the model's answers on perturbed inputs (internal)."""

from dataclasses import dataclass, fields, replace
from itertools import chain
from types import NoneType
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import Field, Strict

from schemas.record import (
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
Row = Annotated[list[float | None] | float, Field(union_mode="left_to_right")]
"""One output: a number, or one probability a class (None: the model does not know the class)."""


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
    ipfi
        The outputs with the feature replaced, M each; None where iPFI was not asked.
    isage
        The restricted outputs before and after the feature is revealed; None where not asked.
    ipdp_points, ipdp
        Evaluation points and the outputs there; None where iPDP was not asked. Of a pair, the
        number of points of the first feature, these, and those of the second; and the outputs at
        each point of the first with each of the second.
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
    ipfi: list[list[Row] | None]
    isage: list[Annotated[tuple[Row, Row], Strict(False)] | None]  # JSON knows lists only
    ipdp_points: list[list[Value] | None]
    ipdp: list[list[Row] | None]
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
            answers = {name: _plain(name, fields.get(name)) for name in _ANSWERS}
        if not answers or None in answers.values():
            run = cls.validated(fields)
        else:  # to validate these thousands of lists would mean to copy them
            rest: dict[str, Any] = {name: [] for name in answers}
            run = replace(cls.validated({**fields, **rest}), **cast(Any, answers))
        if not run.seqs or {len(getattr(run, name)) for name in _COLUMNS} != {len(run.seqs)}:
            raise BadRecordError(f"the lists must be as long as seqs ({len(run.seqs)}), and not 0")
        return run

    def continues(self, other: "Evaluation") -> bool:
        """Return whether ``other`` may be appended to this run."""
        return (
            self.stream == other.stream
            and self.feature == other.feature
            and self.classes == other.classes
            and self.model_version == other.model_version
            and self.incarnation == other.incarnation
            and self.seqs[-1] == other.previous_seq
        )

    def extended(self, others: list["Evaluation"]) -> "Evaluation":
        """Return one run of this and the ones that continue it."""
        columns = {
            name: [item for run in (self, *others) for item in getattr(run, name)]
            for name in _COLUMNS
        }
        return replace(self, **columns)  # type: ignore[arg-type]

    def single(self, i: int) -> "Evaluation":
        """Return the run that holds the i-th observation alone."""
        columns = {name: [getattr(self, name)[i]] for name in _COLUMNS}
        before = self.seqs[i - 1] if i else self.previous_seq
        return replace(self, previous_seq=before, **columns)  # type: ignore[arg-type]


_COLUMNS = tuple(
    f.name
    for f in fields(Evaluation)
    if f.name
    not in {"stream", "feature", "previous_seq", "classes", "model_version", "incarnation"}
)

LONG = 12
"""Runs of fewer observations are validated sooner than they are looked through."""

_ANSWERS = ("prediction", "ipfi", "isage", "ipdp_points", "ipdp")


def _plain(name: str, column: Any) -> list[Any] | None:
    """Return a column of answers as validation does, or None if only validation can tell."""
    if type(column) is not list:
        return None
    rows = column
    if name != "prediction":
        blocks = [block for block in column if block is not None]
        if not set(map(type, blocks)) <= {list}:
            return None
        if name == "isage":
            if not set(map(len, blocks)) <= {2}:
                return None
            column = [pair and tuple(pair) for pair in column]
        rows = list(chain.from_iterable(blocks))
    kinds = set(map(type, rows))
    if name == "ipdp_points":
        return column if kinds <= {bool, int, float, str} else None
    if kinds == {list}:
        kinds = set(map(type, chain.from_iterable(rows)))
        return column if kinds <= {float, NoneType} else None
    return column if kinds <= {float} else None
