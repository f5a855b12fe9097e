"""Records of the topic ``evaluations``: the model's answers on perturbed inputs (internal)."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import orjson
from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.methods import Method
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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# left to right: pydantic's search for the best fit takes three times as long
Row = Annotated[list[float] | float, Field(union_mode="left_to_right")]
"""One output: a number, or one probability a class."""


class Packable:
    """Marks lists of numbers that may be text instead: they become an array of one dimension."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(_unpacked, handler(source))

    @staticmethod
    def __get_pydantic_json_schema__(
        schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string", "contentEncoding": "base64"}]}


_NUMBER = "<f8"


def _unpacked(value: Any, handler: Callable[[Any], Any]) -> Any:
    if not isinstance(value, str):
        return handler(value)
    import numpy as np  # noqa: PLC0415  commands that read other topics start sooner without it

    # compiled functions have another version for arrays that cannot be changed
    return np.frombuffer(bytearray(a2b_base64(value, strict_mode=True)), _NUMBER)


def _listed(array: "NDArray[np.float64]") -> Any:
    import numpy as np  # noqa: PLC0415  as above

    # JSON has neither NaN nor infinity
    return array.tolist() if np.isfinite(array).all() else _packed(array)


def _packed(array: "NDArray[np.float64]") -> Any:
    """Return an array's numbers as text; as lists if it has none, but a shape."""
    if not array.size:
        return array.tolist()
    import numpy as np  # noqa: PLC0415  as above

    return b2a_base64(np.ascontiguousarray(array, _NUMBER).data, newline=False).decode("ascii")


@dataclass(frozen=True, slots=True)
class Evaluation(Record):
    """The model's answers for a run of observations and one feature, group or pair.

    All lists have one item for each observation. ``prediction`` and the items of ``outputs`` and
    ``points`` may be text instead: their numbers in sequence, as base64 of little-endian doubles.
    Outputs become arrays of shape (observations, outputs, classes), points of shape (observations,
    points).

    A run's length depends on how many observations were waiting and has no meaning.

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
        feature is revealed, and with several draws the variances of both. iPDP: the outputs at the
        evaluation points; for a pair, at each point of the first feature combined with each of the
        second.
    points
        Method → evaluation points for each observation, for methods that have them. For a pair:
        the number of points of the first feature, these points, and those of the second. For an
        interaction: the place of the other feature or group among all.
    values
        The feature's value in each observation, texts cut to 64 characters; None for groups and
        pairs.
    ids
        The id of each observation, cut like ``values``. Only one feature of the stream carries
        them, since they are the same for all. None for others, and without ids.
    contrasts
        Method → contrasts with an older model, of some of the observations.
    loss_changed_seq
        The seq since which the loss, or the wrong predictions, may have changed, by the latest
        alarm of their detector; None before the first one.
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
    prediction: Annotated[list[Row], Packable]
    coverage: list[float]
    skipped: list[int]
    outputs: dict[Method, Annotated[list[list[Row] | None], Packable]]
    points: dict[Method, Annotated[list[list[Value] | None], Packable]]
    values: list[Value | None] | None = None
    ids: list[Id | None] | None = None
    contrasts: dict[Method, list[Contrast]] | None = None
    model_version: str | None = None
    loss_changed_seq: int | None = None
    incarnation: Incarnation = FIRST_INCARNATION

    def message_key(self) -> str:
        """Return the feature."""
        return self.feature

    def encode(self) -> bytes:
        """Return the run as JSON; arrays become lists if all of their numbers are finite."""
        return orjson.dumps(self, default=_listed)

    def packed(self) -> bytes:
        """Return the run as JSON; arrays become text, which takes less time and room than lists."""
        return orjson.dumps(self, default=_packed)

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the run of these fields, whose lists are equally long and not empty."""
        run = cls.validated(fields)
        run._shape()
        if not run.seqs or set(map(len, run._lists())) != {len(run.seqs)}:
            raise BadRecordError(f"the lists must be as long as seqs ({len(run.seqs)}), and not 0")
        return run

    def _shape(self) -> None:
        """Give the arrays of a new record their shapes."""
        n, columns = len(self.seqs), () if self.classes is None else (len(self.classes),)
        try:
            if not isinstance(self.prediction, list):
                object.__setattr__(self, "prediction", self.prediction.reshape(n, *columns))
            for blocks, shape in ((self.outputs, (n, -1, *columns)), (self.points, (n, -1))):
                for method, each in blocks.items():
                    if not isinstance(each, list):
                        blocks[method] = each.reshape(shape)
        except ValueError:
            counts = f"{n} observations and {len(self.classes or ())} classes"
            raise BadRecordError(f"a text has not as many numbers as {counts} take") from None

    def _lists(self) -> Iterator[list[Any]]:
        """Yield the lists with one item for each observation."""
        yield from (getattr(self, name) for name in _COLUMNS)
        yield from (each for name in _OPTIONAL if (each := getattr(self, name)) is not None)
        for name in _BLOCKS:
            yield from getattr(self, name).values()

    def part(self, begin: int, end: int) -> "Evaluation":
        """Return the run of some consecutive observations."""
        before = self.seqs[begin - 1] if begin else self.previous_seq
        lists: dict[str, Any] = {name: getattr(self, name)[begin:end] for name in _COLUMNS}
        for name in _OPTIONAL:
            column = getattr(self, name)
            lists[name] = column and column[begin:end]
        if self.contrasts is not None:
            kept = {*self.seqs[begin:end]}
            lists["contrasts"] = {
                method: [each for each in several if each.seq in kept]
                for method, several in self.contrasts.items()
            }
        for name in _BLOCKS:
            blocks = getattr(self, name)
            lists[name] = {method: items[begin:end] for method, items in blocks.items()}
        return replace(self, previous_seq=before, **lists)

    def single(self, i: int) -> "Evaluation":
        """Return the run of the i-th observation only."""
        return self.part(i, i + 1)


_BLOCKS = ("outputs", "points")

_COLUMNS = ("seqs", "ts", "y", "loss", "prediction", "coverage", "skipped")

_OPTIONAL = ("values", "ids")
