"""Unusable records among good ones: each is one dead letter, and the good ones do not notice."""

from collections import defaultdict
from pathlib import Path

import orjson
import pytest

from fluxplain.config import load_config
from fluxplain.local import LocalPipeline
from tests.fuzz.hostile import hostile
from tests.kit.kafka_pipeline import Published, Start, identity
from tests.kit.streams import observations
from tests.measure.hostile import LETTERS, check, mix, run


@pytest.mark.kafka
def test_hostile_records_are_dead_letters_and_change_nothing_else(start: Start) -> None:
    mixture = mix(observations(300), list(hostile(3000, seed=5)), seed=5)
    with start() as pipeline:
        outcome = run(pipeline, mixture)
    assert not outcome.problems, outcome.examples
    assert outcome.counts["dead-letters"] == 3000
    assert outcome.counts["predictions"] == 300
    assert outcome.counts["explanations"] > 0


@pytest.mark.embedded
def test_the_check_sees_every_difference(config_path: Path) -> None:
    config = load_config(config_path)
    mixture = mix(observations(60), list(hostile(100, seed=5)), seed=5)
    published: Published = defaultdict(set)
    for record in LocalPipeline(config).run(mixture.values):
        published[identity(record.TOPIC, record.encode())].add(record.encode())
    messages = len(published)
    letter = next(key for key in published if key[0] == LETTERS)
    explanation = next(key for key in published if key[0] == "explanations")

    def problems(changed: Published, more: int = 0) -> str:
        return "; ".join(check(config, mixture, changed, messages + more).problems)

    def without(key: object) -> Published:
        return {each: values for each, values in published.items() if each != key}

    def with_other(key: tuple[object, ...], **fields: object) -> Published:
        (value,) = published[key]
        return {**published, key: {orjson.dumps({**orjson.loads(value), **fields})}}

    assert not problems(published)
    assert "twice" in problems(published, more=1)
    assert "1 dead letters are wrong" in problems(without(letter))
    assert "1 dead letters are wrong" in problems(with_other(letter, reason=" "))
    assert "1 dead letters are wrong" in problems(with_other(letter, sha256="0" * 64))
    assert "1 dead letters are wrong" in problems(with_other(letter, value="else"))
    good = (LETTERS, config.topic("features"), 0, next(iter(mixture.ranks)), None)
    assert "1 dead letters are wrong" in problems({**published, good: published[letter]})
    assert "1 missing" in problems(without(explanation))
    assert "1 different" in problems(with_other(explanation, value=0.5))
    assert "different" in problems(with_other(explanation, previous_seq=max(mixture.ranks)))
