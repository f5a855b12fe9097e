"""What is called hostile is: every value of every kind is exactly one dead letter."""

import random

import pytest

from fluxplain.schemas import DeadLetter
from fluxplain.stages import ModelStage, process
from tests.fuzz.hostile import KINDS, hostile
from tests.kit.support import make_config, message

CONFIG = make_config(model={"factory": "river.naive_bayes:GaussianNB", "params": {}})


def test_each_of_them_is_one_dead_letter() -> None:
    stage = ModelStage(CONFIG, "fluxplain.features-0")
    values = list(hostile(2_000, seed=5))
    assert len(set(values)) == 2_000
    for offset, value in enumerate(values):
        [letter] = process(stage, message(offset, value))
        assert isinstance(letter, DeadLetter), value
        assert letter.original() == value


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_one_dead_letter(kind: str) -> None:
    stage, rng = ModelStage(CONFIG, "fluxplain.features-0"), random.Random(1)
    for offset in range(300):
        value = KINDS[kind](rng)
        [letter] = process(stage, message(offset, value))
        assert isinstance(letter, DeadLetter), value
