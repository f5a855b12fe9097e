"""``plot``, ``export`` and ``explain-change``: from files and from topics, and mistakes."""

import fcntl
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow.parquet
import pytest

from fluxplain.config import Config, load_config
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.results.published import LocalFiles, from_topics
from fluxplain.schemas import Change, Record
from tests.cli.commands import refusal
from tests.cli.commands import run_here as run
from tests.kit.records import STREAM, letter, prediction
from tests.kit.settings import NOT_INSTALLED, SETTINGS, write_config
from tests.monitor.figures.samples import DRIFT, changes_of, drift_of, stream_of

DRIFTED = drift_of("f0")

INCIDENT = DRIFTED.incident or ""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``fluxplain local`` would have written."""
    folder = tmp_path_factory.mktemp("results")
    with LocalFiles(folder) as files:
        for record in stream_of(6):
            files.write(record)
    return folder


@pytest.fixture(autouse=True)
def folder(without_model: Path) -> Path:
    return without_model


def seqs(path: Path | str) -> list[int]:
    found: list[int] = pyarrow.parquet.read_table(path)["seq"].to_pylist()
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("what", "name", "magic"),
    [
        (["importance", "--method", "ipfi", "--from", "100", "--to", "900"], "a.svg", b"<?xml"),
        (["pdp", "--feature", "f1", "--title", "Mine"], "a.pdf", b"%PDF"),
        (["change", DRIFTED.id[:4], "--width", "5", "--dpi", "50"], "a.png", b"\x89PNG"),
        (["report", "--stories", "1"], "a.html", b"<!DOCTYPE html>"),
    ],
)
def test_each_picture_is_drawn_from_files(
    results: Path, tmp_path: Path, what: list[str], name: str, magic: bytes
) -> None:
    result = run("plot", *what, "--local", results, "--out", name)
    assert result.returncode == 0, result.stdout
    assert f"Wrote {name}" in result.stdout
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_files_are_exported_without_settings(results: Path, folder: Path) -> None:
    (folder / "fluxplain.toml").unlink()
    result = run("export", "predictions", "--local", results, "--out", "p.csv.gz")
    assert result.stdout == "p.csv.gz: 3,000 predictions\n"
    assert "predictions" in result.stderr, "the progress"
    chosen = ["--method", "loss", "--from-seq", "25", "--stream", STREAM]
    assert run("export", "changes", "--local", results, "-o", "c.parquet", *chosen).returncode == 0
    assert seqs("c.parquet") == [DRIFT + 64]
    one = ["--from-seq", "2", "--to-seq", "2", "-o", "one.csv"]
    assert (
        run("export", "predictions", "--local", results, *one).stdout == "one.csv: 1 prediction\n"
    )
    with LocalFiles(folder / "bad") as files:
        files.write(letter(7))
    assert run("export", "dead-letters", "--local", "bad", "--out", "d.parquet").returncode == 0
    assert pyarrow.parquet.read_table("d.parquet")["reason"].to_pylist() == ["x.age is missing"]


def test_changes_and_incidents_are_explained_and_listed(results: Path) -> None:
    story = run("explain-change", DRIFTED.id[:4], "--local", results).stdout
    assert story.startswith(f"{DRIFTED.detail}\n")
    assert f"change        {DRIFTED.id}" in story
    assert f"{changes_of(6)[1].id}  1,700  iPDP of f1" in story
    assert "records 1,300 to 1,700 in the input of `fluxplain local`" in story
    incident = run("explain-change", INCIDENT, "--local", results).stdout
    assert f"Incident {INCIDENT}: 2 changes" in incident
    listed = run("explain-change", "--local", results).stdout
    assert listed.index(DRIFTED.id) < listed.index(changes_of(6)[2].id)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [([DRIFTED.id[:4]], changes_of(6)[:1]), ([INCIDENT], changes_of(6)[:2]), ([], changes_of(6))],
)
def test_the_records_themselves_are_printed_as_json(
    results: Path, asked: list[str], expected: list[Change]
) -> None:
    output = run("explain-change", *asked, "--json", "--local", results).stdout
    assert [Change.decode(line.encode()) for line in output.splitlines()] == expected


MISTAKES = {
    "plot importance --out a.gif": "--out is 'a.gif', but must end with .png",
    "plot report --out a.png": "--out is 'a.png', but must end with .html",
    "plot pdp --out nowhere/a.png": "there is no folder 'nowhere'",
    "plot pdp --feature g --out a.png": "no such explanations.* feature: f0, f1",
    "plot pdp --from 9 --to 8 --out a.png": "--to is 8, but must be at least",
    "plot change nonsense --out a.png": "'nonsense' is no id of a change: give at least",
    "plot change 0000 --out a.png": "there is no change '0000'; the (latest|nearest) are",
    f"plot change {INCIDENT} --out a.png": f"{INCIDENT} is an incident: name one.*{DRIFTED.id}",
    "plot importance --from 9000 --out a.png": "no such explanations.* seq: 19 to 2999",
    "export predictions --out p.xlsx": "--out is 'p.xlsx', but must end with .parquet or .csv or",
    "export predictions --out no/p.csv": "--out is 'no/p.csv', but there is no folder 'no'",
    "export predictions --out p.csv --feature f0": "--feature is only for explanations and changes",
    "export dead-letters --out d.csv --method ipfi": "--method is only for explanations and "
    "changes",
    "export explanations --out e.csv --method loss": "--method is 'loss', but must be one of ipfi",
    "export dead-letters --out d": "dead-letters are exported to a file, not to a folder",
    "export changes --out c --local .": "which gets all that the topic holds: leave out --local",
    "export models --out m.csv": "there is no topic 'models' to export: use one of predictions, ",
    "export changes --out c.csv --from-seq 9 --to-seq 8": "--to-seq is 8, but must be at least",
    "export predictions --out p.csv --from-seq 7000": r"no predictions match the options \("
    r"--from-seq 7000\). In .*predictions.jsonl, stream "
    rf"is {STREAM} \(at most 10 each\); seq is 0 to 2999",
    "export dead-letters --out d.csv": "nothing to export: .* holds no dead-letters",
    "export explanations --out e.csv --feature g": "no explanations match the options. In .*"
    "feature is f0, f1, .*; method is ipdp, ipfi, isage",
    "explain-change 0000": "no change '0000'; the (latest|nearest) are",
}


@pytest.mark.parametrize(("arguments", "reason"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_gives_one_sentence_and_writes_nothing(
    results: Path, folder: Path, arguments: str, reason: str
) -> None:
    before = set(folder.iterdir())
    assert re.search(reason, refusal(*arguments.split(), "--local", results))
    assert set(folder.iterdir()) == before


def test_files_that_are_not_there_or_hold_no_records_are_named(folder: Path) -> None:
    assert "nowhere lacks changes.jsonl" in refusal("explain-change", "--local", "nowhere")
    missing = "export", "predictions", "--out", "p.csv", "--local"
    assert "--local is 'nowhere', but there is no such folder" in refusal(*missing, "nowhere")
    assert "has no predictions.jsonl, which `fluxplain local`" in refusal(*missing, ".")
    (folder / "changes.jsonl").write_bytes(DRIFTED.encode() + b"\nno change")
    assert "changes.jsonl, line 2: not JSON" in refusal("explain-change", "--local", ".")


def test_of_several_changes_that_begin_so_none_is_drawn(folder: Path) -> None:
    several = [replace(DRIFTED, id=f"abcd0000000{n}").encode() for n in range(2)]
    (folder / "changes.jsonl").write_bytes(b"\n".join(several))
    reason = refusal("plot", "change", "abcd", "--local", ".", "--out", "a.png")
    assert reason == "2 changes begin with 'abcd': abcd00000000, abcd00000001"


def test_the_command_line_shows_a_mistake_without_a_stack_trace() -> None:
    command = [sys.executable, "-m", "fluxplain.cli", "plot", "pdp", "--local", ".", "-o", "a.png"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("Error: . lacks explanations.jsonl")


def send(config: Config, *records: Record) -> None:
    producer = RecordProducer(config)
    for record in records:
        key = record.message_key()
        place = 0 if key is None else None  # a stream without keys stays in order
        topic = config.topic(record.TOPIC)
        producer.send(topic, record.encode(), key.encode() if key else None, place)
    producer.flush()


@pytest.mark.slow
def test_topics_give_what_files_give(
    results: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = ("plot", "change", DRIFTED.id, "--out")
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        config = load_config(folder / "fluxplain.toml", "reader")
        create_topics(config)
        send(config, *stream_of(6))
        topics = ("predictions", "explanations", "changes")
        read = [record.encode() for record, _ in from_topics(config, topics)]
        assert len(read) == len(stream_of(6))
        assert set(read) == {record.encode() for record in stream_of(6)}
        assert "the topic dead-letters holds no" in refusal("export", "dead-letters", "-o", "d.csv")
        assert run(*change, "a.svg", "--alpha", "0.001").returncode == 0
        # over partitions as keys spread them, and repeated from a checkpoint on
        producer = RecordProducer(config)
        for seq in [*range(3000, 3040), *range(3025, 3060)]:
            producer.send(config.topic("predictions"), prediction(seq).encode(), partition=seq % 3)
        producer.send(config.topic("predictions"), b"what is this", partition=1)
        producer.flush()
        result = run("export", "predictions", "--out", "p.parquet", "--from-seq", "3000")
        assert result.stdout == (
            "Skipped 1 message that holds no such record\np.parquet: 60 predictions\n"
        )
        assert sorted(seqs("p.parquet")) == list(range(3000, 3060))
        with TopicReader(config, ["predictions"], from_beginning=True) as reader:
            extent = reader.extent()
            send(config, prediction(3060))
            assert len(list(reader.until(extent))) == 3000 + 75 + 1, "later ones are not waited for"
    assert run(*change, "b.svg", "--local", results).returncode == 0
    assert (folder / "a.svg").read_bytes() == (folder / "b.svg").read_bytes()


def test_a_history_continues_where_it_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = ("export", "predictions", "--out", "history")
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        config = load_config(folder / "fluxplain.toml", "reader")
        create_topics(config)
        assert run(*export).stdout == "history: 0 predictions\n"
        producer = RecordProducer(config)
        topic = config.topic("predictions")
        for begin, end, new in ((0, 30, 30), (20, 45, 15), (45, 45, 0)):
            for seq in range(begin, end):
                producer.send(topic, prediction(seq).encode(), partition=seq % 3)
            producer.flush()
            result = run(*export)
            assert result.stdout == f"history: {new} predictions\n", result
        assert sorted(seqs(f"history/{topic}")) == list(range(45))
        with (folder / "history" / topic / ".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert "another export to" in refusal(*export)
        [path] = (folder / "history" / topic).glob("day=*/0-*17.parquet")
        path.rename(str(path).replace("17.parquet", "99.parquet"))
        assert "the topic ends at 18: it was deleted and created again" in refusal(*export)


def test_a_story_of_a_topic_names_the_command_that_shows_its_observations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drift = replace(DRIFTED, stream="fluxplain.features-0", seq=7, replay_seq=3)
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        config = load_config(folder / "fluxplain.toml", "reader")
        create_topics(config)
        producer = RecordProducer(config)
        for n in range(12):
            producer.send(config.topic("features"), orjson.dumps({"x": {"n": n}}), partition=0)
        producer.send(config.topic("changes"), drift.encode(), partition=3)
        producer.flush()

        command = run("explain-change", drift.id).stdout.splitlines()[-1].split()
        assert command[:3] == ["fluxplain", "tail", "features"]
        seen = run(*command[1:])
        assert seen.returncode == 0, seen.stdout
        assert seen.stdout.splitlines() == [f'{n}  {{"x":{{"n":{n}}}}}' for n in range(3, 8)]

        assert "no observations 50-60" in refusal("tail", "features", "--seqs", "50-60")
        assert "must be a range such as" in refusal("tail", "features", "--seqs", "5")
        asked = "tail", "features", "--seqs", "5-6", "--stream", "other-0"
        assert f"must be a stream such as {config.topic('features')}-0" in refusal(*asked)
        assert "only for features, not for changes" in refusal("tail", "changes", "--seqs", "5-6")
        assert "topic-partition" in refusal("tail", "features", "--seqs", "5-6", "--stream", "x")


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [
        ("--feature", "wage", "salary"),
        ("--method", "ipdp", "ipfi, isage"),
        ("--alpha", "0.3", "0.01"),
        ("--stream", "other-0", "features-0"),
    ],
)
def test_what_is_never_published_is_not_waited_for(
    folder: Path, option: str, value: str, known: str
) -> None:
    explain = {"methods": ["ipfi", "isage"], "alpha": 0.01}
    tables = {**SETTINGS, "model": NOT_INSTALLED, "explain": explain}
    write_config(folder / "fluxplain.toml", tables)
    assert re.search(rf"{option} is.*{known}", refusal("watch", option, value))
