"""Security settings: every combination that cannot work is named, and no secret is shown."""

import pickle
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError
from faust.auth import SASLCredentials, SSLCredentials
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth
from pydantic import ValidationError
from pydantic_settings import SettingsError

from pipeline.config import Config, ConfigError, KafkaSettings, load_config
from pipeline.kafka import client
from pipeline.kafka.app import credentials
from pipeline.kafka.client import AccessError, BrokerError, client_settings, no_topics, refusal
from pipeline.kafka.embedded import EmbeddedBroker
from pipeline.kafka.producer import DeliveryError, RecordProducer
from pipeline.kafka.progress import GroupOffsets
from pipeline.kafka.topics import create_topics
from tests.behaviour.faulty_broker import FaultyBroker
from tests.support import make_config

HUSH = "hush-7+/=,'ß"
"""The secret; with what has a meaning in SCRAM, in shells, and beyond ASCII."""

FIND_COORDINATOR = 10
INIT_PRODUCER_ID = 22
"""Kafka's numbers of requests."""

PASSWORD = "FLUXPLAIN_KAFKA__PASSWORD"

SASL = "security_protocol = 'SASL_SSL'\nusername = 'ada'\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cert.pem, key.pem, the same encrypted, both in one, and another key."""
    folder = tmp_path_factory.mktemp("certificates")
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.fail("there is no openssl in PATH: install it")
    for arguments in (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=client -keyout key.pem -out cert.pem",
        f"rsa -aes256 -in key.pem -passout pass:{HUSH} -out locked.pem",
        "genrsa -out other.pem 2048",
    ):
        subprocess.run([openssl, *arguments.split()], cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text(
        (folder / "cert.pem").read_text() + (folder / "key.pem").read_text()
    )
    return folder


def load(folder: Path, kafka: str) -> Config:
    path = folder / "fluxplain.toml"
    path.write_text(
        f'[kafka]\n{kafka}\n[features]\na = "numeric"\n'
        '[model]\nfactory = "river.naive_bayes:GaussianNB"\n'
    )
    return load_config(path)


def refused(folder: Path, kafka: str) -> str:
    """Return why the settings are refused: one line, without the secret."""
    with pytest.raises(ConfigError) as error:
        load(folder, kafka)
    reason = str(error.value)
    assert HUSH not in reason
    assert "\n" not in reason
    return reason


def test_by_default_there_is_none(folder: Path) -> None:
    config = load(folder, "")
    assert config.kafka.security_protocol == "PLAINTEXT"
    assert client_settings(config)["security.protocol"] == "PLAINTEXT"
    assert credentials(config.kafka) is None


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_all_clients_get_the_same_user(
    folder: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, mechanism: str
) -> None:
    monkeypatch.setenv(PASSWORD, HUSH)
    text = f"security_protocol = '{protocol}'\nsasl_mechanism = '{mechanism}'\nusername = 'ada'"
    config = load(folder, text)
    settings = client_settings(config)
    assert settings["security.protocol"] == protocol
    assert settings["sasl.mechanism"] == mechanism
    assert settings["sasl.username"] == "ada"
    assert settings["sasl.password"] == HUSH
    own = credentials(config.kafka)
    assert isinstance(own, SASLCredentials)
    aiokafka = credentials_to_aiokafka_auth(own)
    context = aiokafka.pop("ssl_context")
    assert aiokafka == {
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "ada",
        "sasl_plain_password": HUSH,
    }
    if protocol == "SASL_SSL":
        assert context.check_hostname
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert settings["ssl.endpoint.identification.algorithm"] == "https"
    else:
        assert context is None


def test_scram_is_the_default_and_lower_case_will_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, HUSH)
    config = load(folder, "security_protocol = 'sasl_ssl'\nusername = 'ada'")
    assert config.kafka.security_protocol == "SASL_SSL"
    assert client_settings(config)["sasl.mechanism"] == "SCRAM-SHA-512"
    config = load(folder, SASL + "sasl_mechanism = 'scram-sha-256'")
    assert config.kafka.mechanism == "SCRAM-SHA-256"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_password_file_is_read_without_the_newline_at_its_end(folder: Path, end: str) -> None:
    (folder / "secret").write_bytes(f" {HUSH} {end}".encode())
    config = load(folder, SASL + "password_file = 'secret'")
    assert config.kafka.get_password() == f" {HUSH} "
    (folder / "secret").write_text("another")
    assert client_settings(config)["sasl.password"] == "another", "rotated files are read anew"


