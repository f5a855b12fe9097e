"""``fluxplain alerts test``: what it prints, and what it refuses."""

import json
import os

import pytest

from fluxplain.alerts.message import SIGNATURE, TIMESTAMP, sign
from fluxplain.schemas import Change
from tests.cli.commands import refusal
from tests.cli.commands import run_here as run
from tests.kit.receiver import Receiver, receiver

__all__ = ["receiver"]  # a fixture

SECRET = "0123456789abcdef"


pytestmark = pytest.mark.usefixtures("without_model")


def test_a_test_alert_is_signed_and_what_was_answered_is_told(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.says = b"hello"
    receiver.respond = lambda n: (403, 200)[n]
    url = receiver.url.replace("127.0.0.1", "me:hunter2@127.0.0.1")
    monkeypatch.setenv("FLUXPLAIN_ALERTS__URL", url)
    result = run("alerts", "test")
    assert result.returncode == 1
    assert "answered 403 (Forbidden): hello" in result.stdout
    assert "Not signed" in result.stdout

    monkeypatch.setenv("FLUXPLAIN_ALERTS__SECRET", SECRET)
    result = run("alerts", "test")
    assert result.returncode == 0, result.stdout
    assert "answered 200 (OK): hello" in result.stdout
    for secret in ("hunter2", "secret-token", SECRET):
        assert secret not in result.stdout
    (unsigned, _), (headers, content) = receiver.got
    assert SIGNATURE not in unsigned
    assert headers[SIGNATURE] == sign(SECRET.encode(), int(headers[TIMESTAMP]), content)
    alert = json.loads(content)
    assert alert["test"] is True
    assert Change.validated(alert["change"]).feature == "salary"


def test_a_receiver_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXPLAIN_ALERTS__URL", "http://127.0.0.1:1/")
    result = run("alerts", "test")
    assert result.returncode == 1
    assert "http://127.0.0.1:1 cannot be reached: Connect" in result.stdout


@pytest.mark.parametrize("command", ["test", "run"])
def test_without_a_url_there_is_nothing_to_do(command: str) -> None:
    assert "FLUXPLAIN_ALERTS__URL" not in os.environ
    assert "alerts.url is not set" in refusal("alerts", command)
