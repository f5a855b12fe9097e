"""The thinking of the pipeline, without Kafka: deterministic, picklable between any two steps."""

from typing import TYPE_CHECKING

from pipeline.lazy import lazy
from pipeline.stages.base import Message, Stage, process

if TYPE_CHECKING:
    from pipeline.stages.drift import DriftStage
    from pipeline.stages.explainer import ExplainerStage
    from pipeline.stages.join import JoinStage
    from pipeline.stages.model import ModelStage
else:
    __getattr__, __dir__ = lazy(
        __name__,
        drift=["DriftStage"],
        explainer=["ExplainerStage"],
        join=["JoinStage"],
        model=["ModelStage"],
    )

__all__ = [
    "DriftStage",
    "ExplainerStage",
    "JoinStage",
    "Message",
    "ModelStage",
    "Stage",
    "process",
]
