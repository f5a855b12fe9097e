"""A real broker with passwords and TLS: the pipeline runs, and what is refused is told clearly."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import ROLES, WorkerRefusedError
from fluxplain.config import load_config
from fluxplain.config.replica import Role
from tests.kit.kafka_pipeline import KafkaPipeline, assert_same, reference
from tests.kit.kafka_topics import set_password
from tests.kit.preloaded import Command
from tests.kit.settings import SETTINGS, Configure, topics, write_config
from tests.kit.streams import observations

pytestmark = pytest.mark.kafka

PASSWORD = "FLUXPLAIN_KAFKA__PASSWORD"
MECHANISM = "FLUXPLAIN_KAFKA__SASL_MECHANISM"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that lets nobody in over SSL without a client certificate that it trusts."""
    cluster = Cluster(tmp_path_factory.mktemp("kafka"), brokers=1, secure=True)
    cluster.create()
    properties = cluster.folder / "broker-1" / "server.properties"
    text = properties.read_text()
    assert "client.auth=requested" in text
    properties.write_text(text.replace("client.auth=requested", "client.auth=required"))
    with cluster:
        yield cluster


@pytest.fixture
def configure(cluster: Cluster, tmp_path: Path, prefix: str) -> Configure:
    """Writes settings with topics of their own; SASL_SSL if nothing else is said."""

    def write(**kafka: Any) -> Path:
        defaults = {
            "bootstrap_servers": cluster.sasl_bootstrap_servers,
            "security_protocol": "SASL_SSL",
            "username": cluster.username,
            "ca_file": str(cluster.ca_file),
        }
        # what is None here is not set
        settings = {k: v for k, v in {**defaults, **kafka}.items() if v is not None}
        topics = {"prefix": prefix, "partitions": 2}
        return write_config(
            tmp_path / "fluxplain.toml", {**SETTINGS, "kafka": settings, "topics": topics}
        )

    return write


@pytest.fixture
def password(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """The right one, in the environment."""
    monkeypatch.setenv(PASSWORD, cluster.password)
    return cluster.password


def publishes_what_the_reference_does(
    config_path: Path,
    folder: Path,
    secret: str,
    environment_of: Callable[[str], Mapping[str, str]] = lambda _name: {},
) -> None:
    values = observations(200)
    servers = load_config(config_path).kafka.bootstrap_servers
    with KafkaPipeline(config_path, servers, folder, environment_of=environment_of) as pipeline:
        pipeline.feed(values)
        pipeline.finish(values)
    assert set(pipeline.workers.exit_statuses.values()) == {0}
    log = pipeline.log_path.read_text()
    assert "resumes at offset" in log, "what is not there cannot hold the password"
    assert secret not in log


def test_the_pipeline_runs_over_sasl_ssl(
    configure: Configure, tmp_path: Path, password: str
) -> None:
    """Each role with another mechanism: each has a consumer and producers of both libraries."""
    mechanisms = dict(zip(ROLES, ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), strict=True))
    publishes_what_the_reference_does(
        configure(),
        tmp_path,
        password,
        lambda name: {MECHANISM: mechanisms[cast(Role, name.partition("-")[0])]},
    )


def test_the_pipeline_runs_with_a_client_certificate(
    configure: Configure, tmp_path: Path, cluster: Cluster
) -> None:
    config_path = configure(
        bootstrap_servers=cluster.tls_bootstrap_servers,
        security_protocol="SSL",
        username=None,
        client_cert_file=str(cluster.client_cert_file),
        client_key_file=str(cluster.client_key_file),
    )
    key_line = cluster.client_key_file.read_text().splitlines()[1]
    publishes_what_the_reference_does(config_path, tmp_path, key_line)


def test_the_password_may_be_in_a_file(
    configure: Configure, tmp_path: Path, cluster: Cluster, fluxplain: Command
) -> None:
    secret = tmp_path / "password"
    secret.write_text(cluster.password + "\n")
    config_path = configure(password_file=str(secret))
    assert fluxplain(config_path, "topics", "create").returncode == 0
    checked = fluxplain(config_path, "check")
    assert checked.returncode == 0, checked.stderr
    assert cluster.password not in checked.stdout + checked.stderr


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told_and_not_shown(
    configure: Configure, mechanism: str, fluxplain: Command
) -> None:
    config_path = configure(sasl_mechanism=mechanism)
    wrong = "not-the-password-42"
    for command, status in ((["check"], 2), (["worker", "--role", "model"], 78)):
        result = fluxplain(config_path, *command, **{PASSWORD: wrong})
        assert result.returncode == status
        told = one_line(result.stderr)
        assert "authentication failed" in told
        assert f"refused the username 'fluxplain' with {mechanism}" in told
        assert "kafka.password_file" in told
        assert "Traceback" not in told
        assert wrong not in result.stdout + result.stderr


