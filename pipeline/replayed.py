"""Rebuilds the model of a moment from the log, to give the reasons for an output of that time."""

from collections.abc import Iterable
from typing import NamedTuple

from fluxplain.config import Config
from fluxplain.local import LocalModel
from fluxplain.schemas import Prediction, Reasons
from fluxplain.stages import Message

SELDOM = 10_000
"""One of how many observations is explained meanwhile: explanations do not change the model."""


class Replayed(NamedTuple):
    """The reasons for an output, one for each label, and the prediction."""

    reasons: list[Reasons]
    prediction: Prediction | None


def replayed(config: Config, partition: int, seq: int, messages: Iterable[Message]) -> Replayed:
    """Return the reasons for the output on an observation, by the model as it was then.

    They are those that the model role published, or would have published: it is bit for bit the
    same model.

    Parameters
    ----------
    config
        The settings under which the messages were processed.
    partition, seq
        The observation: its partition and offset in the model role's input.
    messages
        That partition from its beginning on, at least until the observation.
    """
    own = config.of_stream(partition)
    asked = own.reasons.model_copy(update={"enabled": True})
    model = LocalModel(own.model_copy(update={"reasons": asked}), partition)
    model.stage.ask_reasons(seq)
    for message in messages:
        model.stage.every = SELDOM
        records = [*model.take(message)]
        if message.offset >= seq:
            about = [r for r in records if isinstance(r, Reasons | Prediction) and r.seq == seq]
            found = [each for each in about if isinstance(each, Reasons)]
            first = next((each for each in about if isinstance(each, Prediction)), None)
            return Replayed(found, first)
    return Replayed([], None)
