"""The models in a stream's checkpoints, named by their offsets."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from fluxplain import forest, stages
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.checkpoints.checkpoint import Candidate, CheckpointStore, Slot
from fluxplain.kafka.checkpoints.envelope import DamagedError, RefusedError
from fluxplain.kafka.client import TopicPartition, ask_log_ranges, asking_consumer
from fluxplain.kafka.topics.oldest_messages import OldestMessages
from fluxplain.models.scores import Scored
from fluxplain.spelling import hint

if TYPE_CHECKING:
    from fluxplain.stages import ModelStage

NEWEST = 500
"""Number of losses in the mean, as in the metric ``fluxplain_loss``."""

MOST_NAMED = 10
"""Largest number of checkpoints named in an error."""


class PastModel(NamedTuple):
    """The model's state before the message at ``offset`` of its stream."""

    offset: int
    stage: "ModelStage"

    @property
    def version(self) -> str | None:
        """The model's version at that time."""
        return self.stage.active.version

    @property
    def loss(self) -> float | None:
        """The mean of the ``NEWEST`` losses up to then; None if no loss is watched."""
        return self.stage.mean_loss(NEWEST)


class UnusableModel(NamedTuple):
    """A checkpoint that must not or cannot be opened, and the reason."""

    offset: int | None
    name: str
    reason: str


def model_slot(config: Config, partition: int) -> Slot:
    """Return the slot whose older checkpoints are kept; every shard has the same model."""
    return Slot.of(config.replicas("model")[0], config.topic(config.source), partition)


def exported(stage: "ModelStage") -> Any:
    """Return a stage's model as another pipeline takes it."""
    model = stage.model.detector if isinstance(stage.model, Scored) else stage.model
    return forest.as_river(model)


def past_models(store: CheckpointStore, slot: Slot) -> Iterator[PastModel | UnusableModel]:
    """Yield the models of a slot's checkpoints, newest first; of an offset only the newest."""
    seen = set[int]()
    for candidate in store.candidates(slot):
        if candidate.next_offset in seen:
            continue
        found = _opened(candidate)
        if isinstance(found, UnusableModel):
            yield found
        elif found.offset not in seen:
            seen.add(found.offset)
            yield found


def past_model(store: CheckpointStore, slot: Slot, offset: int) -> PastModel:
    """Return the model of the checkpoint at an offset; raise ConfigError if there is none."""
    others: list[str] = []
    reason = None
    for found in past_models(store, slot):
        if found.offset != offset:
            others.append(str(found.offset))
        elif isinstance(found, PastModel):
            return found
        else:
            reason = reason or found.reason
    if reason:
        raise ConfigError(f"the checkpoint {offset} of {slot} cannot be used: {reason}")
    named = ", ".join(others[:MOST_NAMED]) or "none"
    meant = hint(str(offset), others)
    raise ConfigError(f"{slot} has no checkpoint {offset}, its checkpoints are: {named}{meant}")


def published_at(config: Config, tp: TopicPartition, offsets: list[int]) -> dict[int, float]:
    """Return when the message before each offset was published, in seconds since 1970.

    Offsets are missing whose message was deleted, has no time, or cannot be read.
    """
    with closing(asking_consumer(config, tp.topic)) as consumer:
        what = f"cannot read {tp}"
        log = ask_log_ranges(config, consumer, tp.topic, [tp.partition], what)[tp]
    found: dict[int, float] = {}
    with closing(OldestMessages(config)) as messages:
        for offset in offsets:
            if offset - 1 in log:
                time_s = messages.published_at({tp: (offset - 1, log.stop)}).get(tp)
                found |= {} if time_s is None else {offset: time_s}
    return found


def _opened(candidate: Candidate) -> PastModel | UnusableModel:
    try:
        checkpoint = candidate.open()
    except (DamagedError, RefusedError) as error:
        return UnusableModel(candidate.next_offset, candidate.name, str(error))
    stage = checkpoint.stage
    if not isinstance(stage, stages.ModelStage):
        return UnusableModel(checkpoint.next_offset, candidate.name, "it is of another role")
    return PastModel(checkpoint.next_offset, stage)
