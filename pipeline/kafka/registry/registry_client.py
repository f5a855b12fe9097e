"""Requests to a schema registry: confluent-kafka's client, within this project's limits.

On its own the client reads answers of any length, caches every answer forever (even one without a
schema, such as a proxy's ``{}``), and reads the password once. So its HTTP session refuses long
answers, and after each request its cache is cleared: the decoder has one with a limit.
"""

import ssl
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import httpx2 as httpx
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from fluxplain.config import RegistrySettings
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
        self.url = (settings.url or "").rstrip("/")
        self._settings = settings
        system = ssl.get_default_verify_paths()
        authorities = settings.ca_file or system.cafile or system.capath
        self._client = SchemaRegistryClient(
            {
                "url": self.url,
                "timeout": TIMEOUT_S,
                "max.retries": 0,
                "ssl.ca.location": authorities and str(authorities),
            }
        )
        self._session = self._client._rest_client.session
        self._session.headers.update({"Accept-Encoding": "identity", "Connection": "close"})
        self._session.event_hooks = {"response": [_limit_length]}

    def check(self) -> None:
        """Raise AccessError if the registry refuses, or its address serves something else."""
        self._ask(self._client.get_config, refused=REFUSED)

    def schema(self, reference: int | UUID) -> Registered:
        """Return the schema with this id or UUID.

        Raises BadRecordError if it is unknown or refers to too many others.
        """
        if isinstance(reference, int):
            found = self._ask(self._client.get_schema, reference)
        else:
            # 404: some registries know no UUIDs at all
            found = self._ask(self._client.get_schema_by_guid, str(reference), unknown=(404,))
        texts = [*self._references(found, set()), self._given(found.schema_str, str, "schema")]
        return Registered(found.schema_type, texts)

    def register(self, subject: str, kind: str, text: str) -> int:
        """Return a schema's id, registering it if necessary; raise AccessError if refused.

        An already registered schema needs no right to write.
        """
        asked = subject, Schema(text, kind)
        try:
            try:
                found = self._ask(self._client.lookup_schema, *asked, refused=REFUSED)
            except UnknownSchemaError:
                register = self._client.register_schema_full_response
                found = self._ask(register, *asked, refused=REFUSED)
        except AccessError as error:
            raise AccessError(f"cannot register the schema of {subject}: {error}") from None
        return self._given(found.schema_id, int, "id")

    def _references(self, schema: Any, seen: set[tuple[str, int]]) -> Iterator[str]:
        """Yield the referenced schemas, each after those that it refers to."""
        for each in schema.references:
            place = (
                self._given(each.subject, str, "subject"),
                self._given(each.version, int, "version"),
            )
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > MOST_REFERENCES:
                raise BadRecordError(f"its schema refers to more than {MOST_REFERENCES} others")
            found = self._ask(self._client.get_version, *place).schema
            yield from self._references(found, seen)
            yield self._given(found.schema_str, str, "schema")

    def _given(self, value: Any, kind: type[T], name: str) -> T:
        if not isinstance(value, kind):
            raise self._error(f"gave an answer without {name}")
        return value

    def _ask(
        self,
        request: Callable[..., Any],
        *asked: Any,
        unknown: tuple[int, ...] = (),
        refused: tuple[int, ...] = (),
    ) -> Any:
        """Return the answer; `unknown` and `refused` are HTTP statuses with these meanings."""
        self._log_in()
        try:
            return request(*asked)
        except SchemaRegistryError as error:
            raise self._failure(error, asked, unknown, refused) from None
        except (OSError, httpx.TransportError) as error:
            raise self._error(f"does not answer: {error or type(error).__name__}") from None
        except Exception as error:  # anything may listen at this address
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            raise self._error(f"gave an invalid answer: {problem[:500]}") from None
        finally:
            self._client.clear_caches()

    def _failure(
        self,
        error: SchemaRegistryError,
        asked: tuple[Any, ...],
        unknown: tuple[int, ...],
        refused: tuple[int, ...],
    ) -> Exception:
        status, code = error.http_status_code, error.error_code
        message = (
            error.error_message if code != error.UNKNOWN else httpx.codes.get_reason_phrase(status)
        )
        reason = f"{' '.join(str(message).split())[:500]} (HTTP status {status})"
        if code in NOT_FOUND or status in unknown:
            return UnknownSchemaError(f"the schema registry has no schema {asked[0]}: {reason}")
        if status in refused:
            return AccessError(f"the schema registry at {self.url} refuses: {reason}")
        return self._error(f"fails: {reason}")

    def _log_in(self) -> None:
        """Read the password again, since it may change."""
        if self._settings.username is not None:
            try:
                self._session.auth = self._settings.username, self._settings.get_password()
            except ValueError as error:
                raise RegistryError(f"registry.{error}") from None

    def _error(self, problem: str) -> RegistryError:
        return RegistryError(f"the schema registry at {self.url} {problem}")


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
