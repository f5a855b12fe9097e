"""Evaluators of Hoeffding trees and their ensembles, for all inputs at once."""

from fluxplain.evaluate.hoeffding.classifier import TreeClassifierEvaluator
from fluxplain.evaluate.hoeffding.regressor import TreeRegressorEvaluator

__all__ = ["TreeClassifierEvaluator", "TreeRegressorEvaluator"]
