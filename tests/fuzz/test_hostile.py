"""What is called hostile is: every value of every kind is exactly one dead letter."""

import random

import pytest

from fluxplain.schemas import DeadLetter
from fluxplain.stages import ModelStage, process
from tests.fuzz.hostile import KINDS, hostile
from tests.kit.support import make_config, message

CONFIG = make_config(model={"factory": "river.naive_bayes:GaussianNB", "params": {}})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_one_dead_letter(kind: str) -> None:
    stage, rng = ModelStage(CONFIG, "fluxplain.features-0"), random.Random(1)
    for offset in range(300):
        value = KINDS[kind](rng)
        [letter] = process(stage, message(offset, value))
        assert isinstance(letter, DeadLetter), value
        assert letter.original() == value


def test_a_stream_of_them_has_no_value_twice() -> None:
    assert len(set(hostile(2_000, seed=5))) == 2_000
