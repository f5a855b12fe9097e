"""Tokens are reused, fetched again in time, and their endpoint's errors have a remedy."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from deploy.kafka.create import make_certificates
from fluxplain.config import Config
from fluxplain.kafka import tokens
from fluxplain.kafka.client import AccessError, BrokerError, client_settings, no_answer
from fluxplain.kafka.faust.app import credentials
from fluxplain.kafka.faust.connections import TokenProvider, connection_settings
from fluxplain.kafka.tokens import TokenError, TokenRefusedError, Tokens, fetch_token, shared_tokens
from tests.kit.loading import SECRET
from tests.kit.support import make_config
from tests.kit.token_endpoint import TokenEndpoint
from tests.kit.waiting import wait_until

NO_TOKEN = KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: HTTP")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not pause between attempts."""
    monkeypatch.setattr(tokens, "PAUSES_S", (0.0, 0.0))


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    """An endpoint with tokens for 100 seconds."""
    with TokenEndpoint("ada", SECRET, lifetime_s=100.0) as endpoint:
        yield endpoint


def settings(endpoint: TokenEndpoint, **kafka: Any) -> Config:
    return make_config(
        kafka={
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "username": "ada",
            "password": SECRET,
            "token_url": endpoint.url,
            **kafka,
        }
    )


