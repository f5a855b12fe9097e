"""The model's answers about one observation, and runs of them as evaluations."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from fluxplain.evaluate import Label, Table, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.schemas import Evaluation, Record
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.evaluation import Row
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import FIRST_INCARNATION, Incarnation, Target, Timestamp
from fluxplain.stages.limits import SHORT_TEXT
from fluxplain.stages.pair_points import joined

if TYPE_CHECKING:  # it loads the compiler, which only some roles need
    from fluxplain.explain.method import Answers, Axis
    from fluxplain.stages.contrasts import ByFeature


@dataclass(frozen=True, slots=True)
class Evaluated(Record):
    """The model's answers about one observation, for all features, groups and pairs.

    They are arrays; :func:`evaluations` writes a run of them as records, which takes far less time
    than a record for each feature of each observation.

    Attributes
    ----------
    stream, seq, ts, y, loss, skipped, model_version, loss_changed_seq, incarnation
        As in :class:`~fluxplain.schemas.Evaluation`, of one observation.
    prediction
        The output on the observation itself, one row.
    answers
        The answers of each method that was asked.
    methods
        Feature → all its methods, in the order of the settings.
    previous_seqs
        Feature that is evaluated → the seq of its evaluation before.
    classes
        Feature → the labels of its outputs.
    coverage
        Feature → share of the observations with a value.
    x, id
        The observation, and its id.
    id_with
        The feature whose evaluation has the id.
    contrasts
        Its contrasts with an older model.
    failed
        Features on whose inputs the model failed: their evaluation is empty.
    """

    TOPIC: ClassVar[str] = Evaluation.TOPIC

    stream: str
    seq: int
    ts: Timestamp | None
    y: Target | None
    loss: float | None
    skipped: int
    prediction: Table
    answers: "Mapping[Method, Answers]"
    methods: Mapping[str, Sequence[Method]]
    previous_seqs: Mapping[str, int | None]
    classes: Mapping[str, Labels]
    coverage: Mapping[str, float]
    x: Mapping[str, Value]
    id: Id | None = None
    id_with: str | None = None
    contrasts: "ByFeature | None" = None
    failed: Collection[str] = ()
    model_version: str | None = None
    loss_changed_seq: int | None = None
    incarnation: Incarnation = FIRST_INCARNATION


def evaluations(run: Sequence[Evaluated]) -> Iterator[Evaluation]:
    """Yield the evaluations of consecutive observations of a stream.

    There is one for each feature, or several where its classes, the model or the incarnation
    change, or where evaluations between are missing. The answers are arrays, if they have the same
    form: they are written and read in a third of the time that lists take.
    """
    items, stacks, columns = [_Lists(each) for each in run], _Stacks(run), _columns(run)
    for name in dict.fromkeys(name for each in run for name in each.classes):
        having = [each for each in items if name in each.evaluated.classes]
        ends = [i for i, (a, b) in enumerate(pairwise(having), 1) if not b.continues(a, name)]
        if len(having) == len(run) and not ends:
            yield _evaluation(name, items, stacks, columns)
            continue
        for begin, end in pairwise([0, *ends, len(having)]):
            part = having[begin:end]
            yield _evaluation(name, part, _Stacks(()), _columns([each.evaluated for each in part]))


class _Stacks:
    """The answers about a run of observations as arrays of all features.

    None stands for answers that are not alike.
    """

    def __init__(self, run: Sequence[Evaluated]) -> None:
        self._run = run
        self._answers: dict[Method, Sequence[Answers] | None] = {}
        self._outputs: dict[tuple[Method, Labels], Floats] = {}
        self._points: dict[Method, Floats] = {}
        self._predictions: dict[Labels, Floats | None] = {}

    def _alike(self, method: Method) -> "Sequence[Answers] | None":
        """Return the answers of a method, if all have the same form."""
        if method not in self._answers:
            found = [each.answers.get(method) for each in self._run if not each.failed]
            several = [each for each in found if each is not None]
            is_whole = 0 < len(several) == len(self._run)
            forms = {_form(each) for each in several}
            is_alike = is_whole and len(forms) == 1 and None not in forms
            self._answers[method] = several if is_alike else None
        return self._answers[method]

    def _found(self, name: str, method: Method) -> "tuple[Sequence[Answers], int] | None":
        """Return the answers of a method, and the place of a feature in each of them."""
        answers = self._alike(method)
        if answers is None or name not in answers[0].names:
            return None
        return answers, [*answers[0].names].index(name)

    def outputs(self, name: str, method: Method, labels: Labels) -> Floats | None:
        """Return a feature's outputs, shape (observations, outputs, labels)."""
        found = self._found(name, method)
        if found is None:
            return None
        answers, place = found
        if (method, labels) not in self._outputs:
            stack = np.stack([np.asarray(each.blocks) for each in answers], axis=1)
            # not -1: a model that knows no class yet gives no numbers
            flat = stack.reshape(math.prod(stack.shape[:-1]), stack.shape[-1])
            numbers = aligned(Table(answers[0].labels, flat), labels)
            self._outputs[method, labels] = numbers.reshape(*stack.shape[:-1], len(labels))
        return _written(self._outputs[method, labels][place], labels)

    def points(self, name: str, method: Method) -> Floats | None:
        """Return a feature's evaluation points, shape (observations, points)."""
        found = self._found(name, method)
        if found is None:
            return None
        answers, place = found
        axes: list[Any] = [each.points for each in answers if each.points is not None]
        if not all(isinstance(each, np.ndarray) for each in axes):
            return np.array([each[place] for each in axes], np.float64)
        if method not in self._points:
            self._points[method] = np.stack(axes, axis=1)  # feature by feature
        points: Floats = self._points[method][place]
        return points

    def predictions(self, labels: Labels) -> Floats | None:
        """Return the outputs on the observations themselves, shape (observations, labels)."""
        if labels not in self._predictions:
            self._predictions[labels] = self._predicted(labels)
        return self._predictions[labels]

    def _predicted(self, labels: Labels) -> Floats | None:
        own = [each.prediction for each in self._run]
        if not own or {each.labels for each in own} != {own[0].labels}:
            return None
        together = Table(own[0].labels, np.concatenate([each.numbers for each in own]))
        return _written(aligned(together, labels), labels)


