"""Requests to a schema registry: confluent-kafka's client, within this project's limits.

Of the client only its requests are used. Its methods refuse answers with a rule or a compatibility
level that they do not know, and cache every answer forever. Its HTTP session reads answers of any
length and the password once, and trusts other authorities than the system, so it is replaced.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx2 as httpx
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError

from fluxplain.config import ConfigError, RegistrySettings
from fluxplain.config.secrets import trusting
from fluxplain.kafka.client import AccessError, BrokerError
from fluxplain.schemas import BadRecordError

TIMEOUT_S = 5.0
"""Request timeout; shorter than a worker's shutdown grace period."""

MAX_BYTES = 16 * 1024 * 1024
"""Longest answer that is read, in bytes."""

NOT_FOUND = {40401, 40402, 40403}
"""The registry's own error codes for an unknown subject, version and schema. Without such a code, a
404 may mean that there is no registry at this address."""

MOST_REFERENCES = 100
"""Largest number of schemas that a schema may refer to, directly or not."""

REFUSED = (401, 403, 404, 409, 422)
"""HTTP statuses after which a retry of a check or a registration is useless."""

T = TypeVar("T")


class RegistryError(BrokerError):
    """The registry gives no valid answer; a retry may help."""


class UnknownSchemaError(BadRecordError):
    """The registry has no such schema."""


class Registered(NamedTuple):
    """A schema: its kind (AVRO, JSON or PROTOBUF) and texts, with the referenced ones first."""

    kind: str
    texts: list[str]


class Registry:
    """A schema registry. Every method raises RegistryError if it does not answer."""

    def __init__(self, settings: RegistrySettings) -> None:
        """Raise ConfigError if the environment sets a proxy that cannot be used."""
        self.url = (settings.url or "").rstrip("/")
        self._settings = settings
        try:
            self._client = _client(self.url)
            self._session = self._client.session = _session(settings.ca_file)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"registry.url is {self.url!r}, but no client can be made: {error}"
            ) from None

    def check(self) -> None:
        """Raise AccessError if the registry refuses, or its address serves something else."""
        self._ask("config", refused=REFUSED)

    def schema(self, reference: int | UUID) -> Registered:
        """Return the schema with this id or UUID.

        Raises BadRecordError if it is unknown or refers to too many others.
        """
        if isinstance(reference, int):
            found = self._ask("schemas", "ids", reference, schema=reference)
        else:
            # 404: some registries know no UUIDs at all
            found = self._ask("schemas", "guids", reference, schema=reference, unknown=(404,))
        texts = [*self._references(found, set()), self._given(found, "schema", str)]
        return Registered(self._given(found, "schemaType", str, "AVRO"), texts)

    def register(self, subject: str, kind: str, text: str) -> int:
        """Return a schema's id, registering it if necessary; raise AccessError if refused.

        An already registered schema needs no right to write.
        """
        path = "subjects", subject
        sent = {"schema": text, "schemaType": kind, "references": []}
        try:
            try:
                found = self._ask(*path, sent=sent, schema=subject, refused=REFUSED)
            except UnknownSchemaError:
                found = self._ask(*path, "versions", sent=sent, refused=REFUSED)
        except AccessError as error:
            raise AccessError(f"cannot register the schema of {subject}: {error}") from None
        return self._given(found, "id", int)

    def _references(self, schema: Any, seen: set[tuple[str, int]]) -> Iterator[str]:
        """Yield the referenced schemas, each after those that it refers to."""
        for each in self._given(schema, "references", list, []):
            subject, version = self._given(each, "subject", str), self._given(each, "version", int)
            if (subject, version) in seen:
                continue
            seen.add((subject, version))
            if len(seen) > MOST_REFERENCES:
                raise BadRecordError(f"its schema refers to more than {MOST_REFERENCES} others")
            found = self._ask("subjects", subject, "versions", version, schema=subject)
            yield from self._references(found, seen)
            yield self._given(found, "schema", str)

    def _given(self, answer: Any, name: str, kind: type[T], default: T | None = None) -> T:
        value = answer.get(name) if isinstance(answer, dict) else None
        value = default if value is None else value
        if not isinstance(value, kind):
            raise self._error(f"gave an answer without {name}")
        return value

    def _ask(
        self,
        *path: Any,
        sent: dict[str, Any] | None = None,
        schema: Any = None,
        unknown: tuple[int, ...] = (),
        refused: tuple[int, ...] = (),
    ) -> dict[str, Any]:
        """Return the answer; `unknown` and `refused` are HTTP statuses with these meanings.

        `schema` names the schema that is asked for; without it, no error means that one is unknown.
        """
        self._log_in()
        try:
            url = "/".join(quote(str(part), safe="") for part in path)
            answer = self._client.get(url) if sent is None else self._client.post(url, sent)
        except SchemaRegistryError as error:
            raise self._failure(error, schema, unknown, refused) from None
        except (OSError, httpx.TransportError) as error:
            raise self._error(f"does not answer: {error or type(error).__name__}") from None
        except Exception as error:  # anything may listen at this address
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            raise self._error(f"gave an invalid answer: {problem[:500]}") from None
        if not isinstance(answer, dict):
            raise self._error("gave an invalid answer: no JSON object")
        return answer

    def _failure(
        self,
        error: SchemaRegistryError,
        schema: Any,
        unknown: tuple[int, ...],
        refused: tuple[int, ...],
    ) -> Exception:
        status, code, message = error.http_status_code, error.error_code, error.error_message
        if code == error.UNKNOWN or not isinstance(message, str):
            message = httpx.codes.get_reason_phrase(status)
        reason = f"{' '.join(message.split())[:500]} (HTTP status {status})"
        is_unknown = status in unknown or (isinstance(code, int) and code in NOT_FOUND)
        if schema is not None and is_unknown:
            return UnknownSchemaError(f"the schema registry has no schema {schema}: {reason}")
        if status in refused:
            return AccessError(f"the schema registry at {self.url} refuses: {reason}")
        return self._error(f"fails: {reason}")

    def _log_in(self) -> None:
        """Read the password again, since it may change."""
        if self._settings.username is not None:
            try:
                password = self._settings.get_password() or ""
                self._session.auth = self._settings.username, password
            except ValueError as error:
                raise RegistryError(f"registry.{error}") from None

    def _error(self, problem: str) -> RegistryError:
        return RegistryError(f"the schema registry at {self.url} {problem}")


def _client(url: str) -> Any:
    """Return confluent-kafka's HTTP client, whose own session trusts no server."""
    no_authorities = str(Path(__file__).parent)
    options = {"url": url, "max.retries": 0, "ssl.ca.location": no_authorities}
    return SchemaRegistryClient(options)._rest_client


def _session(ca_file: Path | None) -> httpx.Client:
    return httpx.Client(
        verify=trusting(ca_file),
        timeout=TIMEOUT_S,
        headers={"Accept-Encoding": "identity", "Connection": "close"},
        event_hooks={"response": [_limit_length]},
    )


class _Bounded(httpx.SyncByteStream):
    """The bytes of an answer; raises ValueError for more than MAX_BYTES."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        length = 0
        for chunk in self._stream:
            length += len(chunk)
            if length > MAX_BYTES:
                raise ValueError(f"more than {MAX_BYTES:,} bytes")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def _limit_length(response: httpx.Response) -> None:
    response.headers.pop("Content-Encoding", None)  # decompressed, a short answer may be long
    response.stream = _Bounded(response.stream)
