"""Records of the topic ``evaluations``: the model's answers on perturbed inputs (internal)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, ClassVar, Self, cast, get_args

import orjson
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
)

# left to right: pydantic's search for the best fit takes three times as long
Row = Annotated[list[float] | float, Field(union_mode="left_to_right")]
"""One output: a number, or one probability a class."""


@dataclass(frozen=True, slots=True)
class Evaluation(Record):
    """The model's answers for a run of observations and one feature, group or pair.

    All lists have one item for each observation.

    A run's length depends on how many observations were waiting and has no meaning: each
    observation stands for itself.

    Identity: (incarnation, stream, feature, seq) of each observation.

    Attributes
    ----------
    stream, feature
        The stream, and the feature or group; for a pair ``first|second``.
    previous_seq
        The seq evaluated before the first one here; None at the start of the stream.
    seqs, ts, y, loss
        Offset, time and label of each observation, and the model's loss on it. The loss is None
        without a label, and 0.0 for a model that needs no labels.
    classes
        The classes of the probabilities, in order; None for regression.
    prediction
        The model's output for each observation itself.
    model_version
        Version of the evaluated model; None if it has none.
    coverage
        Share of the stream's observations so far with a value of the feature; for a group or a
        pair, of all of its features.
    skipped
        Number of the stream's observations so far that were not explained, to save time: see
        ``explain.every``.
    outputs
        Method → outputs for each observation; None where the model was not evaluated. iPFI: M
        outputs with the feature replaced. iSAGE: the restricted outputs before and after the
        feature is revealed. iPDP: the outputs at the evaluation points; for a pair, at each point
        of the first feature combined with each of the second.
    points
        Method → evaluation points for each observation, for methods that have them. For a pair:
        the number of points of the first feature, these points, and those of the second.
    incarnation
        Incarnation of the predictions.
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

    def encode(self) -> bytes:
        """Return the run as JSON; arrays become lists."""
        return orjson.dumps(self, option=orjson.OPT_SERIALIZE_NUMPY)

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the run of these fields, whose lists are equally long and not empty."""
        seqs, answers = fields.get("seqs"), {}
        if isinstance(seqs, list) and len(seqs) >= LONG:
            answers = {name: _plain(name, fields.get(name)) for name in ("prediction", *_BLOCKS)}
        if not answers or None in answers.values():
            run = cls.validated(fields)
        else:  # validation would copy these thousands of lists
            rest: dict[str, Any] = {"prediction": [], **{name: {} for name in _BLOCKS}}
            run = replace(cls.validated({**fields, **rest}), **cast(Any, answers))
        if not run.seqs or set(map(len, run._lists())) != {len(run.seqs)}:
            raise BadRecordError(f"the lists must be as long as seqs ({len(run.seqs)}), and not 0")
        return run

    def _lists(self) -> Iterator[list[Any]]:
        """Yield the lists with one item for each observation."""
        yield from (getattr(self, name) for name in _COLUMNS)
        for name in _BLOCKS:
            yield from getattr(self, name).values()

    def part(self, begin: int, end: int) -> "Evaluation":
        """Return the run of some consecutive observations."""
        before = self.seqs[begin - 1] if begin else self.previous_seq
        lists: dict[str, Any] = {name: getattr(self, name)[begin:end] for name in _COLUMNS}
        for name in _BLOCKS:
            blocks = getattr(self, name)
            lists[name] = {method: items[begin:end] for method, items in blocks.items()}
        return replace(self, previous_seq=before, **lists)

    def single(self, i: int) -> "Evaluation":
        """Return the run of the i-th observation only."""
        return self.part(i, i + 1)


_BLOCKS = ("outputs", "points")

_COLUMNS = ("seqs", "ts", "y", "loss", "prediction", "coverage", "skipped")

LONG = 12
"""Observations from which a type check is faster than validation."""


def _plain(name: str, column: Any) -> list[Any] | dict[str, list[Any]] | None:
    """Return answers unchanged if their types need no conversion; None if they need validation."""
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
