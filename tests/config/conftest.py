"""Settings from a file in an empty working directory, written as short statements of TOML."""

from pathlib import Path

import pytest

from fluxplain.config import ENV_PREFIX, Config, ConfigError, load_config
from tests.kit.loading import SECRET, SMALLEST, Load, Refused

OAUTH = "SASL!; kafka.sasl_mechanism = 'OAUTHBEARER'; $KAFKA__PASSWORD = SECRET"
SASL = "kafka.security_protocol = 'SASL_SSL'; kafka.username = 'ada'"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load the smallest settings with further ones: ``key = value; $ENVIRONMENT = text; …``."""

    def load_(text: str) -> Config:
        keys = dict(SMALLEST)
        for statement in filter(
            None, text.replace("OAUTH!", OAUTH).replace("SASL!", SASL).split("; ")
        ):
            key, _, value = statement.partition(" = ")
            if key.startswith("$"):
                monkeypatch.setenv(ENV_PREFIX + key[1:], value.replace("SECRET", SECRET))
            else:
                keys[key] = statement.replace("SECRET", SECRET)
        path = folder / "fluxplain.toml"
        path.write_text("\n".join(keys.values()), encoding="utf-8")
        return load_config(path)

    return load_


@pytest.fixture
def refused(load: Load) -> Refused:
    """Return why settings are refused; the secret is never shown."""

    def refused_(text: str) -> str:
        with pytest.raises(ConfigError) as error:
            load(text)
        assert SECRET not in str(error.value)
        return str(error.value)

    return refused_