def test_up_ends_when_the_broker_refuses(configure: Configure, fluxplain: Command) -> None:
    result = fluxplain(configure(username="nobody"), "up", **{PASSWORD: "x-y-z"})
    assert result.returncode == 78
    assert "refused the username 'nobody' with SCRAM-SHA-512" in one_line(result.stderr)


@pytest.mark.parametrize("wrong", ["authority", "name", "no client certificate"])
def test_tls_that_fails_is_told(
    configure: Configure,
    cluster: Cluster,
    password: str,
    wrong: str,
    fluxplain: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sasl, tls = cluster.sasl_bootstrap_servers, cluster.tls_bootstrap_servers
    settings: dict[str, dict[str, str | None]] = {
        # any certificate but the authority's
        "authority": {"ca_file": str(cluster.client_cert_file)},
        # the same address, by a name that the certificate is not for
        "name": {"bootstrap_servers": sasl.replace("127.0.0.1", "127.1")},
        "no client certificate": {
            "bootstrap_servers": tls,
            "security_protocol": "SSL",
            "username": None,
        },
    }
    config_path = configure(**settings[wrong])
    if wrong == "no client certificate":
        monkeypatch.delenv(PASSWORD)
    for command, status in ((["check"], 2), (["worker", "--role", "drift"], 78)):
        result = fluxplain(config_path, *command)
        assert result.returncode == status, result.stderr
        told = one_line(result.stderr)
        assert "TLS failed" in told
        assert "certificate" in told
        assert "Traceback" not in told
        assert password not in told


def test_a_protocol_that_the_broker_does_not_speak_is_told(
    configure: Configure, cluster: Cluster, fluxplain: Command
) -> None:
    config_path = configure(security_protocol="PLAINTEXT", username=None, ca_file=None)
    result = fluxplain(config_path, "check")
    assert result.returncode == 2
    told = one_line(result.stderr)
    assert f"no broker answers at {cluster.sasl_bootstrap_servers}" in told
    assert "over PLAINTEXT (kafka.security_protocol)" in told


@pytest.mark.timeout(600)  # two restarts of the broker, and of all workers
def test_credentials_refused_later_end_the_workers_and_new_ones_are_read(
    tmp_path: Path, prefix: str
) -> None:
    values = observations(120)
    config_path = write_config(tmp_path / "pipeline.toml", {**SETTINGS, "topics": topics(prefix)})
    secret = tmp_path / "password"
    with Cluster(tmp_path / "kafka", brokers=1, secure=True) as cluster:
        secret.write_text(cluster.password)
        environment = {
            "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": cluster.sasl_bootstrap_servers,
            "FLUXPLAIN_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
            "FLUXPLAIN_KAFKA__USERNAME": cluster.username,
            "FLUXPLAIN_KAFKA__PASSWORD_FILE": str(secret),
            "FLUXPLAIN_KAFKA__CA_FILE": str(cluster.ca_file),
            "FLUXPLAIN_HEALTH__STALL_S": "3",
        }
        servers = cluster.bootstrap_servers
        with KafkaPipeline(config_path, servers, tmp_path, environment=environment) as pipeline:
            workers = pipeline.workers
            pipeline.process(values[:60])
            change_password(cluster, "rotated-1", secret)
            pipeline.wait_until(lambda: len(dict(workers.deaths)) == 3, timeout_s=120)
            pipeline.process(values[60:])
            change_password(cluster, "rotated-2")
            with pytest.raises(WorkerRefusedError, match="exit status 78"):
                pipeline.wait_until(lambda: False, timeout_s=120)
        assert_same(pipeline.published, reference(pipeline.config, values))
    # 75 on a machine so slow that the broker does not answer in time
    assert {70} <= {status for _, status in workers.deaths} <= {70, 75}
    log = one_line(pipeline.log_path.read_text())
    assert "refused the username 'fluxplain' with SCRAM-SHA-512" in log
    for password in (cluster.password, "rotated-1", "rotated-2"):
        assert password not in log


def change_password(cluster: Cluster, password: str, secret: Path | None = None) -> None:
    """Change the user's password for SCRAM, and end the connections that had the old one.

    Into the file before the broker answers again: who comes with the old one then is refused.
    """
    set_password(cluster.bootstrap_servers, cluster.username, password)
    cluster.stop_broker(1)
    if secret is not None:
        secret.write_text(f"{password}\n")
    cluster.start_broker(1)


def one_line(text: str) -> str:
    return " ".join(text.split())
