"""The command line as people use it: what it prints, its exit status, and no stack traces."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError

import orjson
import psutil
import pytest

from pipeline.cli.run import _own_environment
from pipeline.config import Config, load_config
from pipeline.kafka.checkpoints import (
    Checkpoint,
    CheckpointError,
    DirectoryCheckpointStore,
    Envelope,
    Identity,
    Slot,
    open_store,
)
from pipeline.kafka.client import cluster
from pipeline.outputs import OUTPUTS
from pipeline.sources import Columns, open_source
from pipeline.stages import DriftStage
from pipeline.supervisor import ROLES
from tests.behaviour.conftest import SETTINGS, no_process_left, write_config
from tests.behaviour.kafka_pipeline import Published, assert_same, identity, reference
from tests.behaviour.preloaded import Preloaded, bare_path
from tests.behaviour.test_pipeline import observations
from tests.registry import RegistryServer
from tests.support import make_config

__all__ = ["no_process_left"]

SOURCE = "river:Agrawal?classification_function=1"

BAYES = "river.naive_bayes:GaussianNB"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = {
        **SETTINGS,
        "kafka": {"bootstrap_servers": "embedded"},
        "alerts": {"url": "http://127.0.0.1:1/"},
    }
    write_config(tmp_path / "fluxplain.toml", settings)
    return tmp_path


@pytest.fixture
def running(folder: Path) -> Iterator[Path]:
    """A folder in which ``fluxplain up --embedded`` runs."""
    process = _start(folder, "up", "--embedded")
    address = folder / ".fluxplain/embedded-broker"
    try:
        _wait(address.exists)
        yield folder
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0
        assert not address.exists()


@pytest.fixture
def with_topics(folder: Path) -> Iterator[Path]:
    """A folder in which ``fluxplain broker`` runs, with the pipeline's topics."""
    process = _start(folder, "broker")
    try:
        _wait((folder / ".fluxplain/embedded-broker").exists)
        assert _run(folder, "topics", "create").returncode == 0
        yield folder
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0


def test_help_names_every_command(folder: Path) -> None:
    result = _run(folder, "--help")
    assert result.returncode == 0
    commands = ("init", "check", "topics", "worker", "up", "broker", "replay", "local", "tail")
    more = ("watch", "demo", "checkpoints", "explain-change", "alerts", "export", "plot")
    for command in (*commands, *more, "dashboard", "streams"):
        assert command in result.stdout


def test_init_writes_a_configuration_that_is_valid_and_keeps_what_is_there(tmp_path: Path) -> None:
    assert _run(tmp_path, "init").returncode == 0
    load_config(tmp_path / "fluxplain.toml")
    again = _run(tmp_path, "init")
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_check_names_every_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "fluxplain.toml").write_text('[features]\na = "num"\n[explain]\nalpha = 2\n')
    result = _run(tmp_path, "check")
    assert result.returncode == 2
    for part in ("features.a is 'num'", "explain.alpha is 2", "model is missing"):
        assert part in result.stderr
    assert "Traceback" not in result.stderr