def test_a_client_certificate_goes_to_all_clients(folder: Path, certificates: Path) -> None:
    cert, key = certificates / "cert.pem", certificates / "key.pem"
    text = (
        f"security_protocol = 'SSL'\nca_file = '{cert}'\nclient_cert_file = '{cert}'\n"
        f"client_key_file = '{key}'"
    )
    config = load(folder, text)
    settings = client_settings(config)
    assert settings["ssl.ca.location"] == str(cert)
    assert settings["ssl.certificate.location"] == str(cert)
    assert settings["ssl.key.location"] == str(key)
    assert "ssl.key.password" not in settings
    assert "sasl.username" not in settings
    own = credentials(config.kafka)
    assert isinstance(own, SSLCredentials)
    assert own.context.check_hostname
    assert len(own.context.get_ca_certs()) == 1, "no other authority is trusted"


def test_certificate_and_key_may_be_in_one_file(folder: Path, certificates: Path) -> None:
    both = certificates / "both.pem"
    settings = client_settings(
        load(folder, f"security_protocol = 'SSL'\nclient_cert_file = '{both}'")
    )
    assert settings["ssl.key.location"] == str(both)
    assert settings["ssl.ca.location"] == "probe", "whom the system trusts"


def test_an_encrypted_key_is_opened_by_its_password(
    folder: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificates / "cert.pem", certificates / "locked.pem"
    text = f"security_protocol = 'SSL'\nclient_cert_file = '{cert}'\nclient_key_file = '{key}'\n"
    assert "client_key_password is missing" in refused(folder, text)
    (folder / "secret").write_text(HUSH + "\n")
    config = load(folder, text + "client_key_password_file = 'secret'")
    assert client_settings(config)["ssl.key.password"] == HUSH
    monkeypatch.setenv("FLUXPLAIN_KAFKA__CLIENT_KEY_PASSWORD", HUSH)
    assert client_settings(load(folder, text))["ssl.key.password"] == HUSH
    monkeypatch.setenv("FLUXPLAIN_KAFKA__CLIENT_KEY_PASSWORD", HUSH + "x")
    assert "the key's password must be right" in refused(folder, text)


WRONG: list[tuple[str, dict[str, str], list[str]]] = [
    (
        "security_protocol = 'TLS'",
        {},
        ["kafka.security_protocol is 'TLS'", "'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT' or 'SASL_SSL'"],
    ),
    (
        SASL + "sasl_mechanism = 'GSSAPI'",
        {PASSWORD: HUSH},
        ["kafka.sasl_mechanism is 'GSSAPI'", "'PLAIN', 'SCRAM-SHA-256' or 'SCRAM-SHA-512'"],
    ),
    (SASL, {}, ["kafka.password is missing", "SASL_SSL", PASSWORD, "password_file"]),
    (SASL, {PASSWORD: ""}, ["kafka.password cannot be used", "at least 1"]),
    (
        "security_protocol = 'SASL_PLAINTEXT'",
        {PASSWORD: HUSH},
        ["kafka.username is missing", "SASL_PLAINTEXT"],
    ),
    (
        "security_protocol = 'SASL_SSL'\nusername = ''",
        {PASSWORD: HUSH},
        ["kafka.username is ''", "at least 1"],
    ),
    (
        SASL + "password_file = 'secret'",
        {PASSWORD: HUSH},
        ["kafka.password_file is 'secret'", PASSWORD, "only one"],
    ),
    (
        "sasl_mechanism = 'PLAIN'",
        {},
        ["kafka.sasl_mechanism is 'PLAIN'", "'PLAINTEXT'", "SASL_PLAINTEXT or SASL_SSL"],
    ),
    (
        "security_protocol = 'SSL'\nusername = 'ada'",
        {},
        ["kafka.username is 'ada'", "'SSL'", "SASL_PLAINTEXT or SASL_SSL"],
    ),
    ("", {PASSWORD: HUSH}, ["kafka.password is set", "'PLAINTEXT'", "SASL_SSL"]),
    ("password_file = 'secret'", {}, ["kafka.password_file is 'secret'", "'PLAINTEXT'"]),
    (
        "security_protocol = 'SASL_PLAINTEXT'\nusername = 'ada'\nca_file = 'secret'",
        {PASSWORD: HUSH},
        ["kafka.ca_file is 'secret'", "'SASL_PLAINTEXT'", "SSL or SASL_SSL"],
    ),
    (
        "client_cert_file = 'secret'",
        {},
        ["kafka.client_cert_file is 'secret'", "'PLAINTEXT'", "SSL or SASL_SSL"],
    ),
    (
        "security_protocol = 'SSL'\nclient_key_file = 'secret'",
        {},
        ["kafka.client_key_file is set", "client_cert_file is missing"],
    ),
    (
        "security_protocol = 'SSL'",
        {"FLUXPLAIN_KAFKA__CLIENT_KEY_PASSWORD": HUSH},
        ["kafka.client_key_password is set", "client_cert_file is missing"],
    ),
    (
        SASL + "password_file = 'nowhere'",
        {},
        ["kafka.password_file is 'nowhere'", "cannot be read", "No such file"],
    ),
    (
        "security_protocol = 'SSL'\nca_file = '.'",
        {},
        ["kafka.ca_file is '.'", "cannot be read", "directory"],
    ),
    (SASL + "password_file = 'empty'", {}, ["kafka.password_file is 'empty'", "empty"]),
    (SASL + "password_file = 'lines'", {}, ["kafka.password_file is 'lines'", "one line"]),
    (SASL + "password_file = 'bytes'", {}, ["kafka.password_file is 'bytes'", "UTF-8"]),
    (
        "security_protocol = 'SSL'\nca_file = 'secret'",
        {},
        ["kafka.ca_file is 'secret'", "no certificates in PEM"],
    ),
    (
        "security_protocol = 'SSL'\nclient_cert_file = 'secret'",
        {},
        ["kafka.client_cert_file is 'secret'", "PEM"],
    ),
    (
        "bootstrap_servers = 'embedded'\nsecurity_protocol = 'SSL'",
        {},
        ["kafka.security_protocol is 'SSL'", "'embedded'", "'PLAINTEXT'"],
    ),
]


@pytest.mark.parametrize(("kafka", "environment", "parts"), WRONG)
def test_what_does_not_fit_together_is_named(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    kafka: str,
    environment: dict[str, str],
    parts: list[str],
) -> None:
    (folder / "secret").write_text(HUSH + "\n")
    (folder / "empty").write_text("\n")
    (folder / "lines").write_text(f"{HUSH}\n{HUSH}\n")
    (folder / "bytes").write_bytes(b"\xff\xfe")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    reason = refused(folder, kafka)
    assert all(part in reason for part in parts), reason


def test_a_key_that_belongs_to_another_certificate_is_named(
    folder: Path, certificates: Path
) -> None:
    cert, key = certificates / "cert.pem", certificates / "other.pem"
    reason = refused(
        folder, f"security_protocol = 'SSL'\nclient_cert_file = '{cert}'\nclient_key_file = '{key}'"
    )
    for part in ("kafka.client_cert_file", str(cert), str(key), "belong together", "mismatch"):
        assert part in reason


@pytest.mark.parametrize("key", ["password", "client_key_password"])
def test_a_secret_in_the_file_is_refused_and_not_repeated(folder: Path, key: str) -> None:
    reason = refused(folder, f'{SASL}{key} = "{HUSH}"')
    for part in (f"kafka.{key}", f"FLUXPLAIN_KAFKA__{key.upper()}", f"kafka.{key}_file"):
        assert part in reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLUXPLAIN_KAFKA", HUSH),
        ("FLUXPLAIN_KAFKA", f'"{HUSH}"'),
        ("FLUXPLAIN_KAFKA", f'{{"password": "{HUSH}'),
        ("FLUXPLAIN_KAFKA", f'{{"password": ["{HUSH}"]}}'),
        ("FLUXPLAIN_KAFKA", f'{{"password": "{HUSH}", "x": 1}}'),
        ("FLUXPLAIN_KAFKA", f'{{"password": "{HUSH}", "username": ""}}'),
        ("FLUXPLAIN_KAFKA__PASSWORD__X", HUSH),
        ("FLUXPLAIN_KAFKA__CLIENT_KEY_PASSWORD", HUSH),
    ],
)
def test_no_mistake_makes_a_secret_show(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    refused(folder, SASL)
    with pytest.raises((ValidationError, SettingsError)) as error:  # as in a stack trace
        make_config()
    assert HUSH not in str(error.value)


def test_no_secret_is_in_what_is_printed_of_settings(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, HUSH)
    config = load(folder, SASL)
    shown = (
        f"{config!r} {config} {config.model_dump_json()} {config.model_dump(mode='json')} "
        f"{credentials(config.kafka)!r} {config.on_broker('elsewhere:9092')!r}"
    )
    assert HUSH not in shown
    assert pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(ValidationError) as error:
        KafkaSettings.model_validate({"security_protocol": "SSL", "password": HUSH})
    assert HUSH not in str(error.value)


@pytest.mark.parametrize("password", ["123", "null", "[1]", '{"a": 1}', '"quoted"', " ", "$HOME"])
def test_a_password_is_taken_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv(PASSWORD, password)
    assert load(folder, SASL).kafka.get_password() == password


def test_the_fingerprint_does_not_depend_on_who_connects() -> None:
    secured: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "username": "ada",
        "password": HUSH,
    }
    assert make_config(kafka=secured).fingerprint() == make_config().fingerprint()


