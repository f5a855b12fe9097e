"""The thinking of the pipeline, without Kafka: deterministic, picklable between any two steps."""

from typing import TYPE_CHECKING

from pipeline.lazy import lazy
from pipeline.stages.base import Message, Stage, process

if TYPE_CHECKING:
    from pipeline.stages.drift import DriftStage
    from pipeline.stages.explainer import ExplainerStage
    from pipeline.stages.join import JoinStage
    from pipeline.stages.model import ModelStage
    from pipeline.stages.streams import ByStream, by_stream
else:
    __getattr__, __dir__ = lazy(
        __name__,
        drift=["DriftStage"],
        explainer=["ExplainerStage"],
        join=["JoinStage"],
        model=["ModelStage"],
        streams=["ByStream", "by_stream"],
    )

__all__ = [
    "ByStream",
    "DriftStage",
    "ExplainerStage",
    "JoinStage",
    "Message",
    "ModelStage",
    "Stage",
    "by_stream",
    "process",
]
