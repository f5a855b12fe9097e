"""The settings of alerts: mistakes are named, and what is secret is not shown."""

from pathlib import Path

import pytest

from pipeline.alerts.settings import AlertSettings
from pipeline.config import ConfigError, load_config
from tests.support import make_config
from tests.test_config import SMALLEST

SECRET = "FLUXPLAIN_ALERTS__SECRET"


def refused(folder: Path, text: str) -> str:
    path = folder / "fluxplain.toml"
    path.write_text(f"{SMALLEST}\n[alerts]\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value)


def test_there_are_none_unless_a_url_is_set() -> None:
    assert make_config().alerts.url is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("min_effect = 1.1", ["alerts.min_effect is 1.1", "equal to 1"]),
        ("quiet_s = -1", ["alerts.quiet_s is -1"]),
        ("timeout_s = 0", ["alerts.timeout_s is 0"]),
        ("methods = ['shap']", ["alerts.methods.0 is 'shap'", "'loss'"]),
        ("methods = []", ["alerts.methods is []", "at least 1"]),
        ("kinds = ['drifts']", ["alerts.kinds.0 is 'drifts'", "'cold-start'"]),
        ("features = ['nope']", ["alerts.features has 'nope'", "explained"]),
        ("secret = 'x'", ["alerts.secret is a secret", SECRET, "alerts.secret_file"]),
        ("secret_file = 'nowhere'", ["alerts.secret_file is 'nowhere'", "No such file"]),
        ("urls = 'x'", ["alerts.urls is not a setting", "url, proxy"]),
        *[
            (f"url = {url!r}", ["alerts.url must be http://host/path or https://host/path"])
            for url in ("ftp://a/b", "hooks.example", "http://", "http://a:99999/", "http://a b/")
        ],
        ("proxy = 'https://proxy:8080'", ["alerts.proxy must be http://host/path"]),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, parts: list[str]) -> None:
    reason = refused(tmp_path, text)
    assert all(part in reason for part in parts), reason


def test_what_may_be_secret_in_a_url_is_not_shown(tmp_path: Path) -> None:
    assert "hunter2" not in refused(tmp_path, "url = 'ftp://user:hunter2@host/token'")
    assert "hunter2" not in repr(AlertSettings(url="https://user:hunter2@host/"))


def test_the_secret_comes_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fluxplain.toml"
    path.write_text(SMALLEST)
    assert load_config(path).alerts.signing_secret() is None
    monkeypatch.setenv(SECRET, "s" * 15)
    with pytest.raises(ConfigError, match=r"alerts\.secret has 15 characters") as caught:
        load_config(path)
    assert "sss" not in str(caught.value)
    monkeypatch.setenv(SECRET, "s" * 16)
    assert load_config(path).alerts.signing_secret() == b"s" * 16

    file = tmp_path / "secret"
    file.write_text("f" * 20 + "\n")
    path.write_text(f"{SMALLEST}\n[alerts]\nsecret_file = {str(file)!r}\n")
    with pytest.raises(ConfigError, match="both set"):
        load_config(path)
    monkeypatch.delenv(SECRET)
    assert load_config(path).alerts.signing_secret() == b"f" * 20


def test_alerts_change_nothing_that_is_published() -> None:
    alerts = {"url": "https://hooks.example/", "quiet_s": 1.0}
    assert make_config(alerts=alerts).fingerprint() == make_config().fingerprint()
