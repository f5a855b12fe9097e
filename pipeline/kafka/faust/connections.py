"""How aiokafka's clients connect, for Faust and without it."""

from typing import Any

from fluxplain.config import KafkaSettings

CLIENT_ID = "client.id"
CLIENT_RACK = "client.rack"
"""Keys of `[kafka.client]` that also hold for aiokafka's clients; it has no equivalent of others,
or they are set by the worker."""


def connection_settings(kafka: KafkaSettings) -> dict[str, Any]:
    """Return the settings of an aiokafka client; they contain secrets."""
    client = kafka.passed_through()
    named = {"client_id": client[CLIENT_ID]} if CLIENT_ID in client else {}
    return {
        "bootstrap_servers": kafka.bootstrap_servers,
        "security_protocol": kafka.security_protocol,
        "ssl_context": kafka.tls_context(),
        **named,
        **_login(kafka),
    }


def _login(kafka: KafkaSettings) -> dict[str, Any]:
    if kafka.uses_sasl:
        return {
            "sasl_mechanism": kafka.mechanism,
            "sasl_plain_username": kafka.username,
            "sasl_plain_password": kafka.get_password(),
        }
    return {}
