"""Settings of a registry: what fits together, and no secret in an error."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.config import explain_errors
from pipeline.kafka.registry.settings import RegistrySettings
from tests.support import make_config

URL = "https://registry.example:8081/path"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "registry:8081"}, "url must be https://host:port/path or http://"),
        ({"url": "mock://x"}, "url must be https://"),
        ({"url": "https://h:99999"}, "url must be https://"),
        ({"url": "https://a, https://b"}, "url must be https://"),
        ({"url": "https://h?key=s3cret"}, "url must be https://"),
        ({"url": "https://me:s3cret@h"}, "url must not hold a username or password"),
        ({"username": "me"}, "username is set, but url is missing"),
        ({"password": "s3cret"}, "password is set, but url is missing"),
        ({"output": "avro"}, "output is 'avro', but url is missing"),
        ({"url": URL, "username": "me"}, "password is missing"),
        ({"url": URL, "password": "s3cret"}, "username is missing"),
        (
            {"url": URL, "username": "me", "password": "s3cret", "password_file": "f"},
            "password and password_file are both set",
        ),
        ({"url": URL, "username": "me", "password_file": "/nowhere"}, "cannot be read: No such"),
        ({"url": URL, "ca_file": "/nowhere"}, "ca_file is '/nowhere', and .*No such file"),
        ({"url": URL, "ca_file": __file__}, "holds no certificates in PEM format"),
        ({"url": URL, "output": "protobuf"}, "output"),
    ],
)
def test_what_does_not_fit_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RegistrySettings(**settings)
    with pytest.raises(ValidationError) as caught:
        make_config(registry=settings)
    told = explain_errors(caught.value)
    assert told.startswith("registry.")
    assert "s3cret" not in told
    assert "\n" not in told


def test_the_password_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("s3cret\n")
    settings = RegistrySettings(url=URL, username="me", password_file=path)
    assert settings.get_password() == "s3cret"
    assert "s3cret" not in repr(settings)


def test_the_registry_changes_nothing_that_is_computed() -> None:
    plain = make_config().fingerprint()
    assert make_config(registry={"url": URL, "output": "avro"}).fingerprint() == plain
