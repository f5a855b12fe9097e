"""The thinking of the pipeline, without Kafka: deterministic, picklable between any two steps."""

from pipeline.stages.base import Message, Stage, process
from pipeline.stages.drift import DriftStage
from pipeline.stages.explainer import ExplainerStage
from pipeline.stages.model import ModelStage

__all__ = ["DriftStage", "ExplainerStage", "Message", "ModelStage", "Stage", "process"]