def test_check_says_that_no_broker_answers(folder: Path) -> None:
    result = _run(folder, "check", FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1")
    assert result.returncode == 2
    assert "valid" in result.stdout
    assert "no broker answers at 127.0.0.1:1" in result.stderr


def test_check_names_the_model_and_how_it_is_asked(folder: Path) -> None:
    nowhere = {"FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    result = _run(folder, "check", FLUXPLAIN_MODEL__LEARN="false", **nowhere)
    assert "model: ARFClassifier, frozen: it never learns\nevaluator: hoeffding" in result.stdout
    steps = '{"steps": ["river.preprocessing:MinMaxScaler", "river.anomaly:HalfSpaceTrees"]}'
    detector = {
        "FLUXPLAIN_MODEL__FACTORY": "pipeline.models:from_river",
        "FLUXPLAIN_LABEL__TYPE": "none",
        "FLUXPLAIN_EXPLAIN__LOSS": "minus_score",
        **nowhere,
    }
    (folder / "fluxplain.toml").write_text('[features]\nage = "numeric"\n[model]\n')
    result = _run(folder, "check", FLUXPLAIN_MODEL__PARAMS=steps, **detector)
    assert "model: MinMaxScaler | HalfSpaceTrees\nevaluator: generic" in result.stdout
    detector["FLUXPLAIN_LABEL__TYPE"] = "number"
    detector["FLUXPLAIN_EXPLAIN__LOSS"] = "squared_error"
    result = _run(folder, "check", FLUXPLAIN_MODEL__PARAMS=steps, **detector)
    assert result.returncode == 2
    assert "for an anomaly detector set label.type to 'none'" in _one_line(result.stderr)


def test_check_tries_the_model_and_warns_of_what_it_answers(folder: Path) -> None:
    (folder / "mymodel.py").write_text(
        "class Model:\n"
        "    def __init__(self, **params):\n"
        "        pass\n"
        "    def predict_proba_one(self, x):\n"
        "        return {'yes': 0.5, 'no': 0.5}\n"
        "    def learn_one(self, x, y):\n"
        "        pass\n"
    )
    own = {"FLUXPLAIN_MODEL__FACTORY": "mymodel:Model"}
    told = "it answers with the class 'yes', but label.type is 'integer'"
    assert told in _run(folder, "check", **own).stderr
    classes = {"FLUXPLAIN_LABEL__TYPE": "string"}
    assert "made up" not in _run(folder, "check", **own, **classes).stderr


def test_check_names_the_models_of_streams_and_which_streams_there_are_not(
    with_topics: Path,
) -> None:
    own = {f"FLUXPLAIN_STREAMS__{each}__MODEL__FACTORY": BAYES for each in (1, 9)}
    result = _run(with_topics, "check", **own)
    assert "model: ARFClassifier\nevaluator: hoeffding" in result.stdout
    stream = load_config(with_topics / "fluxplain.toml").topic("features")
    assert f"stream {stream}-1: model GaussianNB, evaluator generic" in _one_line(result.stdout)
    assert result.returncode == 2
    assert f"streams has 9, but {stream} has 4 partitions, from 0 to 3" in _one_line(result.stderr)


def test_check_asks_the_schema_registry(with_topics: Path) -> None:
    with RegistryServer(("fluxplain", "s3cret")) as server:
        user = {"FLUXPLAIN_REGISTRY__USERNAME": "fluxplain", "FLUXPLAIN_REGISTRY__URL": server.url}
        result = _run(with_topics, "check", FLUXPLAIN_REGISTRY__PASSWORD="s3cret", **user)
        assert result.returncode == 0
        assert f"registry: at {server.url}" in _one_line(result.stdout)
        result = _run(with_topics, "check", FLUXPLAIN_REGISTRY__PASSWORD="other-s3cret", **user)
    assert result.returncode == 2
    assert f"the schema registry at {server.url} refuses: Unauthorized" in _one_line(result.stderr)
    assert "s3cret" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    "command", ["check", "watch", "up", "worker --role model", "tail changes", "checkpoints list"]
)
def test_a_missing_embedded_broker_is_told(folder: Path, command: str) -> None:
    result = _run(folder, *command.split())
    assert result.returncode == 2
    assert "no embedded broker runs" in _one_line(result.stderr)


def test_checkpoints_are_listed_and_removed(with_topics: Path) -> None:
    config = _settings(with_topics)
    store = open_store(config, cluster(config))
    slots = [Slot("drift", "fluxplain.explanations", partition) for partition in (0, 1)]
    for slot in slots:
        store.save(slot, Checkpoint(1234, DriftStage(config)))
    listed = _run(with_topics, "checkpoints", "list").stdout
    for slot in slots:
        assert f"{slot}: goes on at offset 1,234" in listed
    assert "model fluxplain.features-0: no checkpoint" in listed

    remove = ("checkpoints", "remove", "--role", "drift", "--partition", "0")
    asked = _run(with_topics, *remove)  # nobody answers
    assert "Remove the checkpoints of drift, partition 0?" in asked.stdout
    assert asked.returncode == 1
    assert "Traceback" not in asked.stderr
    assert all(store.load(slot) for slot in slots)

    removed = _run(with_topics, *remove, "--yes")
    assert removed.returncode == 0, removed.stderr
    assert removed.stdout == f"{slots[0]}: removed\n"
    assert store.load(slots[0]) is None
    assert store.load(slots[1]) is not None

    everything = _run(with_topics, "checkpoints", "remove", "-y").stdout
    assert f"{slots[0]}: nothing was there" in everything
    assert f"{slots[1]}: removed" in everything


def test_a_refused_checkpoint_is_listed_with_the_command_that_removes_it(
    with_topics: Path,
) -> None:
    config = _settings(with_topics)
    metadata = cluster(config)
    other = Envelope(Identity.of({"seed": "other"}, str(metadata.cluster_id)))
    slot = Slot("model", "fluxplain.features", 2)
    DirectoryCheckpointStore(config.checkpoint.directory, other).save(
        slot, Checkpoint(7, DriftStage(config))
    )
    with pytest.raises(CheckpointError):
        open_store(config, metadata).load(slot)

    listed = _run(with_topics, "checkpoints", "list")
    assert listed.returncode == 0, listed.stderr
    [command] = re.findall("`fluxplain (checkpoints .*?)`", _one_line(listed.stdout))
    assert _run(with_topics, *command.split(), "--yes").returncode == 0
    assert open_store(config, metadata).load(slot) is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--partition 99", "no role reads partition 99"),
        ("--role drift --partition 4", "drift reads no partition 4"),
        ("--role nobody", "nobody"),
    ],
)
def test_what_is_not_there_cannot_be_removed(
    with_topics: Path, arguments: str, reason: str
) -> None:
    result = _run(with_topics, "checkpoints", "remove", "--yes", *arguments.split())
    assert result.returncode == 2
    assert reason in result.stderr
    assert "Traceback" not in result.stderr