def test_a_client_that_authenticates_is_told_that_the_broker_does_not() -> None:
    with EmbeddedBroker() as broker:
        config = make_config(
            kafka={
                "bootstrap_servers": broker.bootstrap_servers,
                "security_protocol": "SASL_PLAINTEXT",
                "username": "ada",
                "password": HUSH,
            }
        )
        with pytest.raises(BrokerError) as error:
            client.cluster(config, timeout_s=2.0)
    reason = str(error.value)
    assert broker.bootstrap_servers in reason
    assert "kafka.security_protocol" in reason
    assert HUSH not in reason


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AccessError),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, AccessError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, BrokerError),
    ],
)
def test_what_acls_forbid_is_told_apart(code: int, kind: type[BrokerError]) -> None:
    config = make_config(
        kafka={"security_protocol": "SASL_SSL", "username": "ada", "password": HUSH}
    )
    error = refusal(config, "cannot read x", KafkaError(code))
    assert type(error) is kind
    assert "cannot read x" in str(error)
    assert ("'ada'" in str(error)) == ("ACLs" in str(error)) == (kind is AccessError)


def test_topics_that_acls_may_hide_are_not_just_called_missing() -> None:
    config = make_config(
        kafka={"security_protocol": "SASL_SSL", "username": "ada", "password": HUSH}
    )
    assert "ACLs hide them from kafka.username 'ada'" in str(no_topics(config, ["a", "b"]))
    assert "ACLs" not in str(no_topics(make_config(), ["a", "b"]))


