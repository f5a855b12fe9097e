"""Records of the topic ``reasons``: what each feature added to the output on an observation."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import (
    FIRST_INCARNATION,
    BadRecordError,
    Incarnation,
    Label,
    Record,
    Target,
    Timestamp,
    Value,
)

Way = Literal["structure", "subsets", "permutations"]
"""How contributions were found: exactly, from the model's structure or from all sets of features,
or estimated from some permutations of them."""


@dataclass(frozen=True, slots=True)
class Reasons(Record):
    """Why the model gave its output on an observation, by the model of that moment.

    The contributions are Shapley values of the output, against recent observations. Base,
    contributions and rest sum to the output.

    Identity: (incarnation, stream, seq, label).

    Attributes
    ----------
    stream, seq, id, ts
        As in the prediction of the observation.
    previous_seq
        The seq of the stream's previous reasons; None for the first. With several labels, all
        records of an observation have the same one.
    skipped
        Number of observations without reasons since then.
    prediction
        The predicted class or number.
    label
        The class whose probability is explained; None for a number.
    output
        The probability or number that is explained.
    base
        The mean of this output over the recent observations.
    names
        Features and groups with the largest contributions, the largest absolute value first.
    contributions
        What each of ``names`` adds to the output; negative if it lowers the output.
    std_errors
        Standard error of each contribution; 0 if it is exact, or if all permutations agreed.
    values
        The value of each of ``names``; None for a group.
    rest
        Sum of the contributions of all other features.
    way
        How contributions were found: exactly, from the model's ``structure`` or from all
        ``subsets`` of the features; or estimated from ``permutations``.
    missing
        Features among ``names``, and members of groups among them, without a value in the
        observation: theirs was imputed. None if all had one.
    model_version
        Version of the model; None if it has none.
    incarnation
        The stream's incarnation; see :class:`schemas.Prediction`.
    """

    TOPIC: ClassVar[str] = "reasons"

    stream: str
    seq: int
    previous_seq: int | None
    skipped: int
    id: Id | None
    ts: Timestamp | None
    prediction: Target | None
    label: Label | None
    output: float
    base: float
    names: list[str]
    contributions: list[float]
    std_errors: list[float]
    values: list[Value | None]
    rest: float
    way: Way
    missing: list[str] | None = None
    model_version: str | None = None
    incarnation: Incarnation = FIRST_INCARNATION

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the record of these fields; raise ``BadRecordError`` if they do not fit."""
        record = cls.validated(fields)
        lists: list[list[Any]] = [record.names, record.contributions]
        lists += [record.std_errors, record.values]
        if len({*map(len, lists)}) > 1:
            raise BadRecordError("names, contributions, std_errors and values differ in length")
        return record