def test_checkpoints_in_a_topic_are_not_for_the_embedded_broker(with_topics: Path) -> None:
    result = _run(
        with_topics,
        *("checkpoints", "list"),
        FLUXPLAIN_CHECKPOINT__STORE="topic",
        FLUXPLAIN_CHECKPOINT__KEY="k" * 32,
    )
    assert result.returncode == 2
    assert "checkpoint.store is 'topic'" in _one_line(result.stderr)


def test_local_writes_what_the_reference_publishes(folder: Path) -> None:
    result = _run(folder, "local", SOURCE, "--limit", "150", "--out", "results")
    assert result.returncode == 0, result.stderr
    config = load_config(folder / "fluxplain.toml")
    expected = reference(config, open_source(SOURCE, config, limit=150))
    assert_same(_files(folder / "results"), expected)
    assert "replaced" not in result.stdout
    again = _run(folder, "local", SOURCE, "--limit", "10", "--out", "results")
    assert "What an earlier run wrote to results is replaced." in again.stdout


def test_local_computes_a_stream_with_settings_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUXPLAIN_STREAMS__2__EXPLAIN__EMIT_EVERY", "7")
    options = ("--limit", "60", "--out", "results")
    assert _run(folder, "local", SOURCE, "--partition", "2", *options).returncode == 0
    config = load_config(folder / "fluxplain.toml")
    assert config.of_stream(2).explain.emit_every == 7
    expected = reference(config, open_source(SOURCE, config, limit=60), 2)
    assert_same(_files(folder / "results"), expected)


def test_local_of_an_endless_source_asks_for_a_limit(folder: Path) -> None:
    result = _run(folder, "local", SOURCE, "--out", "results")
    assert result.returncode == 2
    assert "--limit" in result.stderr


def test_labels_come_no_later_than_observations_wait_for_them(folder: Path) -> None:
    options = ("--limit", "10", "--label-delay", "10001")
    result = _run(folder, "local", SOURCE, *options, "--out", "results")
    assert result.returncode == 2
    assert "--label-delay is 10001, but label.wait is 10000" in _one_line(result.stderr)
    assert "Traceback" not in result.stderr


def test_a_csv_without_a_label_column_is_pointed_out(folder: Path) -> None:
    row = orjson.loads(next(iter(observations(1))))["x"]
    (folder / "data.csv").write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
    result = _run(folder, "local", "data.csv", "--out", "results")
    assert result.returncode == 0, result.stderr
    assert "No column holds the label" in result.stderr


def test_the_embedded_broker_is_for_settings_that_say_so(folder: Path) -> None:
    other = {"FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": "kafka.example:9092"}
    result = _run(folder, "up", "--embedded", **other)
    assert result.returncode == 2
    assert "kafka.bootstrap_servers is 'kafka.example:9092'" in _one_line(result.stderr)


def test_without_a_broker_a_supervisor_is_told_to_try_again(folder: Path) -> None:
    result = _run(folder, "up", FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1")
    assert result.returncode == 75
    assert "no broker answers at 127.0.0.1:1" in _one_line(result.stderr)


def test_without_a_broker_a_worker_waits_alive_and_not_ready(folder: Path) -> None:
    command = ("worker", "--role", "drift")
    process = _start(folder, *command, FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1")
    log = folder / "stderr.log"
    try:
        _wait(lambda: "waiting for it" in log.read_text())
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


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--role model", "model.shards is 2: name one of them by --shard 0 to 1"),
        ("--role model --shard 2", "--shard is 2, but the role model has 2, from 0 on"),
        ("--role drift --shard 1", "--shard is 1, but the role drift has 1, from 0 on"),
    ],
)
def test_a_worker_must_be_told_which_shard_it_is(
    with_topics: Path, arguments: str, reason: str
) -> None:
    result = _run(with_topics, "worker", *arguments.split(), FLUXPLAIN_MODEL__SHARDS="2")
    assert result.returncode == 2
    assert reason in _one_line(result.stderr)


