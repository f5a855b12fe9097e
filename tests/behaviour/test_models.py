"""Models of other libraries, and such as need no label, on Kafka; killed in between."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.kafka_pipeline import Start, assert_same, records_of, reference
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

    def killing() -> Iterator[bytes]:
        for i, value in enumerate(values):
            if i == 200:
                pipeline.kill("model")
            yield value

    with start() as pipeline:
        sent = pipeline.feed(killing(), max_lag=100)
        pipeline.wait_until_through(sent, timeout_s=180)
    assert_same(pipeline.published, reference(pipeline.config, values))
    assert pipeline.counts()["dead-letters"] == 0
    assert len(pipeline.workers.deaths) == 1
    predictions = records_of(pipeline.published, "predictions")
    assert all(record["loss"] is not None for record in predictions)
    explanations = records_of(pipeline.published, "explanations")
    assert {record["method"] for record in explanations} == {"ipfi", "isage", "ipdp"}
    if kind.label == "none":
        assert {record["y"] for record in predictions} == {None}
        assert most_important("isage", explanations).startswith(BROKEN)
    else:
        assert {record["y"] for record in predictions} == {True, False}
