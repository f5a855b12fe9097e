"""``fluxplain alerts test``: what it prints, and what it refuses."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import fluxplain.cli.main  # noqa: F401  adds the commands
from fluxplain.alerts.message import SIGNATURE, TIMESTAMP, sign
from fluxplain.cli.common import app
from fluxplain.errors import UserError
from fluxplain.schemas import Change
from tests.kit.settings import NOT_INSTALLED, SETTINGS, write_config

SECRET = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with settings, but not their model."""
    write_config(tmp_path / "fluxplain.toml", {**SETTINGS, "model": NOT_INSTALLED})
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, arguments)


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
    receiver: list[tuple[dict[str, str], bytes]], monkeypatch: pytest.MonkeyPatch
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


def test_a_receiver_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXPLAIN_ALERTS__URL", "http://127.0.0.1:1/")
    result = run("alerts", "test")
    assert result.exit_code == 1
    assert "http://127.0.0.1:1 cannot be reached: Connect" in result.output


@pytest.mark.parametrize("command", ["test", "run"])
def test_without_a_url_there_is_nothing_to_do(command: str) -> None:
    assert "FLUXPLAIN_ALERTS__URL" not in os.environ
    result = run("alerts", command)
    assert isinstance(result.exception, UserError)
    assert "alerts.url is not set" in str(result.exception)