def test_ctrl_c_while_the_command_is_loaded_leaves_no_stack_trace(folder: Path) -> None:
    command = [sys.executable, "-m", "pipeline", "check"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as process:
        while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.01)  # libraries are being loaded, for a second more
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=40)
    assert process.returncode == 130
    assert stderr == b""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("nowhere.csv", "nowhere.csv"),
        ("river:Nonsense", "Nonsense"),
        ("data.parquet", "data.parquet"),
    ],
)
def test_a_source_that_cannot_be_read_is_told(folder: Path, source: str, reason: str) -> None:
    result = _run(folder, "local", source, "--out", "results")
    assert result.returncode == 2
    assert reason in result.stderr
    assert "Traceback" not in result.stderr


def test_a_csv_through_the_embedded_broker_as_a_user_would(running: Path) -> None:
    rows = [orjson.loads(value) for value in observations(200)]
    header = [*rows[0]["x"], "outcome"]
    lines = [",".join(map(str, [*row["x"].values(), row["y"]])) for row in rows]
    (running / "data.csv").write_text("\n".join([",".join(header), *lines]))
    config = load_config(running / "fluxplain.toml")

    sent = _run(running, "replay", "data.csv", "--label", "outcome", "--max-lag", "100")
    assert sent.returncode == 0, sent.stderr
    assert "Sent 200 records" in sent.stdout
    check = _run(running, "check")
    assert check.returncode == 0, check.stderr
    assert "fluxplain.features" in _run(running, "topics", "describe").stdout
    assert "exists" in _run(running, "topics", "create").stdout

    published: Published = {}
    for topic in OUTPUTS:
        out = _run(running, "tail", topic, "--from-beginning", "--until-idle", "6", "--json")
        assert out.returncode == 0, out.stderr
        for line in out.stdout.splitlines():
            published.setdefault(identity(topic, line.encode()), set()).add(line.encode())
    source = open_source(str(running / "data.csv"), config, Columns(label="outcome"))
    assert_same(published, reference(config, source))

    text = _run(running, "tail", "explanations", "--from-beginning", "--until-idle", "2").stdout
    assert "ipfi salary = " in text


def test_watch_and_streams_show_the_importances_until_interrupted(running: Path) -> None:
    assert _run(running, "replay", SOURCE, "--limit", "120").returncode == 0
    tail = ("tail", "explanations", "--from-beginning", "--until-idle", "2")
    _wait(lambda: "ipfi salary" in _run(running, *tail).stdout)
    process = _start(running, "watch", stdout=subprocess.PIPE)
    file = str(running / "fluxplain.toml")
    both = _start(running, "streams", "-c", file, "-c", file, stdout=subprocess.PIPE)
    time.sleep(10)
    for each in (process, both):
        each.send_signal(signal.SIGINT)
    rows, _ = both.communicate(timeout=20)
    assert both.returncode == 0
    stream = f"{load_config(running / 'fluxplain.toml').topic('features')}-0"
    assert [line.split()[:2] for line in rows.decode().splitlines() if stream in line] == [
        [stream, "120"]
    ] * 2
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "salary" in out.decode()
    assert "±" in out.decode()
    assert "lag: model " in out.decode()


def test_the_dashboard_serves_a_page_until_interrupted(with_topics: Path) -> None:
    process = _start(
        with_topics,
        "dashboard",
        stdout=subprocess.PIPE,
        FLUXPLAIN_DASHBOARD__PORT="0",
        FLUXPLAIN_DASHBOARD__HOST="0.0.0.0",
    )
    assert process.stdout is not None
    address = process.stdout.readline().decode().removeprefix("Dashboard: ").strip()
    assert b"dashboard.host is '0.0.0.0'" in process.stdout.readline()
    with urllib.request.urlopen(f"{address}/api/overview", timeout=20) as answer:
        assert orjson.loads(answer.read())["streams"] == []
    port = address.rpartition(":")[2]
    taken = {"FLUXPLAIN_DASHBOARD__PORT": port, "FLUXPLAIN_DASHBOARD__HOST": "0.0.0.0"}
    second = _run(with_topics, "dashboard", **taken)
    assert second.returncode == 2
    assert f"dashboard.port is {port}" in _one_line(second.stderr)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    process.stdout.close()


