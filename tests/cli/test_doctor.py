"""``fluxplain doctor``: one list of everything that is wrong, and an estimate of the cost."""

import re
import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread

import orjson
import pytest

from fluxplain.cli.doctor.topic_findings import differences
from fluxplain.config import load_config
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import TopicSpec
from tests.cli.commands import NO_BROKER, NOWHERE
from tests.cli.test_running import until_interrupted
from tests.kit.free_ports import free_ports, last_port_taken
from tests.kit.in_process import Ended, run
from tests.kit.settings import SETTINGS, write_config
from tests.kit.streams import observations
from tests.kit.waiting import wait_until
from tests.kit.workers import ask

pytestmark = pytest.mark.slow

BROKEN = "no_package:Model"


def lines(result: Ended, state: str) -> list[str]:
    """Return what was found in a state."""
    found = [line.split(maxsplit=1) for line in result.stdout.splitlines() if line.strip()]
    return [line[1] for line in found if line[0] == state]


def write_rows(path: Path, count: int) -> Path:
    """Write observations as a CSV file."""
    rows = [orjson.loads(value) for value in observations(count)]
    header = [*rows[0]["x"], "outcome"]
    content = [",".join(map(str, [*row["x"].values(), row["y"]])) for row in rows]
    path.write_text("\n".join([",".join(header), *content]))
    return path


def test_a_pipeline_that_is_well_has_no_problem(with_topics: Path) -> None:
    result = run(with_topics, "doctor")
    assert result.returncode == 0, result.stdout
    assert not lines(result, "problem")
    found = " ".join(lines(result, "ok"))
    for part in (
        "fluxplain.toml is valid",
        "model: ARFClassifier",
        "evaluator: hoeffding",
        "comes back and gives the same again",
        "another process gives the same results",
        "GB free",
        "broker: 1 at 127.0.0.1",
        "all 9 exist",
        "none are registered yet",
        "model: 0 messages to read",
        "checkpoints: none yet, as is usual before the first start",
    ):
        assert part in found


def test_no_problem_hides_another(folder: Path) -> None:
    (folder / "state").write_text("a file")
    with last_port_taken(3) as first:
        result = run(
            folder,
            "doctor",
            FLUXPLAIN_MODEL__FACTORY=BROKEN,
            FLUXPLAIN_CHECKPOINT__DIRECTORY=str(folder / "state" / "below"),
            FLUXPLAIN_HEALTH__PORT=str(first),
            **NOWHERE,
        )
    assert result.returncode == 1
    problems = " ".join(lines(result, "problem"))
    assert len(lines(result, "problem")) == 4
    for part in (BROKEN, "is a file", f"127.0.0.1:{first + 2}", NO_BROKER):
        assert part in problems


def test_joined_topics_are_joined_for_the_trial_and_for_the_measurement(folder: Path) -> None:
    write_rows(folder / "data.csv", 600)
    joined = {"FLUXPLAIN_CONTROL__TOPIC": "true", "FLUXPLAIN_MODEL__SHARDS": "2"}
    options = ("--measure", "data.csv", "--label", "outcome")
    result = run(folder, "doctor", *options, **joined, **NOWHERE)
    assert "without a failure" in result.stdout
    assert len(lines(result, "problem")) == 1  # the broker
    roles = [line.split()[0] for line in result.stdout.splitlines() if " ms " in line]
    assert roles == ["join", "model-0of2", "model-1of2", "explainer", "drift"]


def test_settings_that_are_wrong_are_a_problem(tmp_path: Path) -> None:
    (tmp_path / "fluxplain.toml").write_text('[features]\na = "num"\n')
    result = run(tmp_path, "doctor")
    assert result.returncode == 1
    assert "features.a is 'num'" in result.stdout


MODEL = """
import itertools

class Model:
    made = itertools.count()

    def __init__(self, **params):
        self.answer = {start}

    def predict_proba_one(self, x):
        {predict}
        share = self.answer % 1000 / 1000
        return {{0: share, 1: 1 - share}}

    def learn_one(self, x, y):
        self.answer += 1
        {learn}

    {state}
"""