def test_what_acls_do_not_let_a_producer_send_is_told() -> None:
    with FaultyBroker() as broker:
        config = make_config(kafka={"bootstrap_servers": broker.bootstrap_servers})
        broker.refuse(INIT_PRODUCER_ID, KafkaError.CLUSTER_AUTHORIZATION_FAILED, times=100)
        producer = RecordProducer(config)

        def send() -> None:
            producer.send(config.topic("features"), b"{}", place=0)
            producer.flush()

        with pytest.raises(DeliveryError, match="ACLs do not allow it"):
            send()


def test_what_acls_do_not_let_a_group_do_is_told() -> None:
    with FaultyBroker() as broker:
        config = make_config(kafka={"bootstrap_servers": broker.bootstrap_servers})
        create_topics(config)
        broker.refuse(FIND_COORDINATOR, KafkaError.GROUP_AUTHORIZATION_FAILED, times=100)
        offsets = GroupOffsets(config, "model", "features")
        try:
            with pytest.raises(AccessError, match="ACLs do not allow it"):
                offsets.committed()
        finally:
            offsets.close()


def test_an_embedded_broker_takes_no_settings_that_are_for_a_secured_one() -> None:
    config = make_config(
        kafka={"security_protocol": "SASL_SSL", "username": "ada", "password": HUSH}
    )
    with EmbeddedBroker() as broker:
        with pytest.raises(ConfigError, match=r"kafka\.security_protocol is 'SASL_SSL'"):
            broker.settings_for(config)
        assert broker.settings_for(make_config()).kafka.security_protocol == "PLAINTEXT"
