"""Secrets and certificates reach all clients, and are shown nowhere."""

import pickle
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from faust.auth import SASLCredentials, SSLCredentials
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth
from pydantic import ValidationError
from pydantic_settings import SettingsError

from fluxplain.config import KafkaSettings
from fluxplain.kafka.client import client_settings
from fluxplain.kafka.faust.app import credentials
from tests.kit.loading import SECRET, Load, Refused
from tests.kit.support import make_config

PASSWORD = "$KAFKA__PASSWORD = SECRET"
TLS = "kafka.security_protocol = 'SSL'"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cert.pem, key.pem, the same encrypted, both in one, and another key."""
    folder = tmp_path_factory.mktemp("certificates")
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.fail("there is no openssl in PATH: install it")
    for arguments in (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=client -keyout key.pem -out cert.pem",
        f"rsa -aes256 -in key.pem -passout pass:{SECRET} -out locked.pem",
        "genrsa -out other.pem 2048",
    ):
        subprocess.run([openssl, *arguments.split()], cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text(
        (folder / "cert.pem").read_text() + (folder / "key.pem").read_text()
    )
    return folder


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_all_clients_get_the_same_user(load: Load, protocol: str, mechanism: str) -> None:
    config = load(
        f"kafka.security_protocol = '{protocol}'; kafka.username = 'ada'; {PASSWORD}; "
        f"kafka.sasl_mechanism = '{mechanism}'"
    )
    settings = client_settings(config)
    assert settings["security.protocol"] == protocol
    assert settings["sasl.mechanism"] == mechanism
    assert settings["sasl.username"] == "ada"
    assert settings["sasl.password"] == SECRET
    own = credentials(config.kafka)
    assert isinstance(own, SASLCredentials)
    aiokafka = credentials_to_aiokafka_auth(own)
    context = aiokafka.pop("ssl_context")
    assert aiokafka == {
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "ada",
        "sasl_plain_password": SECRET,
    }
    if protocol == "SASL_SSL":
        assert context.check_hostname
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert settings["ssl.endpoint.identification.algorithm"] == "https"
    else:
        assert context is None


def test_plaintext_and_scram_are_the_defaults_and_lower_case_will_do(load: Load) -> None:
    config = load("")
    assert client_settings(config)["security.protocol"] == "PLAINTEXT"
    assert credentials(config.kafka) is None
    config = load(f"SASL!; kafka.security_protocol = 'sasl_ssl'; {PASSWORD}")
    assert config.kafka.security_protocol == "SASL_SSL"
    assert client_settings(config)["sasl.mechanism"] == "SCRAM-SHA-512"
    assert load("SASL!; kafka.sasl_mechanism = 'plain'").kafka.mechanism == "PLAIN"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_password_file_is_read_without_the_newline_at_its_end(
    folder: Path, load: Load, end: str
) -> None:
    (folder / "secret").write_bytes(f" {SECRET} {end}".encode())
    config = load("SASL!; kafka.password_file = 'secret'")
    assert config.kafka.get_password() == f" {SECRET} "
    (folder / "secret").write_text("another")
    assert client_settings(config)["sasl.password"] == "another", "rotated files are read again"


@pytest.mark.parametrize("password", ["123", "null", "[1]", '{"a": 1}', '"quoted"', " ", "$HOME"])
def test_a_password_is_taken_as_it_is(load: Load, password: str) -> None:
    assert load(f"SASL!; $KAFKA__PASSWORD = {password}").kafka.get_password() == password


def test_other_secrets_come_from_the_environment_or_a_file(folder: Path, load: Load) -> None:
    (folder / "secret").write_text("f" * 32 + "\n")
    registry = "registry.url = 'https://h'; registry.username = 'me'"
    files = "alerts.secret_file = 'secret'; checkpoint.key_file = 'secret'"
    config = load(f"{registry}; registry.password_file = 'secret'; {files}")
    assert config.registry.get_password() == "f" * 32
    assert config.alerts.signing_secret() == config.checkpoint.signing_key() == b"f" * 32
    assert load("").alerts.signing_secret() is None
    assert load("").checkpoint.signing_key() is None
    secret = "s" * 32
    config = load(
        f"{registry}; $REGISTRY__PASSWORD = {secret}; $ALERTS__SECRET = {secret[:16]}; "
        f"$CHECKPOINT__KEY = {secret}; checkpoint.store = 'topic'"
    )
    assert config.registry.get_password() == secret
    assert config.alerts.signing_secret() == b"s" * 16
    assert config.checkpoint.signing_key() == secret.encode()


@pytest.mark.slow
def test_a_client_certificate_goes_to_all_clients(load: Load, certificates: Path) -> None:
    cert, key = certificates / "cert.pem", certificates / "key.pem"
    config = load(
        f"{TLS}; kafka.ca_file = '{cert}'; kafka.client_cert_file = '{cert}'; "
        f"kafka.client_key_file = '{key}'"
    )
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
    both = certificates / "both.pem"
    settings = client_settings(load(f"{TLS}; kafka.client_cert_file = '{both}'"))
    assert settings["ssl.key.location"] == str(both)
    assert settings["ssl.ca.location"] == "probe", "those that the system trusts"


def test_an_encrypted_key_is_opened_by_its_password(
    folder: Path, load: Load, refused: Refused, certificates: Path
) -> None:
    cert, key = certificates / "cert.pem", certificates / "locked.pem"
    text = f"{TLS}; kafka.client_cert_file = '{cert}'; kafka.client_key_file = '{key}'"
    assert "client_key_password is missing" in refused(text)
    (folder / "secret").write_text(SECRET + "\n")
    config = load(f"{text}; kafka.client_key_password_file = 'secret'")
    assert client_settings(config)["ssl.key.password"] == SECRET
    config = load(f"{text}; $KAFKA__CLIENT_KEY_PASSWORD = SECRET")
    assert client_settings(config)["ssl.key.password"] == SECRET
    wrong = refused(f"{text}; $KAFKA__CLIENT_KEY_PASSWORD = wrong")
    assert "the key's password must be right" in wrong


def test_a_key_that_belongs_to_another_certificate_is_named(
    refused: Refused, certificates: Path
) -> None:
    cert, key = certificates / "cert.pem", certificates / "other.pem"
    reason = refused(f"{TLS}; kafka.client_cert_file = '{cert}'; kafka.client_key_file = '{key}'")
    for part in ("kafka.client_cert_file", str(cert), str(key), "belong together", "mismatch"):
        assert part in reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KAFKA", "SECRET"),
        ("KAFKA", '"SECRET"'),
        ("KAFKA", '{"password": "SECRET'),
        ("KAFKA", '{"password": ["SECRET"]}'),
        ("KAFKA", '{"password": "SECRET", "x": 1}'),
        ("KAFKA", '{"password": "SECRET", "username": ""}'),
        ("KAFKA__PASSWORD__X", "SECRET"),
        ("KAFKA__CLIENT_KEY_PASSWORD", "SECRET"),
    ],
)
def test_no_mistake_makes_a_secret_show(refused: Refused, name: str, value: str) -> None:
    assert "\n" not in refused(f"SASL!; ${name} = {value}")
    with pytest.raises((ValidationError, SettingsError)) as error:  # as in a stack trace
        make_config()
    assert SECRET not in str(error.value)


def test_no_secret_is_in_what_is_printed_of_settings(load: Load) -> None:
    config = load(
        f"SASL!; {PASSWORD}; $ALERTS__URL = https://user:hush-7@host/; "
        "$REGISTRY__PASSWORD = SECRET; registry.url = 'https://host'; registry.username = 'me'"
    )
    shown = (
        f"{config!r} {config} {config.model_dump_json()} {config.model_dump(mode='json')} "
        f"{credentials(config.kafka)!r} {config.on_broker('elsewhere:9092')!r}"
    )
    assert SECRET not in shown
    assert "hush" not in repr(config)
    assert pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(ValidationError) as error:
        KafkaSettings.model_validate({"security_protocol": "SSL", "password": SECRET})
    assert SECRET not in str(error.value)
