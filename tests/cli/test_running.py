"""Commands that run until they are interrupted: worker, up, watch, streams, dashboard."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import orjson
import pytest

from fluxplain.cli.run import _own_environment
from fluxplain.config import load_config
from fluxplain.schemas import OUTPUTS
from fluxplain.sources import Columns, open_source
from tests.cli.commands import one_line, start
from tests.kit.free_ports import free_ports
from tests.kit.in_process import run
from tests.kit.kafka_pipeline import (
    Published,
    assert_same,
    identity,
    reference,
    wait_until_idle,
)
from tests.kit.processes import children_with
from tests.kit.streams import observations
from tests.kit.support import make_config
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.slow

ADDRESS = ".fluxplain/embedded-broker"


@contextmanager
def until_interrupted(folder: Path, *command: str) -> Iterator[None]:
    """Run a command with an embedded broker, and end it by Ctrl-C."""
    process = start(folder, *command)
    try:
        wait_until((folder / ADDRESS).exists)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0
        assert not (folder / ADDRESS).exists()


@pytest.fixture
def running(folder: Path) -> Iterator[Path]:
    """A folder in which ``fluxplain up --embedded`` runs."""
    with until_interrupted(folder, "up", "--embedded"):
        yield folder


@pytest.fixture
def with_broker(folder: Path) -> Iterator[Path]:
    """A folder in which ``fluxplain broker`` runs, with the pipeline's topics."""
    with until_interrupted(folder, "broker"):
        assert run(folder, "topics", "create").returncode == 0
        yield folder