def test_up_serves_the_dashboard_too(folder: Path) -> None:
    process = _start(
        folder,
        *("up", "--embedded"),
        stdout=subprocess.PIPE,
        FLUXPLAIN_DASHBOARD__ENABLED="true",
        FLUXPLAIN_DASHBOARD__PORT="0",
        FLUXPLAIN_HEALTH__PORT=str(_free_ports(3)),
    )
    assert process.stdout is not None
    lines = iter(process.stdout.readline, b"")
    told = next(line for line in lines if line.startswith(b"Dashboard: "))
    address = told.decode().removeprefix("Dashboard: ").strip()
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert b"fluxplain" in answer.read()
    process.send_signal(signal.SIGINT)
    assert process.wait(40) == 0
    process.stdout.close()


def test_up_starts_again_a_worker_that_was_killed_and_sends_alerts(running: Path) -> None:
    def processes(command: str) -> set[int]:
        return {
            process.pid
            for process in psutil.Process().children(recursive=True)
            if process.status() != psutil.STATUS_ZOMBIE and command in process.cmdline()
        }

    def workers() -> set[int]:
        return processes("worker")

    _wait(lambda: len(workers()) == 3 and len(processes("alerts")) == 1)
    log = running / "stderr.log"
    _wait(lambda: "alerts begin with new changes" in log.read_text())
    before = workers()
    os.kill(min(before), signal.SIGKILL)
    _wait(lambda: len(workers()) == 3 and workers() != before)


def _settings(folder: Path) -> Config:
    """Return the settings as the commands in the folder have them."""
    config = load_config(folder / "fluxplain.toml")
    directory = folder / config.checkpoint.directory
    config = config.model_copy(
        update={"checkpoint": config.checkpoint.model_copy(update={"directory": directory})}
    )
    return config.on_broker((folder / ".fluxplain/embedded-broker").read_text())


@pytest.fixture(scope="module", autouse=True)
def forked_commands(preloaded: Preloaded) -> Iterator[None]:
    """Fork what is run to its end; `up`, `broker` and others that stay start anew."""
    _FORKS.append(preloaded)
    yield
    _FORKS.clear()


_FORKS: list[Preloaded] = []


def _run(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pipeline.cli", *arguments]
    own = _environment("200", environment)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        process = _FORKS[0].start(command, own, error, out=out, folder=folder)
        try:
            status = process.wait(120)
        finally:
            process.kill()
        for file in (out, error):
            file.seek(0)
        return subprocess.CompletedProcess(
            command, status, out.read().decode(), error.read().decode()
        )


def _environment(columns: str, own: Mapping[str, str]) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": bare_path(), "COLUMNS": columns, **own}


def _start(
    folder: Path, *arguments: str, stdout: int = subprocess.DEVNULL, **environment: str
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        cwd=folder,
        stdout=stdout,
        stderr=(folder / "stderr.log").open("ab"),
        env=_environment("120", environment),
    )


def _free_ports(count: int) -> int:
    """Return the first of some ports in a row that nobody has."""
    while True:
        with ExitStack() as stack:
            first = stack.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                for i in range(1, count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port + i))
            except (OSError, OverflowError):
                continue
            return port


def _files(folder: Path) -> Published:
    published: Published = {}
    for topic in OUTPUTS:
        for line in (folder / f"{topic}.jsonl").read_bytes().splitlines():
            published.setdefault(identity(topic, line), set()).add(line)
    return published


def _wait(condition: Callable[[], bool], timeout_s: float = 40.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def test_workers_on_one_machine_share_neither_ports_nor_names() -> None:
    config = make_config(health={"port": 9000}, kafka={"group_instance_id": "host-1"})
    names = [f"{role}-{n}" for n in (1, 2, 3) for role in ROLES]
    own = [_own_environment(config, name) for name in names]
    ports = [int(each["FLUXPLAIN_HEALTH__PORT"]) for each in own]
    assert ports == list(range(9000, 9009))
    instances = {
        (name.partition("-")[0], each["FLUXPLAIN_KAFKA__GROUP_INSTANCE_ID"])
        for name, each in zip(names, own, strict=True)
    }
    assert len(instances) == len(names)
    assert not any(_own_environment(make_config(), name) for name in names)


def test_shards_on_one_machine_share_no_ports() -> None:
    model = {**make_config().model.model_dump(), "shards": 2}
    config = make_config(health={"port": 9000}, model=model)
    names = [f"{part}-{n}" for n in (1, 2) for part in config.parts()]
    ports = [_own_environment(config, name)["FLUXPLAIN_HEALTH__PORT"] for name in names]
    assert ports == [str(port) for port in range(9000, 9008)]
