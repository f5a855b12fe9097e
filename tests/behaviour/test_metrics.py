"""What real workers tell Prometheus is what they did, and all of it is documented."""

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from fluxplain.cli.supervisor import ROLES
from tests.deploy.documented import documented_metrics
from tests.kit.kafka_pipeline import KafkaPipeline, Start
from tests.kit.settings import SENSITIVE_DRIFT, Configure
from tests.kit.streams import observations, with_hostile
from tests.kit.waiting import wait_until

GROUPS = "fluxplain_group_"
"""What the dashboard's metrics begin with: see ``test_group_metrics.py``."""


class Scrape:
    """The answers of all roles."""

    def __init__(self, pipeline: KafkaPipeline) -> None:
        self.families: list[Metric] = []
        for role in ROLES:
            url = pipeline.workers.address(f"{role}-1")
            with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=")
                self.families += text_string_to_metric_families(answer.read().decode())

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the samples with these labels."""
        return sum(self._values(name, labels))

    def _values(self, name: str, labels: dict[str, str]) -> Iterator[float]:
        for family in self.families:
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    yield sample.value

    def documented(self) -> dict[str, tuple[str, set[str], str]]:
        """Return name → type, labels and meaning."""
        found: dict[str, tuple[str, set[str], str]] = {}
        for family in self.families:
            name = family.name + ("_total" if family.type == "counter" else "")
            _, labels, _ = found.setdefault(name, (family.type, set(), family.documentation))
            labels |= {label for sample in family.samples for label in sample.labels} - {"le"}
        return found


def up_to_date(pipeline: KafkaPipeline) -> Scrape | None:
    """Return the answers once all is counted, and lag and readiness were looked at since."""
    scrape = Scrape(pipeline)
    ready = scrape.value("fluxplain_ready") == len(ROLES)
    behind = ("fluxplain_lag_messages", "fluxplain_outputs_waiting")
    return None if not ready or any(scrape.value(name) for name in behind) else scrape


def test_a_worker_that_starts_again_knows_when_its_partitions_were_last_committed(
    start: Start,
) -> None:
    name = "fluxplain_last_commit_timestamp_seconds"
    with start() as pipeline:
        began_at = time.time()
        pipeline.process(observations(60))
        ended_at = time.time()
        for _ in range(2):  # a start alone changes nothing
            pipeline.workers.crash("model-1")
            pipeline.attend()
            scrape = wait_until(lambda: up_to_date(pipeline), 60.0)
            assert began_at < scrape.value(name, role="model") < ended_at
        pipeline.process(observations(70)[60:])
        assert ended_at < Scrape(pipeline).value(name, role="model")


@pytest.mark.quick
def test_metrics_tell_what_was_published_and_are_all_documented(
    start: Start, configure: Configure, tmp_path: Path
) -> None:
    configure(drift=SENSITIVE_DRIFT)
    waits = orjson.loads(observations(1)[0])
    values = [*with_hostile(observations(300)), orjson.dumps({**waits, "y": None, "id": 1})]
    began_at = time.time()
    with start() as pipeline:
        pipeline.process(values)
        scrape = wait_until(lambda: up_to_date(pipeline), 60.0)
        counts = pipeline.counts()
        assert counts["changes"]
        assert counts["dead-letters"]

        for topic, count in counts.items():
            assert scrape.value("fluxplain_records_published_total", topic=topic) == count
        assert scrape.value("fluxplain_changes_total") == counts["changes"]
        assert scrape.value("fluxplain_step_seconds_count", role="model") == len(values)
        stream = pipeline.config.topic("features") + "-0"
        features = {"role": "model", "stream": stream}
        assert scrape.value("fluxplain_next_offset", **features) == len(values)
        assert scrape.value("fluxplain_committed_offset", **features) == len(values)
        assert scrape.value("fluxplain_newest_seq", **features) == len(values) - 1
        assert began_at < scrape.value("fluxplain_last_commit_timestamp_seconds", role="model")
        assert began_at < scrape.value("fluxplain_checkpoint_timestamp_seconds", **features)
        [newest] = sorted((tmp_path / "checkpoints").glob(f"*/model/{stream}/*.checkpoint"))[-1:]
        size = newest.stat().st_size
        assert 0 < size - scrape.value("fluxplain_checkpoint_size_bytes", **features) < 10_000
        for name in ("step", "checkpoint", "commit", "rebalance"):
            for role in ROLES:
                assert scrape.value(f"fluxplain_{name}_seconds_sum", role=role) > 0
        asking = [
            scrape.value("fluxplain_evaluation_seconds_total", role="model", method=method)
            for method in pipeline.config.explain.methods
        ]
        asking.append(scrape.value("fluxplain_prediction_seconds_total", role="model"))
        learning = scrape.value("fluxplain_learning_seconds_total", role="model")
        assert all(seconds > 0 for seconds in (*asking, learning))
        steps = scrape.value("fluxplain_step_seconds_sum", role="model")
        assert sum(asking) + learning < steps, "the model works within the steps"
        for role in ROLES:
            assert scrape.value("fluxplain_faust_messages_received_total", role=role) > 0

        last = pipeline.records("explanations")[-1]
        told = {name: last[name] for name in ("stream", "feature", "method")}
        assert scrape.value("fluxplain_importance", **told) == last["value"]
        assert scrape.value("fluxplain_importance_std_error", **told) == last["std_error"]

    exposed = scrape.documented()
    expected = {
        name: (row.type, set(row.labels), row.meaning)
        for name, row in documented_metrics().items()
        if not name.startswith(GROUPS)
    }
    assert exposed == expected, "the table in deploy/README.md"
