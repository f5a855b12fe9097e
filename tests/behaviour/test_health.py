"""Workers say how they are, and one that does not go on ends itself."""

import socket
from pathlib import Path

import pytest

from fluxplain.cli.supervisor import ROLES
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.exits import EXIT_FAILED, EXIT_NOT_YET
from tests.kit.faulty_worker import AT_SEQ
from tests.kit.kafka_pipeline import KafkaPipeline, Start, StartFaulty
from tests.kit.preloaded import Command
from tests.kit.streams import observations
from tests.kit.workers import ask, wait_for


@pytest.mark.quick
def test_each_role_is_alive_and_ready_and_says_how_far_it_is(start: Start) -> None:
    with start() as pipeline:
        urls = {role: pipeline.workers.address(f"{role}-1") for role in ROLES}
        pipeline.process(observations(60))
        for role, url in urls.items():
            assert url.startswith("http://127.0.0.1:"), "nobody else is to reach it by default"
            assert wait_for(f"{url}/healthz", 200)["role"] == role
            assert wait_for(f"{url}/readyz", 200)["ready"]
        body = wait_for(f"{urls['model']}/healthz", 200)
        done = {each["partition"]: each["committed_offset"] for each in body["partitions"]}
        assert done[0] == 60
        assert body["topics"] == [pipeline.config.topic("features")]
        assert body["stalled"] is None


def test_without_its_broker_a_worker_is_alive_but_not_ready(
    config_path: Path, tmp_path: Path
) -> None:
    with EmbeddedBroker() as broker:
        pipeline = KafkaPipeline(config_path, broker.bootstrap_servers, tmp_path, roles=["model"])
        with pipeline:
            url = pipeline.workers.address("model-1")
            wait_for(f"{url}/readyz", 200)
            broker.close()
            assert not wait_for(f"{url}/readyz", 503)["broker_answers"]
            assert ask(f"{url}/healthz")[0] == 200, "a new start would not help"


def test_a_worker_that_takes_nothing_more_ends_itself_and_nothing_is_lost(
    start: Start, start_faulty: StartFaulty
) -> None:
    values = observations(120)
    with start(roles=["explainer", "drift"]) as pipeline:
        hanging = start_faulty(pipeline, "hangs", FLUXPLAIN_HEALTH__STALL_S="5")
        pipeline.send(values)
        assert hanging.wait(60) == EXIT_FAILED
        stream = f"{pipeline.config.topic('features')}-0"
        assert f"no message of {stream} was taken for 5 s" in pipeline.log
        assert pipeline.counts()["predictions"] <= AT_SEQ
        pipeline.workers.add("model")
        pipeline.finish(values)


@pytest.mark.embedded
def test_a_port_that_is_taken_is_a_clear_error_after_which_a_restart_may_help(
    start: Start, config_path: Path, fluxplain: Command
) -> None:
    with start(roles=[]) as pipeline, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environment = {**pipeline.environment, "FLUXPLAIN_HEALTH__PORT": str(port)}
        result = fluxplain(config_path, "worker", "--role", "drift", **environment)
    assert result.returncode == EXIT_NOT_YET
    assert f"health.port is {port}" in result.stderr
    assert "Traceback" not in result.stderr
