"""Models of other libraries, and such as need no label, on Kafka; killed in between."""

from pathlib import Path

import pytest

from tests.kit.kafka_pipeline import Start
from tests.kit.settings import topics, write_config
from tests.models.kinds import BROKEN, KINDS, messages
from tests.models.run import most_important


@pytest.fixture
def plain_installation() -> None:
    """Let workers import scikit-learn, unlike those of the other tests here."""


@pytest.mark.embedded
@pytest.mark.parametrize("name", ["mlp", "autoencoder"])
def test_publishes_what_the_reference_publishes_also_after_a_kill(
    start: Start, config_path: Path, tmp_path: Path, prefix: str, name: str
) -> None:
    kind = KINDS[name]
    write_config(config_path, {**kind.settings(tmp_path), "topics": topics(prefix)})
    values = messages(kind.stream, 400)
    with start() as pipeline:
        pipeline.feed_killing(values, {200: "model-1"})
        pipeline.finish(values)
    assert pipeline.counts()["dead-letters"] == 0
    assert len(pipeline.workers.deaths) == 1
    predictions = pipeline.records("predictions")
    assert all(record["loss"] is not None for record in predictions)
    explanations = pipeline.records("explanations")
    assert {record["method"] for record in explanations} == {"ipfi", "isage", "ipdp"}
    if kind.label == "none":
        assert {record["y"] for record in predictions} == {None}
        assert most_important("isage", explanations).startswith(BROKEN)
    else:
        assert {record["y"] for record in predictions} == {True, False}
