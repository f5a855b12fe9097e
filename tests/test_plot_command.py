"""``fluxplain plot``: from files and from topics, and what it says of mistakes."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli.plot import plot_app
from pipeline.config import ConfigError
from pipeline.kafka.embedded import EmbeddedBroker
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.topics import create_topics
from pipeline.outputs import LocalFiles
from pipeline.published import from_files, from_topics
from pipeline.sources import SourceError
from tests.behaviour.conftest import NOT_INSTALLED, SETTINGS, write_config
from tests.monitor.plots.samples import drift_of, stream_of
from tests.support import make_config

INCIDENT = drift_of("f0").incident or ""

TOPICS = ("predictions", "explanations", "changes")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``fluxplain local`` would have written."""
    folder = tmp_path_factory.mktemp("results")
    with LocalFiles(folder) as files:
        for record in stream_of(6):
            files.write(record)
    return folder


def plot(*arguments: object) -> Result:
    return CliRunner().invoke(plot_app, [*map(str, arguments)])


@pytest.mark.parametrize(
    ("what", "name", "magic"),
    [
        (["importance", "--method", "ipfi", "--from", "100", "--to", "900"], "a.svg", b"<?xml"),
        (["pdp", "--feature", "f1", "--title", "Mine"], "a.pdf", b"%PDF"),
        (["change", drift_of("f0").id[:4], "--width", "5", "--dpi", "50"], "a.png", b"\x89PNG"),
        (["report", "--stories", "1"], "a.html", b"<!DOCTYPE html>"),
    ],
)
def test_writes_each_picture_from_files(
    results: Path, tmp_path: Path, what: list[str], name: str, magic: bytes
) -> None:
    out = tmp_path / name
    result = plot(*what, "--local", results, "--out", out)
    assert result.exit_code == 0, result.output
    assert f"Wrote {out}" in result.output.replace("\n", "")
    assert out.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["importance", "--out", "a.gif"], "--out is 'a.gif', but must end with .png"),
        (["report", "--out", "a.png"], "--out is 'a.png', but must end with .html"),
        (["pdp", "--out", "nowhere/a.png"], "there is no folder 'nowhere'"),
        (["pdp", "--feature", "g", "--out", "a.png"], "no such explanations.* feature: f0, f1"),
        (["pdp", "--from", "9", "--to", "8", "--out", "a.png"], "--to is 8, but must be at least"),
        (["change", "nonsense", "--out", "a.png"], "'nonsense' is no change: give at least"),
        (
            ["change", "0000", "--out", "a.png"],
            "there is no change '0000'; the (newest|nearest) are",
        ),
        (
            ["change", INCIDENT, "--out", "a.png"],
            f"{INCIDENT} is an incident: name one of its changes, {drift_of('f0').id}",
        ),
        (
            ["importance", "--from", "9000", "--out", "a.png"],
            "no such explanations.* seq: 19 to 2999",
        ),
    ],
)
def test_a_mistake_is_told_and_writes_nothing(
    results: Path,
    tmp_path: Path,
    arguments: list[str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = plot(*arguments, "--local", results)
    assert isinstance(result.exception, ConfigError)
    assert re.search(reason, str(result.exception))
    assert list(tmp_path.iterdir()) == []


def test_of_several_changes_that_begin_so_none_is_drawn(tmp_path: Path) -> None:
    several = [replace(drift_of("f0"), id=f"abcd0000000{n}").encode() for n in range(2)]
    (tmp_path / "changes.jsonl").write_bytes(b"\n".join(several))
    result = plot("change", "abcd", "--local", tmp_path, "--out", tmp_path / "a.png")
    assert str(result.exception) == "2 changes begin with 'abcd': abcd00000000, abcd00000001"
    assert isinstance(result.exception, ConfigError)


def test_the_command_line_shows_a_mistake_without_a_stack_trace(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "plot", "pdp", "--local", ".", "--out", "a.png"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 2
    assert "lacks explanations.jsonl" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_line_that_is_no_record_is_named(results: Path, tmp_path: Path) -> None:
    (tmp_path / "changes.jsonl").write_bytes(drift_of("f0").encode() + b"\n{}\n")
    with pytest.raises(SourceError, match=r"changes\.jsonl, line 2: "):
        list(from_files(tmp_path, ["changes"]))


def test_topics_are_read_to_their_end_and_give_the_same_picture(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with EmbeddedBroker() as broker:
        broker.publish_address()
        settings = {
            **SETTINGS,
            "model": NOT_INSTALLED,
            "explain": {},
            "kafka": {"bootstrap_servers": "embedded"},
        }
        write_config(tmp_path / "fluxplain.toml", settings)
        config = make_config().on_broker(broker.bootstrap_servers)
        create_topics(config)
        producer = RecordProducer(config)
        for record in stream_of(6):
            key = record.message_key()
            place = 0 if key is None else None  # a stream without keys stays in order
            topic = config.topic(record.TOPIC)
            producer.send(topic, record.encode(), key.encode() if key else None, place)
        producer.flush()
        read = list(from_topics(config, TOPICS))
        assert len(read) == len(stream_of(6))
        assert {r.encode() for r in read} == {r.encode() for r in stream_of(6)}
        assert list(from_topics(config, ["dead-letters"])) == []
        change = ("change", drift_of("f0").id, "--out")
        assert plot(*change, "a.svg").exit_code == 0
    assert plot(*change, "b.svg", "--local", results).exit_code == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
