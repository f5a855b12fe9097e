"""The thinking of the pipeline, without Kafka: deterministic, picklable between any two steps."""

from typing import TYPE_CHECKING

from fluxplain.loading.lazy import lazy
from fluxplain.stages.base import Message, Stage, process

if TYPE_CHECKING:
    from fluxplain.stages.drift import DriftStage
    from fluxplain.stages.explainer import ExplainerStage
    from fluxplain.stages.join import JoinStage
    from fluxplain.stages.model import ModelStage
    from fluxplain.stages.streams import ByStream, by_stream
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
