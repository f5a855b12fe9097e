"""A real broker with OAUTHBEARER: every client gets tokens, new ones in time, or says why not."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import ROLES
from tests.kit.kafka_pipeline import KafkaPipeline, assert_same, reference
from tests.kit.preloaded import Command
from tests.kit.settings import SETTINGS, Configure, topics, write_config
from tests.kit.streams import observations
from tests.kit.token_endpoint import TokenEndpoint, unsecured

pytestmark = pytest.mark.kafka

SECRET = "hush-7"
PASSWORD = "FLUXPLAIN_KAFKA__PASSWORD"
LIFETIME_S = 12

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

LISTENER = f"""
listener.name.sasl_ssl.oauthbearer.sasl.jaas.config={MODULE} required \
unsecuredLoginStringClaim_sub="broker";
listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms={LIFETIME_S * 1000}
"""
"""Takes tokens without a signature, and closes connections whose token has expired."""

PYTHON = "Python-urllib"
"""The user agent of Faust's clients; librdkafka has none."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that takes tokens over TLS."""
    cluster = Cluster(tmp_path_factory.mktemp("kafka"), brokers=1, secure=True)
    cluster.create()
    properties = cluster.folder / "broker-1" / "server.properties"
    enabled = "sasl.enabled.mechanisms="
    text = properties.read_text().replace(enabled, f"{enabled}OAUTHBEARER,")
    properties.write_text(text + LISTENER)
    with cluster:
        yield cluster


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    """A token endpoint for the pipeline."""
    with TokenEndpoint("pipeline", SECRET, LIFETIME_S) as endpoint:
        yield endpoint


@pytest.fixture
def configure(
    cluster: Cluster,
    endpoint: TokenEndpoint,
    tmp_path: Path,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Configure:
    """Writes settings with topics of their own, and with tokens."""
    monkeypatch.setenv(PASSWORD, SECRET)

    def write(**kafka: Any) -> Path:
        settings = {
            "bootstrap_servers": cluster.sasl_bootstrap_servers,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "username": "pipeline",
            "token_url": endpoint.url,
            "token_scope": "kafka read",
            "token_extensions": {"logicalCluster": "lkc-1"},
            "ca_file": str(cluster.ca_file),
            "client": {"client.id": "pipeline", "client.rack": "a"},
            **kafka,
        }
        tables = {**SETTINGS, "kafka": settings, "topics": topics(prefix)}
        return write_config(tmp_path / "fluxplain.toml", tables)

    return write


@pytest.mark.timeout(300)
def test_the_pipeline_outlives_its_tokens(
    configure: Configure, cluster: Cluster, endpoint: TokenEndpoint, tmp_path: Path
) -> None:
    values = observations(200)

    def asked() -> int:
        return sum(agent.startswith(PYTHON) for agent, _ in endpoint.asked)

    pipeline = KafkaPipeline(configure(), cluster.sasl_bootstrap_servers, tmp_path)
    endpoint.down = True
    with pipeline:
        waiting = "the token endpoint .* fails: HTTP status 503; waiting for it"
        pipeline.wait_until(lambda: len(re.findall(waiting, pipeline.log)) == len(ROLES))
        endpoint.down = False
        pipeline.process(values[:100])
        before, librdkafka = asked(), len(endpoint.asked) - asked()
        starts = pipeline.workers.starts(*ROLES)
        assert before >= len(pipeline.workers.exit_statuses)
        pipeline.wait_until(lambda: asked() >= before + 3, timeout_s=120)
        assert len(endpoint.asked) - asked() > librdkafka, "its clients get new ones too"
        pipeline.process(values[100:])
        assert not pipeline.workers.deaths
        assert pipeline.workers.starts(*ROLES) == starts, "no partition moves"
        assert_same(pipeline.published, reference(pipeline.config, values))
    log = pipeline.log_path.read_text()
    assert SECRET not in log
    assert {form["scope"][0] for _, form in endpoint.asked} == {"kafka read"}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("secret", "refuses the client 'pipeline': invalid_client: no Basic *** (HTTP status 401)"),
        ("down", "fails: HTTP status 503"),
        ("gone", "does not answer: Connection refused (kafka.token_url;"),
        ("token", "gives no token that can be used: there is no exp"),
    ],
)
def test_what_is_wrong_with_tokens_is_told_in_one_line(
    configure: Configure,
    endpoint: TokenEndpoint,
    fluxplain: Command,
    monkeypatch: pytest.MonkeyPatch,
    wrong: str,
    expected: str,
) -> None:
    secret, url = SECRET, endpoint.url
    if wrong == "secret":
        secret = "not-the-secret-42"
    elif wrong == "down":
        endpoint.down = True
    elif wrong == "gone":
        url = "http://127.0.0.1:1/token"
    else:
        endpoint.answer = b'{"access_token": "e30.eyJzdWIiOiJhIn0."}'
    config_path = configure(token_url=url)
    result = fluxplain(config_path, "check", **{PASSWORD: secret})
    assert result.returncode == 2
    [line] = [line for line in result.stderr.splitlines() if line.strip()]
    assert f"the token endpoint {url} {expected}" in line
    assert secret not in result.stdout + result.stderr
    if wrong in {"secret", "token"}:
        worker = fluxplain(config_path, "worker", "--role", "drift", **{PASSWORD: secret})
        assert worker.returncode == 78
        assert expected in " ".join(worker.stderr.split())


def test_a_token_that_the_broker_refuses_is_told(
    configure: Configure, endpoint: TokenEndpoint, fluxplain: Command
) -> None:
    token = unsecured({"sub": "pipeline", "iat": 9_000_000_000, "exp": 9_900_000_000})
    endpoint.answer = orjson.dumps({"access_token": token})
    for command, status in ((["check"], 2), (["worker", "--role", "drift"], 78)):
        result = fluxplain(configure(), *command)
        assert result.returncode == status
        assert "refused the token of the client 'pipeline'" in " ".join(result.stderr.split())
