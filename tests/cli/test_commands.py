"""The command line as people use it: what it prints, its exit status, and no stack traces."""

import random
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import typer
from typer.main import get_command

from fluxplain import __version__
from fluxplain.cli.commands import app
from fluxplain.cli.main import MODULES
from fluxplain.config import Config, load_config
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, CheckpointError, Slot
from fluxplain.kafka.checkpoints.configured import open_store
from fluxplain.kafka.checkpoints.directory import DirectoryCheckpointStore
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.kafka.client import cluster
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.producer import RecordProducer
from fluxplain.sources import open_source
from fluxplain.stages import DriftStage
from tests.cli.commands import NO_BROKER, NOWHERE, SERVERS, SOURCE, files, one_line
from tests.kit.in_process import Ended, run
from tests.kit.kafka_pipeline import assert_same, reference
from tests.kit.registry import RegistryServer
from tests.kit.streams import observations

BAYES = "river.naive_bayes:GaussianNB"


def test_help_names_every_command(folder: Path) -> None:
    result = run(folder, "--help")
    assert result.returncode == 0
    for command in vars(typer.main.get_command(app))["commands"]:
        assert f" {command} " in result.stdout


def test_init_writes_a_configuration_that_is_valid_and_keeps_what_is_there(tmp_path: Path) -> None:
    assert run(tmp_path, "init").returncode == 0
    load_config(tmp_path / "fluxplain.toml")
    again = run(tmp_path, "init")
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_check_names_every_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "fluxplain.toml").write_text('[features]\na = "num"\n[explain]\nalpha = 2\n')
    result = run(tmp_path, "check")
    assert result.returncode == 2
    for part in ("features.a is 'num'", "explain.alpha is 2", "model is missing"):
        assert part in result.stderr


NO_EMBEDDED = "no embedded broker runs"
ELSEWHERE = "kafka.bootstrap_servers is 'kafka.example:9092'"
SHARDS = {"FLUXPLAIN_MODEL__SHARDS": "2"}
IN_TOPIC = {"FLUXPLAIN_CHECKPOINT__STORE": "topic", "FLUXPLAIN_CHECKPOINT__KEY": "k" * 32}


@pytest.mark.parametrize(
    ("command", "environment", "status", "reason"),
    [
        ("check", NOWHERE, 2, NO_BROKER),
        ("up", NOWHERE, 75, NO_BROKER),  # a supervisor may try again
        *((command, {}, 2, NO_EMBEDDED) for command in ("check", "watch", "up", "tail changes")),
        *((command, {}, 2, NO_EMBEDDED) for command in ("worker --role model", "checkpoints list")),
        ("up --embedded", {SERVERS: "kafka.example:9092"}, 2, ELSEWHERE),
        (f"local {SOURCE} --out out", {}, 2, "--limit"),
        (
            f"local {SOURCE} --limit 10 --label-delay 10001 --out out",
            {},
            2,
            "--label-delay is 10001, but must be at most label.wait, 10000",
        ),
        *(
            (f"local {source} --out out", {}, 2, source.removeprefix("river:"))
            for source in ("nowhere.csv", "river:Nonsense", "data.parquet")
        ),
    ],
)
def test_a_mistake_gives_a_status_and_a_reason(
    folder: Path, command: str, environment: dict[str, str], status: int, reason: str
) -> None:
    _assert_refused(run(folder, *command.split(), **environment), status, reason)


def test_a_mistake_on_a_broker_is_told_too(with_topics: Path) -> None:
    cases: list[tuple[str, dict[str, str], str]] = [
        ("checkpoints remove --yes --partition 99", {}, "no role reads partition 99"),
        ("checkpoints remove --yes --role drift --partition 4", {}, "drift reads no partition 4"),
        ("checkpoints remove --yes --role nobody", {}, "nobody"),
        ("checkpoints list", IN_TOPIC, "checkpoint.store is 'topic'"),
        ("worker --role model", SHARDS, "model.shards is 2: select one by --shard 0 to 1"),
        *(
            (f"worker --role {role} --shard {number}", SHARDS, f"{role} has {number}, from 0 on")
            for role, number in (("model", 2), ("drift", 1))
        ),
    ]
    for command, environment, reason in cases:
        _assert_refused(run(with_topics, *command.split(), **environment), 2, reason)


def _assert_refused(result: Ended, status: int, reason: str) -> None:
    assert result.returncode == status
    assert reason in one_line(result.stderr)


