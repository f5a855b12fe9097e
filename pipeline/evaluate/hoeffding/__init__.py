"""Hoeffding trees, and ensembles of them, asked about all inputs at once."""

from fluxplain.evaluate.hoeffding.classifier import TreeClassifierEvaluator
from fluxplain.evaluate.hoeffding.regressor import TreeRegressorEvaluator

__all__ = ["TreeClassifierEvaluator", "TreeRegressorEvaluator"]
