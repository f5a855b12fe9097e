"""All experiments, in the order of the page."""

from tests.measure.experiments import (
    drift,
    ipdp_agrawal,
    ipdp_batch,
    ipdp_elec2,
    ipdp_hyperplane,
    ipfi_drift,
    ipfi_table_1,
    isage_elec2,
    isage_imputers,
    isage_sensors,
    isage_table_2,
)
from tests.measure.experiments.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    ipfi_table_1.EXPERIMENT,
    ipfi_drift.EXPERIMENT,
    isage_table_2.EXPERIMENT,
    isage_imputers.EXPERIMENT,
    isage_elec2.EXPERIMENT,
    isage_sensors.EXPERIMENT,
    ipdp_elec2.EXPERIMENT,
    ipdp_hyperplane.EXPERIMENT,
    ipdp_agrawal.EXPERIMENT,
    ipdp_batch.EXPERIMENT,
    drift.EXPERIMENT,
)
