"""Requests to a registry, and what may come instead of an answer."""

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fluxplain.config import ConfigError, RegistrySettings
from fluxplain.kafka.client import AccessError
from fluxplain.kafka.registry.registry_client import (
    MAX_BYTES,
    MOST_REFERENCES,
    Registered,
    Registry,
    RegistryError,
    UnknownSchemaError,
)
from fluxplain.schemas import BadRecordError
from tests.kit.registry import Answer, RegistryServer


def registry(server: RegistryServer, **more: Any) -> Registry:
    return Registry(RegistrySettings(url=f"{server.url}/", **more))


def refers(*subjects: str) -> list[dict[str, Any]]:
    return [{"name": each, "subject": each, "version": 1} for each in subjects]


def test_a_schema_is_found_by_its_id_or_its_uuid(server: RegistryServer) -> None:
    avro, json = server.add("a-value", '"string"'), server.add("b-value", "{}", "JSON")
    assert registry(server).schema(avro) == Registered("AVRO", ['"string"'])
    assert registry(server).schema(UUID(int=json)) == Registered("JSON", ["{}"])
    assert server.asked[0] == "GET /registry/schemas/ids/1"


def test_a_schema_without_a_type_is_avro(server: RegistryServer) -> None:
    server.failure = 200, {"schema": '"long"'}
    assert registry(server).schema(1) == Registered("AVRO", ['"long"'])


def test_what_a_schema_refers_to_comes_before_it_and_once(server: RegistryServer) -> None:
    server.add("a", '"a"')
    server.add("b", '"b"', references=refers("a"))
    top = server.add("c", '"c"', references=refers("b", "a"))
    assert registry(server).schema(top).texts == ['"a"', '"b"', '"c"']


def test_a_schema_that_refers_to_very_many_is_not_followed(server: RegistryServer) -> None:
    for i in range(MOST_REFERENCES + 2):
        references = refers(f"s{i - 1}") if i else []
        top = server.add(f"s{i}", f'"{i}"', references=references)
    with pytest.raises(BadRecordError, match="refers to more than 100 others"):
        registry(server).schema(top)


def test_a_schema_is_registered_under_its_subject(server: RegistryServer) -> None:
    text = '{"type": "string"}'
    asked = registry(server)
    assert asked.register("fluxplain.changes-value", "JSON", text) == 1
    assert asked.register("fluxplain.changes-value", "JSON", text) == 1, "it is there"
    assert asked.register("a/b", "AVRO", '"long"') == 2
    assert server.subjects == {"fluxplain.changes-value": [1], "a%2Fb": [2]}
    assert server.schema(1) == {"schema": text, "schemaType": "JSON", "references": []}


def test_a_schema_that_is_there_needs_no_right_to_write(server: RegistryServer) -> None:
    server.add("t-value", '"long"')
    server.is_read_only = True
    assert registry(server).register("t-value", "AVRO", '"long"') == 1
    with pytest.raises(AccessError, match=r"cannot register the schema of u-value: .*denied"):
        registry(server).register("u-value", "AVRO", '"long"')


@pytest.mark.parametrize("reference", [7, UUID(int=7)])
def test_an_unknown_schema_is_no_fault_of_the_registry(
    server: RegistryServer, reference: int | UUID
) -> None:
    with pytest.raises(UnknownSchemaError, match=r"has no schema .*7: Schema not found"):
        registry(server).schema(reference)


