"""Fresh stages and the reference: what they publish for some values."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import orjson

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.local import LocalPipeline
from fluxplain.schemas import DeadLetter, Evaluation, Explanation, Record
from fluxplain.schemas.evaluation import _BLOCKS, _COLUMNS, _OPTIONAL
from fluxplain.stages import ExplainerStage, ModelStage
from fluxplain.stages.metering import Work
from fluxplain.stages.model_stage import WHOLE
from tests.kit.support import STREAM, encoded, messages_of, of_kind, passed_on, run

T = TypeVar("T")


def modelled(config: Config, values: Iterable[object], replica: Replica = WHOLE) -> list[Record]:
    """Return what a fresh model stage publishes."""
    return run(ModelStage(config, STREAM, replica), messages_of(values))


def explained(config: Config, evaluations: Sequence[Evaluation]) -> list[Record]:
    """Return what a fresh explainer stage publishes."""
    return run(ExplainerStage(config), passed_on(evaluations))


def local(config: Config, values: Iterable[object]) -> list[Record]:
    """Return what the reference publishes."""
    return list(LocalPipeline(config).run(each.value for each in messages_of(values)))


def explanations(config: Config, values: Iterable[object]) -> list[Explanation]:
    """Return the explanations of the reference."""
    return of_kind(local(config, values), Explanation)


def contents(records: Iterable[Record]) -> list[Any]:
    """Return the records without their places in the log."""
    places = {"seq", "previous_seq", "seqs", "observation"}
    return [
        {name: value for name, value in orjson.loads(each).items() if name not in places}
        for each in encoded(records)
    ]


def only_letter(records: Sequence[Record]) -> DeadLetter:
    """Return the dead letter that is all there is."""
    [letter] = records
    assert isinstance(letter, DeadLetter)
    return letter


def merged(runs: Sequence[Evaluation]) -> Evaluation:
    """Return one run of evaluations that follow each other."""

    def whole(name: str) -> list[Any]:
        return [item for run in runs for item in getattr(run, name)]

    given = [name for name in _OPTIONAL if getattr(runs[0], name) is not None]
    columns = {name: whole(name) for name in (*_COLUMNS, *given)}
    blocks = {
        name: {
            method: [item for run in runs for item in getattr(run, name)[method]]
            for method in getattr(runs[0], name)
        }
        for name in _BLOCKS
    }
    return replace(runs[0], **columns, **blocks)  # type: ignore[arg-type]


def as_arrays(run: Evaluation) -> Evaluation:
    """Return a run whose answers are arrays, as far as they have the right form."""
    classes = () if run.classes is None else (len(run.classes),)
    blocks: dict[str, Any] = {
        name: {method: _array(each, 2, columns) for method, each in getattr(run, name).items()}
        for name, columns in (("outputs", classes), ("points", ()))
    }
    return replace(run, prediction=_array(run.prediction, 1, classes), **blocks)


def _array(lists: Any, axes: int, classes: tuple[int, ...]) -> Any:
    """Return lists of floats as an array, unless they have another form."""
    try:
        array = np.array(lists, dtype=object)
    except ValueError:
        return lists
    fits = array.ndim == axes + len(classes) and array.shape[axes:] == classes
    return np.array(lists) if fits and set(map(type, array.flat)) == {float} else lists


def continues(later: Evaluation, run: Evaluation) -> bool:
    """Return whether an evaluation may be appended to a run."""
    same = "stream", "feature", "classes", "model_version", "loss_changed_seq", "incarnation"
    return later.previous_seq == run.seqs[-1] and all(
        getattr(later, name) == getattr(run, name) for name in same
    )


class Tally:
    """A meter that counts the inputs of each kind."""

    def __init__(self) -> None:
        self.inputs: Counter[Work] = Counter()

    def __call__(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        self.inputs.update(shares)
        return call()


def metered(config: Config, replica: Replica = WHOLE) -> tuple[ModelStage, Tally]:
    """Return a fresh model stage and the meter of its model's calls."""
    stage, tally = ModelStage(config, STREAM, replica), Tally()
    stage.meter = tally
    return stage, tally
