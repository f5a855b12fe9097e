"""The extra is needed where a registry is configured, and only there."""

import sys

import pytest

from fluxplain.config import Config, ConfigError
from fluxplain.kafka.registry.codec import check_registry, open_decoder, open_encoder
from tests.kit.support import make_config

MODULES = ("avro_values", "avro_decoder", "avro_encoder")
"""What needs the extra; others may have loaded it."""


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODULES:
        monkeypatch.delitem(sys.modules, f"fluxplain.kafka.registry.{name}", raising=False)
        monkeypatch.delattr(f"fluxplain.kafka.registry.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "fastavro", None)


@pytest.mark.usefixtures("without_extra")
def test_without_a_registry_nothing_is_needed() -> None:
    config = make_config()
    assert open_decoder(config) is None
    assert open_encoder(config) is None
    check_registry(config)


@pytest.mark.usefixtures("without_extra")
@pytest.mark.parametrize("open_", [open_decoder, open_encoder, check_registry])
def test_with_one_what_is_missing_is_told(open_: object) -> None:
    config: Config = make_config(registry={"url": "http://127.0.0.1:1", "output": "json"})
    expected = r"registry.url is set, but fastavro is not installed: pip install 'fluxplain\[reg"
    with pytest.raises(ConfigError, match=expected):
        open_(config)  # type: ignore[operator]
