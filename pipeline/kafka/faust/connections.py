"""How aiokafka's clients connect, for Faust and without it."""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from fluxplain.config import KafkaSettings
from fluxplain.kafka.tokens import TokenError, shared_tokens


class TokenProvider(AbstractTokenProvider):
    """Gives aiokafka the process's token; fetched in a thread, so that no event loop waits."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._tokens = shared_tokens(kafka)
        self._extensions = dict(kafka.token_extensions)

    async def token(self) -> str:
        """Return a valid token; raise what aiokafka takes for a failed connection, and retries."""
        try:
            return await asyncio.to_thread(self._tokens.get)
        except TokenError as error:
            raise KafkaConnectionError(str(error)) from None

    def extensions(self) -> Mapping[str, str]:
        """Return the SASL extensions to send with a token."""
        return self._extensions


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
    if kafka.uses_tokens:
        return {
            "sasl_mechanism": kafka.mechanism,
            "sasl_oauth_token_provider": TokenProvider(kafka),
        }
    if kafka.uses_sasl:
        return {
            "sasl_mechanism": kafka.mechanism,
            "sasl_plain_username": kafka.username,
            "sasl_plain_password": kafka.get_password(),
        }
    return {}