FORGETS = "def __getstate__(self): return {'answer': 0}"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ({"state": FORGETS}, "pickled and comes back gives other results"),
        ({"start": "next(self.made) * 7"}, "is made again gives other results"),
        ({"start": "hash('a') % 1000"}, "in another process, with another PYTHONHASHSEED"),
        ({"predict": "raise RuntimeError('broken inside')"}, "broken inside"),
        ({"learn": "self.own = lambda: 0"}, "cannot be pickled once it has learned"),
    ],
)
def test_a_model_that_cannot_be_repeated_is_named(
    folder: Path, code: dict[str, str], reason: str
) -> None:
    parts = {"start": "0", "predict": "pass", "learn": "pass", "state": "", **code}
    (folder / "mine.py").write_text(MODEL.format(**parts))
    result = run(folder, "doctor", FLUXPLAIN_MODEL__FACTORY="mine:Model")
    wrong = lines(result, "problem") + lines(result, "warning")
    assert any(reason in each for each in wrong), result.stdout
    assert any("evaluator: generic" in each for each in lines(result, "warning"))


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ({"start": "__import__('sys').exit(0)"}, "ended the program (SystemExit)"),
        ({"learn": "__import__('sys').exit(0)"}, "ended the program (SystemExit)"),
    ],
)
def test_a_model_that_ends_the_program_is_a_problem(
    folder: Path, code: dict[str, str], problem: str
) -> None:
    parts = {"start": "0", "predict": "pass", "learn": "pass", "state": "", **code}
    (folder / "mine.py").write_text(MODEL.format(**parts))
    result = run(folder, "doctor", FLUXPLAIN_MODEL__FACTORY="mine:Model")
    assert problem in " ".join(lines(result, "problem"))
    assert result.returncode == 1


def test_a_model_that_prints_is_deterministic(folder: Path) -> None:
    parts = {"start": "0", "predict": "print('asked')", "learn": "pass", "state": ""}
    (folder / "mine.py").write_text(MODEL.format(**parts))
    result = run(folder, "doctor", FLUXPLAIN_MODEL__FACTORY="mine:Model", **NOWHERE)
    assert "another process gives the same results" in " ".join(lines(result, "ok"))


def test_a_file_without_labels_and_one_with_bad_rows_are_named(folder: Path) -> None:
    path = write_rows(folder / "data.csv", 900)
    unlabelled = run(folder, "doctor", "--measure", "data.csv", **NOWHERE)
    assert "no observation of the file has a label" in " ".join(lines(unlabelled, "problem"))
    rows = path.read_text().splitlines()
    bad = ["x," + row.partition(",")[2] if i > 400 else row for i, row in enumerate(rows)]
    path.write_text("\n".join(bad))
    result = run(folder, "doctor", "--measure", "data.csv", "--label", "outcome", **NOWHERE)
    assert "the measurement gave" in " ".join(lines(result, "warning"))
    assert "must be a finite number" in " ".join(lines(result, "warning"))


