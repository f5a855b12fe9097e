"""Hoeffding trees, and ensembles of them, asked about all inputs at once."""

from pipeline.evaluate.hoeffding.classifier import TreeClassifierEvaluator
from pipeline.evaluate.hoeffding.regressor import TreeRegressorEvaluator

__all__ = ["TreeClassifierEvaluator", "TreeRegressorEvaluator"]
