"""What the runner and the page expect of every experiment."""

import json
import pickle

import pytest

from tests.measure.experiments.catalogue import EXPERIMENTS
from tests.measure.experiments.experiment import Experiment
from tests.measure.experiments.results import fingerprint


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_tasks(experiment: Experiment) -> None:
    one, two = experiment.tasks(1), experiment.tasks(2)
    keys = [task.key for task in two]
    assert len(set(keys)) == len(keys) > len(one)
    assert {task.key for task in one} < set(keys)
    for task in two:
        assert pickle.loads(pickle.dumps(task)) == task
        assert json.loads(json.dumps(task.arguments)) == task.arguments


def test_each_has_a_fingerprint_of_its_own() -> None:
    assert len({fingerprint(experiment) for experiment in EXPERIMENTS}) == len(EXPERIMENTS)


def test_names() -> None:
    names = [experiment.name for experiment in EXPERIMENTS]
    assert len(set(names)) == len(names)
