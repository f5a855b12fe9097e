"""All experiments, in the order of the page."""

from tests.experiments import ipfi_drift, ipfi_table_1
from tests.experiments.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    ipfi_table_1.EXPERIMENT,
    ipfi_drift.EXPERIMENT,
)
