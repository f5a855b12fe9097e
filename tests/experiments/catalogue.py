"""All experiments, in the order of the page."""

from tests.experiments.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