DEEP = b"[" * 200_000
SPACES = b" " * MAX_BYTES


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ((500, {"error_code": 50001, "message": "Error in the\nstore"}), "Error in the store"),
        ((404, b"<html>"), "Not Found"),  # of something else at this address
        ((404, {"error_code": 404, "message": "HTTP 404 Not Found"}), "HTTP 404"),
        ((401, {"error_code": 40101, "message": "Unauthorized"}), "Unauthorized"),
        ((302, b""), "HTTP status 302"),
        ((200, b"no JSON"), "gave an invalid answer: JSONDecodeError"),
        ((200, b"{}" + SPACES), "gave an invalid answer: ValueError: more than 16,777,216 bytes"),
        ((500, b"{}" + SPACES), "gave an invalid answer: ValueError: more than 16,777,216 bytes"),
        ((200, DEEP), "gave an invalid answer: RecursionError"),
        ((500, DEEP), "gave an invalid answer: RecursionError"),
        ((200, gzip.compress(b"{}")), "gave an invalid answer: UnicodeDecodeError"),
        ((500, {"error_code": [], "message": "down"}), "fails: down"),
        ((500, {"error": "down"}), "fails: Internal Server Error"),
        ((500, {"error_code": 50001, "message": ["down"]}), "fails: Internal Server Error"),
        ((200, []), "gave an invalid answer: no JSON object"),
        ((200, b""), "gave an invalid answer: no JSON object"),
        ((200, {}), "gave an answer without schema"),
        ((200, {"id": 1}), "gave an answer without schema"),
        ((200, {"schema": "{}", "references": [{"subject": 1}]}), "gave an answer without subject"),
        (
            (200, {"schema": "{}", "references": [{"subject": "a", "version": []}]}),
            "without version",
        ),
        ((200, {"schema": "{}", "references": [7]}), "gave an answer without subject"),
        ((200, {"schema": "{}", "references": 7}), "gave an answer without references"),
        ((200, {"schema": "{}", "schemaType": 7}), "gave an answer without schemaType"),
        (
            (200, {"schema": "{}", "references": [{"subject": "\ud800", "version": 1}]}),
            "gave an invalid answer: UnicodeEncodeError",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_answer_may_come_later(
    server: RegistryServer, failure: Answer, reason: str
) -> None:
    server.failure = failure
    with pytest.raises(RegistryError, match=reason) as caught:
        registry(server).schema(1)
    assert server.url in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "elsewhere" not in "".join(server.asked)


def test_a_registry_that_is_away_is_named() -> None:
    with RegistryServer() as server:
        asked = registry(server)
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:\d+/registry does not answer: "):
        asked.check()


@pytest.mark.parametrize(
    ("status", "refuses"), [(401, True), (404, True), (403, True), (500, False)]
)
def test_the_check_finds_what_is_no_registry(
    server: RegistryServer, status: int, refuses: bool
) -> None:
    asked = registry(server)
    asked.check()
    server.failure = status, b""
    with pytest.raises(AccessError if refuses else RegistryError, match=f"HTTP status {status}"):
        asked.check()


@pytest.mark.parametrize("code", [40401, []])
def test_no_failure_of_the_check_means_an_unknown_schema(
    server: RegistryServer, code: object
) -> None:
    server.failure = 404, {"error_code": code, "message": "Subject not found"}
    with pytest.raises(AccessError, match=r"refuses: Subject not found \(HTTP status 404\)"):
        registry(server).check()


def test_what_the_client_does_not_know_is_ignored(server: RegistryServer) -> None:
    rules = {"domainRules": [{"name": "a", "kind": "NEW", "mode": "NEW", "type": "NEW"}]}
    id_ = server.add("a-value", '"long"', ruleSet=rules, metadata=7)
    assert registry(server).schema(id_) == Registered("AVRO", ['"long"'])
    server.failure = 200, {"compatibilityLevel": "NEW", "defaultRuleSet": rules}
    registry(server).check()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders `own` and `other`, each with a certificate of this machine and its key."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("own", "other"):
        path = folder / name / "cert.pem"
        path.parent.mkdir()
        names = f"-subj /CN={name} -addext subjectAltName=IP:127.0.0.1"
        command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 {names} -keyout {path}"
        made = subprocess.run(command.split(), capture_output=True, check=True).stdout
        path.write_bytes(path.read_bytes() + made)
        subprocess.run(["openssl", "rehash", path.parent], check=True)
    return folder


@pytest.mark.parametrize(
    ("file", "folder", "ca_file", "is_trusted"),
    [
        ("own", "missing", None, True),
        ("other", "own", None, True),
        ("missing", "own", None, True),
        ("missing", "missing", "own", True),
        ("other", "missing", None, False),
        ("missing", "missing", None, False),
        ("own", "own", "other", False),
    ],
)
def test_the_authorities_of_the_settings_or_else_of_the_system_are_trusted(
    server: RegistryServer,
    certificates: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    folder: str,
    ca_file: str | None,
    is_trusted: bool,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / file / "cert.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(certificates / folder))
    server.use_tls(certificates / "own" / "cert.pem")
    asked = registry(server, ca_file=ca_file and certificates / ca_file / "cert.pem")
    if is_trusted:
        asked.check()
    else:
        with pytest.raises(RegistryError, match="CERTIFICATE_VERIFY_FAILED"):
            asked.check()


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "ftp://127.0.0.1", "http://h:port"])
def test_a_proxy_that_cannot_be_used_is_refused_in_one_line(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConfigError, match=r"^registry\.url is .*no client can be made: .+$"):
        registry(server)


def test_the_password_is_given_and_never_shown() -> None:
    with RegistryServer(("fluxplain", "s3cret:word")) as server:
        registry(server, username="fluxplain", password="s3cret:word").check()
        asked = registry(server, username="fluxplain", password="other-s3cret")
        with pytest.raises(AccessError, match="Unauthorized") as caught:
            asked.check()
    assert "s3cret" not in str(caught.value)


def test_the_password_file_is_read_again_each_time(tmp_path: Path) -> None:
    """So a worker that waits for the registry resumes when the file is right."""
    path = tmp_path / "password"
    path.write_text("before\n")
    with RegistryServer(("fluxplain", "s3cret")) as server:
        id_ = server.add("a-value", '"string"')
        asked = registry(server, username="fluxplain", password_file=path)
        with pytest.raises(RegistryError, match="Unauthorized"):
            asked.schema(id_)
        path.write_text("s3cret\n")
        assert asked.schema(id_).kind == "AVRO"
        path.unlink()
        with pytest.raises(RegistryError, match=r"^registry\.password_file is .* No such file"):
            asked.schema(id_)