class Clock:
    """A clock that is set by hand, relative to the real one at first."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


def test_a_token_is_fetched_again_after_most_of_its_lifetime(endpoint: TokenEndpoint) -> None:
    clock = Clock()
    own = Tokens(settings(endpoint, token_scope="a b").kafka, clock)
    token = own.get()
    clock.ahead_s = 70.0
    assert own.get() == token
    assert [form for _, form in endpoint.asked] == [
        {"grant_type": ["client_credentials"], "scope": ["a b"]}
    ]
    clock.ahead_s = 90.0
    own.get()
    wait_until(lambda: len(endpoint.asked) == 2, 20.0)


def test_a_valid_token_outlasts_an_endpoint_that_is_down(
    endpoint: TokenEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    own = Tokens(settings(endpoint).kafka, clock)
    token = own.get()
    endpoint.down = True
    clock.ahead_s = 90.0
    assert own.get() == token
    wait_until(lambda: "HTTP status 503; the last token is valid for" in caplog.text, 20.0)
    clock.ahead_s = 110.0
    with pytest.raises(TokenError, match="HTTP status 503"):
        own.get()


def test_an_endpoint_that_hangs_delays_nobody_with_a_valid_token(endpoint: TokenEndpoint) -> None:
    clock = Clock()
    own = Tokens(settings(endpoint).kafka, clock)
    token = own.get()
    clock.ahead_s = 90.0
    endpoint.answers.clear()
    assert [own.get() for _ in range(3)] == [token] * 3
    wait_until(lambda: endpoint.received == 2, 20.0)
    assert own.get() == token
    assert endpoint.received == 2, "it is asked once for all, and has not answered"
    endpoint.lifetime_s = 500.0
    endpoint.answers.set()
    wait_until(lambda: own.get() != token, 20.0)
    assert len(endpoint.asked) == 2


def test_a_token_that_expires_during_the_attempts_is_not_handed_out(
    endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, expired = Clock(), threading.Event()
    own = Tokens(settings(endpoint).kafka, clock)
    own.get()
    clock.ahead_s = 90.0
    endpoint.down = True

    def wait(_seconds: float) -> None:
        clock.ahead_s = 110.0
        expired.set()

    monkeypatch.setattr(time, "sleep", wait)
    own.get()
    assert expired.wait(20.0)
    with pytest.raises(TokenError, match="HTTP status 503"):
        own.get()
    assert "the last token is valid" not in caplog.text


@pytest.mark.parametrize("tls", [False, True])
def test_an_answer_that_comes_byte_by_byte_is_not_awaited(
    tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificates(tmp_path / "tls")
    monkeypatch.setattr(tokens, "REQUEST_S", 1.0)
    certificate = tmp_path / "tls" / "broker.pem" if tls else None
    trusted = {"token_ca_file": tmp_path / "tls" / "ca.pem"} if tls else {}
    with TokenEndpoint("ada", SECRET, certificate=certificate) as endpoint:
        endpoint.dripping = True
        with pytest.raises(TokenError, match="does not answer: timed out"):
            fetch_token(settings(endpoint, **trusted).kafka)
        wait_until(lambda: endpoint.broken, 20.0, what=lambda: "the connection ends")


def test_an_endpoint_that_fails_for_a_moment_is_asked_again(
    endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.down = True

    def wait(_seconds: float) -> None:
        endpoint.down = False

    monkeypatch.setattr(time, "sleep", wait)
    assert Tokens(settings(endpoint).kafka).get()


def test_threads_share_one_token(endpoint: TokenEndpoint) -> None:
    kafka = settings(endpoint).kafka
    threads = [threading.Thread(target=lambda: shared_tokens(kafka).get()) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(endpoint.asked) == 1


def test_a_wrong_secret_is_refused_at_once_and_never_shown(endpoint: TokenEndpoint) -> None:
    wrong = "not-the-secret"
    with pytest.raises(TokenRefusedError) as error:
        fetch_token(settings(endpoint, password=wrong).kafka)
    text = str(error.value)
    assert "refuses the client 'ada': invalid_client: no Basic *** (HTTP status 401)" in text
    assert "kafka.password_file" in text
    assert wrong not in text


@pytest.mark.parametrize(
    ("secret", "description"),
    [
        ("the-secret-of-ada", "x" * 274 + "the-secret-of-ada"),
        ("the  secret", "no client has the  secret"),
    ],
)
def test_no_part_of_the_secret_is_shown_however_the_error_is_shortened(
    endpoint: TokenEndpoint, secret: str, description: str
) -> None:
    endpoint.error = {"error": "invalid_client", "error_description": description}
    with pytest.raises(TokenRefusedError, match=r"\*\*\* \(HTTP status 400\)") as error:
        fetch_token(settings(endpoint, password=secret).kafka)
    assert "the" not in str(error.value).partition("invalid_client")[2].partition(" (HTTP")[0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"<html>", "it must be a JSON object"),
        (b"[]", "it must be a JSON object"),
        (b'{"token": "x"}', "there is no access_token"),
        (b'{"access_token": "opaque"}', "a JSON Web Token with exp and sub"),
        (b'{"access_token": "e30.eyJzdWIiOiJhIn0."}', "there is no exp"),
        (b'{"access_token": "e30.eyJleHAiOjk5OTk5OTk5OTl9."}', "there is no sub"),
        (b'{"access_token": "e30.eyJzdWIiOiJhIiwiZXhwIjoxfQ."}', "is this machine's clock right?"),
    ],
)
def test_an_answer_without_a_usable_token_is_told(
    endpoint: TokenEndpoint, answer: bytes, reason: str
) -> None:
    endpoint.answer = answer
    with pytest.raises(TokenRefusedError, match=reason.replace("?", r"\?")):
        fetch_token(settings(endpoint).kafka)


def test_the_same_settings_reach_both_libraries(endpoint: TokenEndpoint) -> None:
    config = settings(endpoint, token_scope="a b", token_extensions={"pool": "p-1", "x": "y"})
    own = client_settings(config)
    assert {key: value for key, value in own.items() if key.startswith("sasl.")} == {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "sasl.oauthbearer.client.id": "ada",
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.scope": "a+b",
        "sasl.oauthbearer.extensions": "pool=p-1,x=y",
    }
    faust: Any = credentials(config.kafka)
    provider = connection_settings(config.kafka)["sasl_oauth_token_provider"]
    for each in (faust.oauth_cb, provider):
        assert each.extensions() == {"pool": "p-1", "x": "y"}
        assert asyncio.run(each.token()).count(".") == 2
    assert len(endpoint.asked) == 1
    assert SECRET not in f"{config!r} {faust!r} {config.model_dump_json()}"


def test_over_tls_both_libraries_trust_the_authority_that_is_named(tmp_path: Path) -> None:
    make_certificates(tmp_path / "tls")
    ca, other = tmp_path / "tls" / "ca.pem", tmp_path / "tls" / "client.pem"
    with TokenEndpoint("ada", SECRET, certificate=tmp_path / "tls" / "broker.pem") as endpoint:
        config = settings(endpoint, token_ca_file=ca)
        assert fetch_token(config.kafka)
        admin = AdminClient(client_settings(config))
        wait_until(lambda: len(endpoint.asked) == 2, 20.0)
        del admin
        untrusted = settings(endpoint, token_ca_file=other)
        problems: list[KafkaError] = []
        admin = AdminClient({**client_settings(untrusted), "error_cb": problems.append})
        wait_until(lambda: bool(admin.poll(0.1) or problems), 20.0)
        error = no_answer(untrusted, problems)
    assert len(endpoint.asked) == 2
    assert "certificate verify failed (kafka.token_url; with https also kafka.token_ca" in str(
        error
    )


def test_to_aiokafka_a_missing_token_is_a_connection_that_failed(endpoint: TokenEndpoint) -> None:
    endpoint.down = True
    with pytest.raises(KafkaConnectionError, match="HTTP status 503"):
        asyncio.run(TokenProvider(settings(endpoint).kafka).token())


def test_the_endpoint_is_named_when_librdkafka_gets_no_token(endpoint: TokenEndpoint) -> None:
    config = settings(endpoint)
    assert f"no token from {endpoint.url}" in str(no_answer(config, [NO_TOKEN]))
    assert "no broker answers" in str(no_answer(config, []))
    endpoint.down = True
    silent = settings(endpoint, token_scope="x")  # has no token yet
    for error in (no_answer(config, [NO_TOKEN]), no_answer(silent, [])):
        assert not isinstance(error, AccessError), "a retry may help"
        assert isinstance(error, BrokerError)
        assert "HTTP status 503" in str(error)
    endpoint.down = False
    wrong = settings(endpoint, password="x")
    assert isinstance(no_answer(wrong, [NO_TOKEN]), AccessError)
    refused = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: invalid_token")
    error = no_answer(config, [refused])
    assert isinstance(error, AccessError)
    assert "refused the token of the client 'ada': SASL authentication error" in str(error)
