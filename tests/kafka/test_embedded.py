"""The address of the embedded broker."""

from pathlib import Path

import pytest

from fluxplain.config import ConfigError
from fluxplain.kafka.embedded import ADDRESS_FILE, EmbeddedBroker


def test_a_broker_that_ends_leaves_the_address_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with EmbeddedBroker() as one, EmbeddedBroker() as other:
        one.publish_address()
        with pytest.raises(ConfigError, match="already runs from this directory"):
            other.publish_address()
        # both may have seen no file
        ADDRESS_FILE.unlink()
        other.publish_address()
        one.close()
        assert ADDRESS_FILE.read_text() == other.bootstrap_servers
    assert not any(ADDRESS_FILE.parent.iterdir())
