"""Stages: records in, records out; no Kafka, deterministic, picklable between any two steps."""

from typing import TYPE_CHECKING

from fluxplain.loading.lazy import lazy
from fluxplain.stages.stage import Message, Stage, process

if TYPE_CHECKING:
    from fluxplain.stages.drift_stage import DriftStage
    from fluxplain.stages.explainer_stage import ExplainerStage
    from fluxplain.stages.join_stage import JoinStage
    from fluxplain.stages.model_stage import ModelStage
    from fluxplain.stages.streams import ByStream, by_stream
else:
    __getattr__, __dir__ = lazy(
        __name__,
        drift_stage=["DriftStage"],
        explainer_stage=["ExplainerStage"],
        join_stage=["JoinStage"],
        model_stage=["ModelStage"],
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
