"""`fluxplain explain-change` and `alerts test`: what they print, and what they refuse."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

import pipeline.cli.main  # noqa: F401  adds the commands
from pipeline.alerts.message import SIGNATURE, TIMESTAMP, sign
from pipeline.cli.common import app
from pipeline.cli.main import USER_ERRORS
from pipeline.kafka.embedded import EmbeddedBroker
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.topics import create_topics
from schemas import Change
from tests.behaviour.conftest import NOT_INSTALLED, SETTINGS, write_config
from tests.monitor.records import change
from tests.support import make_config

SECRET = "0123456789abcdef"

STREAM = "fluxplain.features-0"

ONE = replace(
    change("age", 7, stream=STREAM), replay_seq=3, incident=f"{STREAM}@7", id="0123456789ab"
)
OTHER = replace(
    change("loan", 9, stream=STREAM), replay_seq=5, incident=f"{STREAM}@7", id="456789abcdef"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with settings, but not their model, and results of the local pipeline."""
    write_config(tmp_path / "fluxplain.toml", {**SETTINGS, "model": NOT_INSTALLED})
    monkeypatch.chdir(tmp_path)
    lines = [ONE.encode(), OTHER.encode()]
    (tmp_path / "changes.jsonl").write_bytes(b"\n".join(lines))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, arguments)


def refusal(*arguments: str) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, USER_ERRORS)
    return str(result.exception)


def test_a_story_is_told_from_what_local_wrote(folder: Path) -> None:
    result = run("explain-change", "0123", "--local", str(folder))
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"{ONE.detail}\n")
    assert f"change    {ONE.id}" in result.output
    assert "456789abcdef  9  iPFI of loan rose" in result.output
    assert "records 3 to 7 of what `fluxplain local` read" in result.output


def test_an_incident_is_told_too_and_without_an_id_the_newest_are_listed(folder: Path) -> None:
    incident = run("explain-change", f"{STREAM}@7", "--local", ".").output
    assert f"Incident {STREAM}@7: 2 changes" in incident
    assert "records 3 to 9 of" in incident
    listed = run("explain-change", "--local", str(folder)).output
    assert listed.index(OTHER.id) < listed.index(ONE.id)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(["4567"], [OTHER]), ([f"{STREAM}@7"], [ONE, OTHER]), ([], [OTHER, ONE])],
)
def test_the_records_themselves_are_printed_as_json(
    folder: Path, asked: list[str], expected: list[Change]
) -> None:
    output = run("explain-change", *asked, "--json", "--local", str(folder)).output
    assert [Change.decode(line.encode()) for line in output.splitlines()] == expected


def test_what_is_not_there_is_told(folder: Path) -> None:
    assert "the nearest are 0123456789ab" in refusal("explain-change", "0124", "--local", ".")
    assert "nowhere lacks changes.jsonl" in refusal("explain-change", "--local", "nowhere")
    (folder / "changes.jsonl").write_bytes(ONE.encode() + b"\nno change")
    assert "changes.jsonl, line 2: not JSON" in refusal("explain-change", "--local", ".")


def test_a_story_of_a_topic_names_the_command_that_shows_its_observations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        config = make_config().on_broker(broker.bootstrap_servers)
        create_topics(config)
        producer = RecordProducer(config)
        for n in range(12):
            producer.send(config.topic("features"), orjson.dumps({"x": {"n": n}}), place=0)
        producer.send(config.topic("changes"), ONE.encode(), place=3)
        producer.flush()

        story = run("explain-change", ONE.id).output
        assert "ipfi of age rose" in story
        command = story.splitlines()[-1].split()
        assert command[:3] == ["fluxplain", "tail", "features"]
        seen = run(*command[1:])
        assert seen.exit_code == 0, seen.output
        assert seen.output.splitlines() == [f'{n}  {{"x":{{"n":{n}}}}}' for n in range(3, 8)]

        assert "no observations 50-60" in refusal("tail", "features", "--seqs", "50-60")
        assert "as --seqs" in refusal("tail", "features", "--seqs", "5")
        asked = "tail", "features", "--seqs", "5-6", "--stream", "other-0"
        assert f"as --stream {config.topic('features')}-0" in refusal(*asked)
        assert "of features only" in refusal("tail", "changes", "--seqs", "5-6")
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
    write_config(
        folder / "fluxplain.toml", {**SETTINGS, "model": NOT_INSTALLED, "explain": explain}
    )
    refused = refusal("watch", option, value)
    assert f"{option} is" in refused
    assert known in refused


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[dict[str, str], bytes]]]:
    """What a receiver got: headers and body. It answers 200, and 403 without a signature."""
    got: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if SIGNATURE in self.headers else 403)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://me:hunter2@127.0.0.1:{server.server_port}/token"
        monkeypatch.setenv("FLUXPLAIN_ALERTS__URL", url)
        yield got
        server.shutdown()
        thread.join()


def test_a_test_alert_is_signed_and_what_was_answered_is_told(
    folder: Path, receiver: list[tuple[dict[str, str], bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("alerts", "test")
    assert result.exit_code == 1
    assert "answered 403 (Forbidden): hello" in result.output
    assert "It was not signed" in result.output

    monkeypatch.setenv("FLUXPLAIN_ALERTS__SECRET", SECRET)
    result = run("alerts", "test")
    assert result.exit_code == 0, result.output
    assert "answered 200 (OK): hello" in result.output
    for secret in ("hunter2", "token", SECRET):
        assert secret not in result.output
    headers, content = receiver[1]
    assert headers[SIGNATURE] == sign(SECRET.encode(), int(headers[TIMESTAMP]), content)
    alert = json.loads(content)
    assert alert["test"] is True
    assert Change.validated(alert["change"]).feature == "salary"


def test_a_receiver_that_is_not_there_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUXPLAIN_ALERTS__URL", "http://127.0.0.1:1/")
    result = run("alerts", "test")
    assert result.exit_code == 1
    assert "http://127.0.0.1:1 cannot be reached: Connect" in result.output


@pytest.mark.parametrize("command", ["test", "run"])
def test_without_a_url_there_is_nothing_to_do(folder: Path, command: str) -> None:
    assert "FLUXPLAIN_ALERTS__URL" not in os.environ
    assert "alerts.url is not set" in refusal("alerts", command)
