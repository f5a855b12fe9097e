"""Client of a schema registry with Confluent's API, on Python's own HTTP.

``confluent_kafka.schema_registry`` would break promises: it reads answers of any size into memory,
caches every schema for ever (``cache.capacity`` limits other things), even an answer without one,
such as a proxy's ``{}``, which would turn good messages into dead letters, and it reads the
password only once. It needs 14 packages, for the six requests below.
"""

import base64
import json
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener
from uuid import UUID

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
"""HTTP statuses after which a retry of a registration is useless."""

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"

T = TypeVar("T")

Reference = int | UUID
"""A schema's id, or its UUID."""


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
        self._http = build_opener(HTTPSHandler(context=settings.tls_context()), _NoRedirects)

    def check(self) -> None:
        """Raise AccessError if the registry refuses, or its address serves something else."""
        self._ask("config", refused=(401, 403, 404))

    def schema(self, reference: Reference) -> Registered:
        """Return a schema; raise BadRecordError if it is unknown or refers to too many others."""
        if isinstance(reference, int):
            found = self._ask(f"schemas/ids/{reference}")
        else:
            # some registries know no UUIDs at all
            found = self._ask(f"schemas/guids/{reference}", unknown=(404,))
        texts = [*self._references(found, set()), self._field(found, "schema", str)]
        return Registered(found.get("schemaType", "AVRO"), texts)

    def register(self, subject: str, kind: str, text: str) -> int:
        """Return a schema's id, registering it if necessary; raise AccessError if refused.

        An already registered schema needs no right to write.
        """
        path, body = f"subjects/{quote(subject, safe='')}", {"schema": text, "schemaType": kind}
        try:
            try:
                answer = self._ask(path, body, refused=REFUSED)
            except UnknownSchemaError:
                answer = self._ask(f"{path}/versions", body, refused=REFUSED)
        except AccessError as error:
            raise AccessError(f"cannot register the schema of {subject}: {error}") from None
        return self._field(answer, "id", int)

    def _references(self, schema: dict[str, Any], seen: set[tuple[str, int]]) -> Iterator[str]:
        """Yield the referenced schemas, each after those that it refers to."""
        for each in schema.get("references") or ():
            subject, version = self._field(each, "subject", str), self._field(each, "version", int)
            if (subject, version) in seen:
                continue
            seen.add((subject, version))
            if len(seen) > MOST_REFERENCES:
                raise BadRecordError(f"its schema refers to more than {MOST_REFERENCES} others")
            found = self._ask(f"subjects/{quote(subject, safe='')}/versions/{version}")
            yield from self._references(found, seen)
            yield self._field(found, "schema", str)

    def _field(self, answer: Any, name: str, kind: type[T]) -> T:
        value = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(value, kind):
            raise self._error(f"gave an answer without {name}")
        return value

    def _ask(
        self,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        unknown: tuple[int, ...] = (),
        refused: tuple[int, ...] = (),
    ) -> dict[str, Any]:
        """Return the answer; `unknown` and `refused` are HTTP statuses with these meanings."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers() | ({} if data is None else {"Content-Type": CONTENT_TYPE})
        request = Request(f"{self.url}/{path}", data, headers)  # noqa: S310  the settings check it
        try:
            with self._http.open(request, timeout=TIMEOUT_S) as response:
                answer = json.loads(response.read(MAX_BYTES))
        except HTTPError as error:
            code, reason = _reason(error)
            if code in NOT_FOUND or error.code in unknown:
                raise UnknownSchemaError(f"the schema registry has no {path}: {reason}") from None
            if error.code in refused:
                raise AccessError(f"the schema registry at {self.url} refuses: {reason}") from None
            raise self._error(f"fails: {reason}") from None
        except (OSError, HTTPException) as error:
            cause = getattr(error, "reason", None) or error
            raise self._error(f"does not answer: {cause}") from None
        except (ValueError, RecursionError):  # the latter for deep nesting
            raise self._error("gave an answer that is not JSON") from None
        if not isinstance(answer, dict):
            raise self._error("gave an answer that is not a JSON object")
        return answer

    def _headers(self) -> dict[str, str]:
        """Return the headers of a request; reads the password again, since it may change."""
        headers = {"Accept": CONTENT_TYPE}
        if self._settings.username is not None:
            try:
                pair = f"{self._settings.username}:{self._settings.get_password()}".encode()
            except ValueError as error:
                raise RegistryError(f"registry.{error}") from None
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        return headers

    def _error(self, problem: str) -> RegistryError:
        return RegistryError(f"the schema registry at {self.url} {problem}")


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirections: another host must not receive the password."""

    def redirect_request(self, *_args: Any) -> None:
        """Keep the redirection as the answer, which is then an error."""


def _reason(error: HTTPError) -> tuple[int | None, str]:
    """Return the registry's own error code, if any, and its message in one line."""
    code, message = None, ""
    try:
        answer = json.loads(error.read(MAX_BYTES))
        code, message = answer["error_code"], str(answer["message"])
    except (OSError, HTTPException, ValueError, RecursionError, TypeError, KeyError):
        pass
    text = " ".join(message.split())[:500] or error.reason
    return code, f"{text} (HTTP status {error.code})"