def test_check_names_the_model_and_how_it_is_asked(folder: Path) -> None:
    result = run(folder, "check", FLUXPLAIN_MODEL__LEARN="false")
    assert "valid" in result.stdout
    model = "model: ARFClassifier, as fluxplain.forest's arrays, frozen: it never learns\n"
    assert f"{model}evaluator: hoeffding" in result.stdout
    rivers = run(folder, "check", FLUXPLAIN_MODEL__COMPILED="false")
    assert "model: ARFClassifier\nevaluator: hoeffding" in rivers.stdout
    steps = '{"steps": ["river.preprocessing:MinMaxScaler", "river.anomaly:HalfSpaceTrees"]}'
    detector = {
        "FLUXPLAIN_MODEL__FACTORY": "fluxplain.models:from_river",
        "FLUXPLAIN_LABEL__TYPE": "none",
        "FLUXPLAIN_EXPLAIN__LOSS": "minus_score",
        SERVERS: "embedded",
    }
    (folder / "fluxplain.toml").write_text('[features]\nage = "numeric"\n[model]\n')
    result = run(folder, "check", FLUXPLAIN_MODEL__PARAMS=steps, **detector)
    assert "model: MinMaxScaler | HalfSpaceTrees\nevaluator: generic" in result.stdout
    detector["FLUXPLAIN_LABEL__TYPE"] = "number"
    detector["FLUXPLAIN_EXPLAIN__LOSS"] = "squared_error"
    result = run(folder, "check", FLUXPLAIN_MODEL__PARAMS=steps, **detector)
    assert result.returncode == 2
    assert "for an anomaly detector set label.type to 'none'" in one_line(result.stderr)


def test_check_tries_the_model_and_warns_of_what_it_answers(folder: Path) -> None:
    (folder / "certain.py").write_text(
        "class Model:\n"
        "    def __init__(self, **params):\n"
        "        pass\n"
        "    def predict_proba_one(self, x):\n"
        "        return {'yes': 0.5, 'no': 0.5}\n"
        "    def learn_one(self, x, y):\n"
        "        pass\n"
    )
    own = {"FLUXPLAIN_MODEL__FACTORY": "certain:Model"}
    told = "an output has the class 'yes', but label.type is 'integer'"
    assert told in run(folder, "check", **own).stderr
    classes = {"FLUXPLAIN_LABEL__TYPE": "string"}
    assert "made up" not in run(folder, "check", **own, **classes).stderr


def test_check_names_the_models_of_streams_and_which_streams_there_are_not(
    with_topics: Path,
) -> None:
    own = {f"FLUXPLAIN_STREAMS__{each}__MODEL__FACTORY": BAYES for each in (1, 9)}
    result = run(with_topics, "check", **own)
    assert "model: ARFClassifier, as fluxplain.forest's arrays\n" in result.stdout
    stream = load_config(with_topics / "fluxplain.toml").topic("features")
    assert f"stream {stream}-1: model GaussianNB, evaluator naive-bayes" in one_line(result.stdout)
    assert result.returncode == 2
    assert f"streams has 9, but {stream} has 4 partitions, from 0 to 3" in one_line(result.stderr)


def test_check_asks_the_schema_registry(with_topics: Path) -> None:
    with RegistryServer(("fluxplain", "s3cret")) as server:
        user = {"FLUXPLAIN_REGISTRY__USERNAME": "fluxplain", "FLUXPLAIN_REGISTRY__URL": server.url}
        result = run(with_topics, "check", FLUXPLAIN_REGISTRY__PASSWORD="s3cret", **user)
        assert result.returncode == 0
        assert f"registry: at {server.url}" in one_line(result.stdout)
        result = run(with_topics, "check", FLUXPLAIN_REGISTRY__PASSWORD="other-s3cret", **user)
    assert result.returncode == 2
    assert f"the schema registry at {server.url} refuses: Unauthorized" in one_line(result.stderr)
    assert "s3cret" not in result.stdout + result.stderr


def test_checkpoints_are_listed_and_removed(with_topics: Path) -> None:
    config = _settings(with_topics)
    store = open_store(config, cluster(config))
    slots = [Slot("drift", "fluxplain.explanations", partition) for partition in (0, 1)]
    for slot in slots:
        store.save(slot, Checkpoint(1234, DriftStage(config)))
    listed = run(with_topics, "checkpoints", "list").stdout
    for slot in slots:
        assert f"{slot}: resumes at offset 1,234" in listed
    assert "model fluxplain.features-0: no checkpoint" in listed

    remove = ("checkpoints", "remove", "--role", "drift", "--partition", "0")
    asked = run(with_topics, *remove)  # nobody answers
    assert "Remove the checkpoints of drift, partition 0?" in asked.stdout
    assert asked.returncode == 1
    assert all(store.load(slot) for slot in slots)

    removed = run(with_topics, *remove, "--yes")
    assert removed.returncode == 0, removed.stderr
    assert removed.stdout == f"{slots[0]}: removed\n"
    assert store.load(slots[0]) is None
    assert store.load(slots[1]) is not None

    everything = run(with_topics, "checkpoints", "remove", "-y").stdout
    assert f"{slots[0]}: no checkpoint" in everything
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

    listed = run(with_topics, "checkpoints", "list")
    assert listed.returncode == 0, listed.stderr
    [command] = re.findall("`fluxplain (checkpoints .*?)`", one_line(listed.stdout))
    exported = run(with_topics, "model", "export", "--partition", "2", "--out", "m.pickle")
    assert exported.returncode == 2
    assert command in one_line(exported.stderr), "as the list says, without a stack trace"
    assert run(with_topics, *command.split(), "--yes").returncode == 0
    assert open_store(config, metadata).load(slot) is None