def _form(answers: "Answers") -> tuple[object, ...] | None:
    """Return what answers must have in common to be stacked; None for those that never are."""
    blocks, points = answers.blocks, answers.points
    if not isinstance(blocks, np.ndarray):
        return None
    sizes: tuple[int, ...] | None = None
    if isinstance(points, np.ndarray):
        sizes = points.shape
    elif points is not None:
        if not all(isinstance(each, np.ndarray) for each in points):
            return None
        sizes = (*map(len, points),)
    return tuple(answers.names), answers.labels, blocks.shape, sizes


def _written(numbers: Floats, labels: Labels) -> Floats:
    """Return outputs as they are written: in one piece, and as plain numbers without labels."""
    return np.ascontiguousarray(numbers[..., 0] if labels == (None,) else numbers)


class _Lists:
    """The arrays of an observation as lists: by method, rows and points of each feature."""

    def __init__(self, evaluated: Evaluated) -> None:
        self.evaluated = evaluated
        # features mostly have the same labels: one conversion for all, small ones take long
        self._rows: dict[tuple[Method | None, Labels], Mapping[str, list[Row]]] = {}
        self._points: dict[Method, Mapping[str, list[Value]]] = {}

    def continues(self, before: "_Lists", name: str) -> bool:
        """Return whether a feature's evaluation may be appended to another one."""
        own, other = self.evaluated, before.evaluated
        return (
            own.previous_seqs[name] == other.seq
            and own.classes[name] == other.classes[name]
            and own.model_version == other.model_version
            and own.loss_changed_seq == other.loss_changed_seq
            and own.incarnation == other.incarnation
        )

    def own_rows(self, name: str) -> list[Row]:
        """Return the output on the observation itself, one column per label of the feature."""
        labels, own = self.evaluated.classes[name], self.evaluated.prediction
        if (None, labels) not in self._rows:
            self._rows[None, labels] = {"": _as_rows(own, labels)}
        return self._rows[None, labels][""]

    def rows_of(self, name: str, method: Method) -> list[Row] | None:
        """Return a feature's outputs of a method, one column per label; None if there are none."""
        own, labels = self.evaluated, self.evaluated.classes[name]
        if name in own.failed or method not in own.answers:
            return None
        if (method, labels) not in self._rows:
            self._rows[method, labels] = _by_name(own.answers[method], labels)
        return self._rows[method, labels].get(name)

    def points_of(self, name: str, method: Method) -> list[Value] | None:
        """Return a feature's evaluation points of a method; None if there are none."""
        own = self.evaluated
        if name in own.failed or method not in own.answers:
            return None
        if method not in self._points:
            answers = own.answers[method]
            axes = [] if answers.points is None else map(as_list, answers.points)
            self._points[method] = dict(zip(answers.names, axes, strict=False))
        return self._points[method].get(name)