def test_without_a_broker_a_worker_waits_alive_and_not_ready(folder: Path) -> None:
    command = ("worker", "--role", "drift")
    process = start(folder, *command, FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1")
    log = folder / "stderr.log"
    try:
        wait_until(lambda: "waiting for it" in log.read_text())
        told = log.read_text()
        assert "no broker answers at 127.0.0.1:1 (kafka.bootstrap_servers" in told
        address = re.findall(r"drift: health at (http://\S+)", told)[-1]
        with urllib.request.urlopen(f"{address}/healthz", timeout=10) as answer:
            assert answer.status == 200
        with pytest.raises(HTTPError) as not_ready:
            urllib.request.urlopen(f"{address}/readyz", timeout=10)
        assert not_ready.value.code == 503
        body = orjson.loads(not_ready.value.read())
        assert "no broker answers at 127.0.0.1:1" in body["waits_for"]
        assert process.poll() is None
    finally:
        process.terminate()
        status = process.wait(40)
    assert status == 0


def test_ctrl_c_while_the_command_is_loaded_leaves_no_stack_trace(folder: Path) -> None:
    command = [sys.executable, "-m", "fluxplain", "check"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as process:
        while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None
            time.sleep(0.01)  # libraries are being loaded, for a second more
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=40)
    assert process.returncode == 130
    assert stderr == b""


def test_a_csv_through_the_embedded_broker_as_a_user_would(running: Path) -> None:
    rows = [orjson.loads(value) for value in observations(200)]
    header = [*rows[0]["x"], "outcome"]
    lines = [",".join(map(str, [*row["x"].values(), row["y"]])) for row in rows]
    (running / "data.csv").write_text("\n".join([",".join(header), *lines]))
    config = load_config(running / "fluxplain.toml")

    sent = run(running, "replay", "data.csv", "--label", "outcome", "--max-lag", "100")
    assert sent.returncode == 0, sent.stderr
    assert "Sent 200 records" in sent.stdout
    check = run(running, "check")
    assert check.returncode == 0, check.stderr
    assert "fluxplain.features" in run(running, "topics", "describe").stdout
    assert "exists" in run(running, "topics", "create").stdout

    on_broker = config.on_broker((running / ADDRESS).read_text())
    wait_until_idle(on_broker, lambda: time.sleep(0.5), timeout_s=120)
    published: Published = {}
    for topic in OUTPUTS:
        out = run(running, "tail", topic, "--from-beginning", "--until-idle", "6", "--json")
        assert out.returncode == 0, out.stderr
        for line in out.stdout.splitlines():
            published.setdefault(identity(topic, line.encode()), set()).add(line.encode())
    source = open_source(str(running / "data.csv"), config, Columns(label="outcome"))
    assert_same(published, reference(config, source))

    text = run(running, "tail", "explanations", "--from-beginning", "--until-idle", "2").stdout
    assert "ipfi salary = " in text
    file = str(running / "fluxplain.toml")
    stream = f"{config.topic('features')}-0"
    table = interrupted_with(running, "200", "streams", "-c", file, "-c", file)
    assert [line.split()[:2] for line in table.splitlines() if stream in line] == [
        [stream, "200"]
    ] * 2
    screen = interrupted_with(running, "lag: model ", "watch")
    for part in ("salary", "two standard errors", "lag: model "):
        assert part in screen


def interrupted_with(folder: Path, text: str, *command: str) -> str:
    """Return what a command prints last, interrupted after seconds; longer until this is in it."""
    for seconds in (5, 20, 80):
        with (folder / "printed").open("wb") as printed:
            process = start(folder, *command, stdout=printed.fileno())
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            status = process.wait(40)
        last = (folder / "printed").read_text()
        if text in last:
            assert status == 0
            break
    return last


def test_the_dashboard_serves_a_page_until_interrupted(with_broker: Path) -> None:
    def dashboard(port: str, stdout: int) -> "subprocess.Popen[bytes]":
        own = {"FLUXPLAIN_DASHBOARD__PORT": port, "FLUXPLAIN_DASHBOARD__HOST": "0.0.0.0"}
        return start(with_broker, "dashboard", stdout=stdout, **own)

    process = dashboard("0", subprocess.PIPE)
    assert process.stdout is not None
    address = process.stdout.readline().decode().removeprefix("Dashboard: ").strip()
    assert b"dashboard.host is '0.0.0.0'" in process.stdout.readline()
    with urllib.request.urlopen(f"{address}/api/overview", timeout=20) as answer:
        assert orjson.loads(answer.read())["streams"] == []
    port = address.rpartition(":")[2]
    assert dashboard(port, subprocess.DEVNULL).wait(120) == 2
    assert f"dashboard.port is {port}" in one_line((with_broker / "stderr.log").read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    process.stdout.close()


def test_up_serves_the_dashboard_sends_alerts_and_restarts_a_killed_worker(folder: Path) -> None:
    process = start(
        folder,
        *("up", "--embedded"),
        stdout=subprocess.PIPE,
        FLUXPLAIN_DASHBOARD__ENABLED="true",
        FLUXPLAIN_DASHBOARD__PORT="0",
        FLUXPLAIN_HEALTH__PORT=str(free_ports(3)),
    )

    def processes(command: str) -> set[int]:
        return children_with(process.pid, command)

    assert process.stdout is not None
    lines = iter(process.stdout.readline, b"")
    told = next(line for line in lines if line.startswith(b"Dashboard: "))
    address = told.decode().removeprefix("Dashboard: ").strip()
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert b"fluxplain" in answer.read()
    log = folder / "stderr.log"

    def patient(answer: Callable[[], bool]) -> None:
        how = lambda: f"status {process.poll()}: {log.read_text()[-4000:]}"  # noqa: E731
        wait_until(answer, 240.0, what=how)

    patient(lambda: len(processes("worker")) == 3 and len(processes("alerts")) == 1)
    patient(lambda: "alerts begin with new changes" in log.read_text())
    before = processes("worker")
    os.kill(min(before), signal.SIGKILL)
    patient(lambda: len(processes("worker")) == 3 and processes("worker") != before)
    process.send_signal(signal.SIGINT)
    assert process.wait(40) == 0
    process.stdout.close()


@pytest.mark.parametrize("shards", [1, 2])
def test_workers_on_one_machine_share_neither_ports_nor_names(shards: int) -> None:
    model = {**make_config().model.model_dump(), "shards": shards}
    kafka = {"group_instance_id": "host-1"}
    config = make_config(health={"port": 9000}, kafka=kafka, model=model)
    names = [f"{replica}-{n}" for n in (1, 2, 3) for replica in config.replicas()]
    own = [_own_environment(config, name) for name in names]
    ports = [int(each["FLUXPLAIN_HEALTH__PORT"]) for each in own]
    assert ports == list(range(9000, 9000 + len(names)))
    instances = {
        (name.rpartition("-")[0], each["FLUXPLAIN_KAFKA__GROUP_INSTANCE_ID"])
        for name, each in zip(names, own, strict=True)
    }
    assert len(instances) == len(names)
    assert not any(_own_environment(make_config(), name) for name in names)