def test_a_port_of_something_else_is_a_problem(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        write_config(folder / "fluxplain.toml", {**SETTINGS, "health": {"port": port}})

        def greet() -> None:
            with suppress(OSError):
                while True:
                    other, _ = server.accept()
                    other.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                    other.close()

        Thread(target=greet, daemon=True).start()
        result = run(folder, "doctor", **NOWHERE)
    assert f"no worker can listen at 127.0.0.1:{port}" in " ".join(lines(result, "problem"))


def test_ports_of_own_workers_are_well(folder: Path) -> None:
    port = free_ports(3)
    settings = {**SETTINGS, "kafka": {"bootstrap_servers": "embedded"}, "health": {"port": port}}
    write_config(folder / "fluxplain.toml", settings)

    def is_up() -> bool:
        with suppress(OSError):
            return all(ask(f"http://127.0.0.1:{port + i}/healthz")[0] == 200 for i in range(3))
        return False

    with until_interrupted(folder, "up", "--embedded"):
        wait_until(is_up)
        result = run(folder, "doctor")
    assert result.returncode == 0, result.stdout
    found = " ".join(lines(result, "ok"))
    assert "workers of this machine answer: model, explainer, drift" in found
    assert "those of the file are the registered ones" in found


def test_missing_topics_and_other_registered_settings_are_problems(with_topics: Path) -> None:
    other = {"FLUXPLAIN_TOPICS__PREFIX": "other."}
    result = run(with_topics, "doctor", **other)
    assert result.returncode == 1
    assert "`fluxplain topics create`" in " ".join(lines(result, "problem"))

    assert run(with_topics, "settings", "replace", "--yes").returncode == 0
    assert "those of the file are the registered ones" in run(with_topics, "doctor").stdout
    result = run(with_topics, "doctor", FLUXPLAIN_SEED="8")
    assert result.returncode == 1
    [problem] = lines(result, "problem")
    assert "those registered differ in seed" in problem
    assert "`fluxplain settings replace`" in problem


def test_unread_observations_are_counted(with_topics: Path) -> None:
    config = load_config(with_topics / "fluxplain.toml")
    broker = (with_topics / ".fluxplain/embedded-broker").read_text()
    producer = RecordProducer(config.on_broker(broker))
    for value in observations(12):
        producer.send(config.topic("features"), value, partition=0)
    producer.flush()
    assert "model: 12 messages to read" in run(with_topics, "doctor").stdout


@pytest.mark.parametrize(
    ("wanted", "found", "reason"),
    [
        ("delete", {"cleanup.policy": "compact"}, "is compacted"),
        ("delete", {"cleanup.policy": "compact,delete"}, "is compacted"),
        ("compact", {"cleanup.policy": "delete"}, "newest records would be deleted"),
        ("delete", {"retention.ms": "3600000"}, "keeps messages for 1.0 hours"),
        ("delete", {"retention.ms": "-1", "cleanup.policy": "delete"}, None),
        ("delete", {"max.message.bytes": "1000"}, "at most 1,000 bytes"),
        ("delete", {"min.insync.replicas": "1"}, "min.insync.replicas below 2"),
    ],
)
def test_topic_settings_that_do_harm_are_named(
    wanted: str, found: dict[str, str], reason: str | None
) -> None:
    settings = {"cleanup.policy": wanted, "min.insync.replicas": "2"}
    if wanted == "delete":
        settings["retention.ms"] = "604800000"
    spec = TopicSpec("t", 4, 3, settings, "any")
    named = [str(each) for each in differences(spec, found)]
    assert len(named) == (reason is not None)
    if reason is not None:
        assert reason in named[0]
        assert "kafka-configs.sh" in named[0]


def test_the_cost_is_measured_on_a_file(folder: Path) -> None:
    write_rows(folder / "data.csv", 900)
    options = ("--measure", "data.csv", "--label", "outcome", "--rate")
    result = run(folder, "doctor", *options, "0.1", **NOWHERE)
    assert "150 observations of the file, without a failure" in result.stdout
    assert NO_BROKER in result.stdout
    text = " ".join(result.stdout.split())
    for part in (
        r"One partition: about [\d,]+ records a second if each role has a core",
        r"Explaining takes \d+% of the CPU time",
        r"model [\d.]+ ms [\d,]+ MB",
        r"Disk: [\d.]+ kB a record and copy; at 0.1 records a second",
        r"explain.every \(now 1\) buys: 2 → [\d,]+ records a second",
        "one partition is enough",
        "checkpoints and their history need about",
    ):
        assert re.search(part, text), part
    many = run(folder, "doctor", *options, "100000", **NOWHERE).stdout
    assert re.search(r"[\d,]+ partitions of features, each with its own model", many)


def test_too_few_observations_are_a_problem(folder: Path) -> None:
    write_rows(folder / "data.csv", 400)
    options = ("--measure", "data.csv", "--label", "outcome")
    result = run(folder, "doctor", *options, **NOWHERE)
    assert "400 observations are too few to measure" in " ".join(lines(result, "problem"))


def test_a_rate_without_a_file_is_a_mistake(folder: Path) -> None:
    result = run(folder, "doctor", "--rate", "5")
    assert result.returncode == 2
    assert "--rate is 5.0, which needs --measure FILE" in result.stderr


def test_an_endless_rate_is_a_mistake(folder: Path) -> None:
    result = run(folder, "doctor", "--measure", "data.csv", "--rate", "inf")
    assert result.returncode == 2
    assert "--rate is inf" in result.stderr


def test_a_file_that_cannot_be_read_hides_nothing(folder: Path) -> None:
    result = run(folder, "doctor", "--measure", "nowhere.csv", **NOWHERE)
    problems = " ".join(lines(result, "problem"))
    assert "nowhere.csv" in problems
    assert NO_BROKER in problems
