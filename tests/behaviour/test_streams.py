"""Many streams in one deployment, some with settings of their own, and pipelines side by side."""

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.kafka.checkpoints.checkpoint import CheckpointStore
from fluxplain.kafka.checkpoints.configured import open_store, slots
from fluxplain.kafka.client import cluster
from tests.kit.kafka_pipeline import Groups, KafkaPipeline, Start
from tests.kit.settings import REAL_KAFKA, SETTINGS, Configure, topics, write_config
from tests.kit.streams import observations, with_hostile
from tests.kit.workers import Workers

PARTITIONS = 12 if REAL_KAFKA else 4
"""The embedded broker has no more."""

WORKERS = [*ROLES, *ROLES] if REAL_KAFKA else ROLES
"""Its groups fail at random when a second member joins."""

BAYES = {"factory": "river.naive_bayes:GaussianNB"}

OWN: dict[str, Any] = {
    "1": {
        "model": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 2}},
        "explain": {"alpha": [0.02, 0.2], "emit_every": 5},
    },
    "2": {
        "explain": {"methods": ["isage"], "loss": "zero_one", "isage": {"inner_samples": 1}},
        "drift": {"detector": "page_hinkley", "params": {"threshold": 2.0}},
        "missing": {"policy": "impute"},
    },
}


def all_have_partitions(workers: Workers) -> bool:
    """Return whether every worker of every role has had a share."""
    return {start.pid for start in workers.starts(*ROLES)} >= {*workers.running().values()}


@pytest.mark.quick
def test_every_stream_is_as_its_reference_also_with_settings_of_its_own(
    start: Start, configure: Configure, prefix: str
) -> None:
    many = {**topics(prefix), "features_partitions": PARTITIONS}
    configure(model=BAYES, streams=OWN, topics=many)
    values = {each: with_hostile(observations(90, seed=each)) for each in range(PARTITIONS)}
    with start(roles=WORKERS) as pipeline:
        pipeline.wait_until(lambda: all_have_partitions(pipeline.workers), timeout_s=120)
        for partition, sent in values.items():
            pipeline.send(sent, partition)
        pipeline.finish(values)
    # the settings of each stream are another one's, or this would show little
    explained = [key for key in pipeline.published if key[0] == "explanations"]
    rates = {(stream.rpartition("-")[2], alpha) for _, stream, _, _, alpha, *_ in explained}
    assert {("0", 0.01), ("1", 0.02), ("1", 0.2), ("2", 0.01)} <= rates
    assert {method for _, stream, _, method, *_ in explained if stream.endswith("-2")} == {"isage"}


def test_pipelines_side_by_side_do_not_touch_each_other(
    bootstrap_servers: str, tmp_path: Path, prefix: str
) -> None:
    """One's prefix begins with the other's, and their checkpoints are in one directory."""
    shared = {"FLUXPLAIN_CHECKPOINT__DIRECTORY": str(tmp_path / "checkpoints")}
    pipelines: list[KafkaPipeline] = []
    with ExitStack() as stack:
        for name, seed in ((prefix, 1), (f"{prefix}b.", 2)):
            folder = tmp_path / str(seed)
            folder.mkdir()
            settings = {**SETTINGS, "seed": seed, "model": BAYES, "topics": topics(name)}
            path = write_config(folder / "pipeline.toml", settings)
            pipeline = KafkaPipeline(path, bootstrap_servers, folder, environment=shared)
            pipelines.append(stack.enter_context(pipeline))
        both = list(
            zip(pipelines, (observations(80, seed=1), observations(120, seed=2)), strict=True)
        )
        for pipeline, values in both:
            pipeline.send(values)
        for pipeline, values in both:
            pipeline.finish(values)
    for pipeline, _ in both:
        assert pipeline.messages == len(pipeline.published)
        with closing(Groups(pipeline.config)) as groups:
            assert groups.are_idle(), groups.left()
    one, other = (kept(each, tmp_path / "checkpoints") for each in pipelines)
    assert all(offsets(each) for each in (one, other))
    before = offsets(other)
    for slot in slots(one[0]):
        one[1].remove(slot)
    assert (offsets(one), offsets(other)) == ([], before)


def kept(pipeline: KafkaPipeline, directory: Path) -> tuple[Config, CheckpointStore]:
    """Return the settings and the checkpoints of a pipeline as its workers have them."""
    checkpoint = pipeline.config.checkpoint.model_copy(update={"directory": directory})
    config = pipeline.config.model_copy(update={"checkpoint": checkpoint})
    return config, open_store(config, cluster(config))


def offsets(state: tuple[Config, CheckpointStore]) -> list[int]:
    """Return where each role would go on."""
    config, store = state
    return [each.next_offset for slot in slots(config) if (each := store.load(slot))]