def test_local_writes_what_the_reference_publishes(folder: Path) -> None:
    result = run(folder, "local", SOURCE, "--limit", "150", "--out", "results")
    assert result.returncode == 0, result.stderr
    config = load_config(folder / "fluxplain.toml")
    expected = reference(config, open_source(SOURCE, config, limit=150))
    assert_same(files(folder / "results"), expected)
    assert "replaced" not in result.stdout
    again = run(folder, "local", SOURCE, "--limit", "10", "--out", "results")
    assert "Replacing the results of an earlier run in results." in again.stdout


def test_local_computes_a_stream_with_settings_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUXPLAIN_STREAMS__2__EXPLAIN__EMIT_EVERY", "7")
    options = ("--limit", "60", "--out", "results")
    assert run(folder, "local", SOURCE, "--partition", "2", *options).returncode == 0
    config = load_config(folder / "fluxplain.toml")
    assert config.of_stream(2).explain.emit_every == 7
    expected = reference(config, open_source(SOURCE, config, limit=60), 2)
    assert_same(files(folder / "results"), expected)


def test_a_csv_without_a_label_column_is_pointed_out(folder: Path) -> None:
    row = orjson.loads(next(iter(observations(1))))["x"]
    (folder / "data.csv").write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
    result = run(folder, "local", "data.csv", "--out", "results")
    assert result.returncode == 0, result.stderr
    assert "No column holds the label" in result.stderr


def _settings(folder: Path) -> Config:
    """Return the settings as the commands in the folder have them."""
    config = load_config(folder / "fluxplain.toml")
    directory = folder / config.checkpoint.directory
    config = config.model_copy(
        update={"checkpoint": config.checkpoint.model_copy(update={"directory": directory})}
    )
    return config.on_broker((folder / ".fluxplain/embedded-broker").read_text())


def test_check_warns_of_a_feature_whose_replacements_resemble_it(with_topics: Path) -> None:
    config = resolve(load_config(with_topics / "fluxplain.toml"))
    slow, rng = next(iter(config.features)), random.Random(1)
    producer, value = RecordProducer(config), 0.0
    for n in range(9_000):
        value += rng.gauss(0.0, 1.0)
        x = {
            name: rng.random() if kind == "numeric" else rng.choice("ab")
            for name, kind in config.features.items()
        }
        x[slow] = value
        producer.send(config.topic("features"), orjson.dumps({"x": x}), partition=1)
        if n == 99:  # too few to know
            producer.flush()
            assert "resembles" not in run(with_topics, "check").stderr
    producer.send(config.topic("features"), b"no record", partition=1)
    producer.flush()
    result = run(with_topics, "check")
    assert result.returncode == 0
    assert f"iPFI: {slow} resembles its own past for so long" in one_line(result.stderr)
    assert f"Raise reservoir_size, now {config.explain.of('ipfi').reservoir_size}" in one_line(
        result.stderr
    )


def test_each_command_is_in_the_module_that_is_imported_for_it() -> None:
    found = {}
    for name, command in vars(get_command(app))["commands"].items():
        # a module that adds to another's group imports that
        inner = [command, *vars(command).get("commands", {}).values()][-1]
        found[name] = inner.callback.__module__
    assert found == {name: f"fluxplain.cli.{module}" for name, module in MODULES.items()}


@pytest.mark.parametrize(
    ("command", "spared"),
    [
        ("topics", {"numpy", "prometheus_client", "fluxplain.cli.live"}),
        ("tail", {"numpy", "aiohttp", "aiokafka", "fluxplain.cli.setup"}),
        ("watch", {"aiohttp", "aiokafka", "prometheus_client", "fluxplain.cli.setup"}),
        ("worker", {"numpy.f2py", "fluxplain.cli.live"}),
    ],
)
def test_a_command_starts_without_the_libraries_of_others(command: str, spared: set[str]) -> None:
    asked = (
        f"import sys; sys.argv[1:] = [{command!r}, '--help']\n"
        "from fluxplain.cli.main import main\n"
        "try: main()\n"
        f"finally: print({spared!r} & set(sys.modules))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "set()"


def test_the_version_is_printed_without_loading_anything_large() -> None:
    asked = (
        "import sys; sys.argv[1:] = ['--version']\n"
        "from fluxplain.__main__ import main\n"
        "try: main()\n"
        "finally: print('numpy' in sys.modules, 'typer' in sys.modules)\n"
    )
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout.split() == [__version__, "False", "False"]