def _columns(run: Sequence[Evaluated]) -> dict[str, list[Any]]:
    """Return the lists that the evaluations of all features share."""
    return {
        "seqs": [each.seq for each in run],
        "ts": [each.ts for each in run],
        "y": [each.y for each in run],
        "loss": [each.loss for each in run],
        "skipped": [each.skipped for each in run],
    }


def _evaluation(
    name: str, items: Sequence[_Lists], stacks: _Stacks, columns: Mapping[str, list[Any]]
) -> Evaluation:
    first = items[0].evaluated
    labels, methods = first.classes[name], first.methods[name]
    prediction: Any = stacks.predictions(labels)
    if prediction is None:
        prediction = [row for each in items for row in each.own_rows(name)]
    outputs: dict[Method, Any] = {}
    points: dict[Method, Any] = {}
    for method in methods:
        outputs[method] = stacks.outputs(name, method, labels)
        if outputs[method] is None:
            outputs[method] = [each.rows_of(name, method) for each in items]
        if METHODS[method].has_points:
            points[method] = stacks.points(name, method)
            if points[method] is None:
                points[method] = [each.points_of(name, method) for each in items]
    return Evaluation(
        stream=first.stream,
        feature=name,
        previous_seq=first.previous_seqs[name],
        **columns,
        classes=None if labels == (None,) else cast(list[Label], list(labels)),
        prediction=prediction,
        coverage=[each.evaluated.coverage[name] for each in items],
        values=_known([each.evaluated.x.get(name) for each in items]),
        contrasts=_contrasts(name, [each.evaluated for each in items]),
        ids=_known([each.evaluated.id for each in items]) if name == first.id_with else None,
        outputs=outputs,
        points=points,
        model_version=first.model_version,
        loss_changed_seq=first.loss_changed_seq,
        incarnation=first.incarnation,
    )


def _contrasts(name: str, run: Sequence[Evaluated]) -> dict[Method, list[Contrast]] | None:
    """Return the contrasts of a feature by method; None without any."""
    found: dict[Method, list[Contrast]] = {}
    for each in run:
        for method, contrast in (each.contrasts or {}).get(name, {}).items():
            found.setdefault(method, []).append(contrast)
    return found or None


def _known(column: list[Any]) -> list[Any] | None:
    """Return a column with its texts cut; None if it has nothing."""
    if all(each is None for each in column):
        return None
    return [each[:SHORT_TEXT] if isinstance(each, str) else each for each in column]


def _by_name(answers: "Answers", labels: Labels) -> dict[str, list[Row]]:
    rows = _as_rows(Table(answers.labels, np.concatenate(answers.blocks)), labels)
    by_name, begin = {}, 0
    for name, block in zip(answers.names, answers.blocks, strict=True):
        by_name[name] = rows[begin : begin + len(block)]
        begin += len(block)
    return by_name


def _as_rows(table: Table, labels: Labels) -> list[Row]:
    """Return rows with exactly these labels as columns."""
    numbers = aligned(table, labels)
    rows: list[Row] = (numbers[:, 0] if labels == (None,) else numbers).tolist()
    return rows


def as_list(points: "Axis | tuple[Axis, Axis]") -> list[Value]:
    """Return evaluation points as an evaluation has them."""
    if isinstance(points, tuple):
        return joined((as_list(points[0]), as_list(points[1])))
    return points.tolist() if isinstance(points, np.ndarray) else list(points)
