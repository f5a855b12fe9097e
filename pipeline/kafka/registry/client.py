"""Asks the schema registry; what goes wrong with it is one line, for people.

With Python's own HTTP: the client that comes with confluent-kafka brings a dozen packages, for the
six questions that are asked here.
"""

import base64
import json
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

from pipeline.kafka.client import AccessError, BrokerError
from pipeline.kafka.registry.settings import RegistrySettings
from pipeline.kafka.registry.wire import Reference
from schemas import BadRecordError

TIMEOUT_S = 5.0
"""Of a question: less than a worker has that is to stop."""

MAX_BYTES = 16 * 1024 * 1024
"""Of an answer."""

NOT_FOUND = {40401, 40402, 40403}
"""The registry's own codes, of a subject, a version and a schema; without one of them, what is not
found may be the registry."""

MOST_REFERENCES = 100
"""Schemas that a schema may refer to, directly or not."""

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


T = TypeVar("T")


class RegistryError(BrokerError):
    """The registry does not answer, or not as one does: it may, later."""


class UnknownSchemaError(BadRecordError):
    """The registry has no such schema."""


class Registered(NamedTuple):
    """A schema.

    Attributes
    ----------
    kind
        ``"AVRO"``, ``"JSON"`` or ``"PROTOBUF"``.
    texts
        Those that it refers to, and then its own.
    """

    kind: str
    texts: list[str]


class Registry:
    """A schema registry with Confluent's API.

    Parameters
    ----------
    settings
        Where it is; ``url`` is set.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self.url = (settings.url or "").rstrip("/")
        self._settings = settings
        self._opener = _opener(settings)

    def check(self) -> None:
        """Ask whether there is a registry.

        Raises
        ------
        AccessError
            If it refuses, or there is something else.
        RegistryError
            If it does not answer.
        """
        self._ask("config", refused=(401, 403, 404))

    def schema(self, reference: Reference) -> Registered:
        """Return a schema.

        Raises
        ------
        UnknownSchemaError
            If there is none.
        BadRecordError
            If it refers to too many others.
        RegistryError
            If the registry does not answer.
        """
        if isinstance(reference, int):
            found = self._ask(f"schemas/ids/{reference}")
        else:
            # some registries know no UUIDs at all
            found = self._ask(f"schemas/guids/{reference}", unknown=(404,))
        texts = [*self._references(found, set()), self._part(found, "schema", str)]
        return Registered(found.get("schemaType", "AVRO"), texts)

    def register(self, subject: str, kind: str, text: str) -> int:
        """Register a schema, unless it is there, and return its id.

        If it is there, no right to write is needed.

        Raises
        ------
        AccessError
            If the registry refuses it.
        RegistryError
            If the registry does not answer.
        """
        path, body = f"subjects/{quote(subject, safe='')}", {"schema": text, "schemaType": kind}
        refused = (401, 403, 404, 409, 422)
        try:
            try:
                answer = self._ask(path, body, refused=refused)
            except UnknownSchemaError:
                answer = self._ask(f"{path}/versions", body, refused=refused)
        except AccessError as error:
            raise AccessError(f"cannot register the schema of {subject}: {error}") from None
        return self._part(answer, "id", int)

    def _references(self, schema: dict[str, Any], seen: set[tuple[str, int]]) -> Iterator[str]:
        """Yield what a schema refers to, each behind what it refers to itself."""
        for each in schema.get("references") or ():
            place = self._part(each, "subject", str), self._part(each, "version", int)
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > MOST_REFERENCES:
                raise BadRecordError(f"its schema refers to more than {MOST_REFERENCES} others")
            subject, version = place
            found = self._ask(f"subjects/{quote(subject, safe='')}/versions/{version}")
            yield from self._references(found, seen)
            yield self._part(found, "schema", str)

    def _part(self, answer: Any, name: str, kind: type[T]) -> T:
        part = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(part, kind):
            raise RegistryError(f"the schema registry at {self.url} answers without {name}")
        return part

    def _ask(
        self,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        unknown: tuple[int, ...] = (),
        refused: tuple[int, ...] = (),
    ) -> dict[str, Any]:
        """Return the answer.

        Parameters
        ----------
        path, body
            What to ask; with a body, to send.
        unknown, refused
            HTTP's status of an answer that there is no such schema, and of one after which there is
            nothing to try again.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers() | ({} if data is None else {"Content-Type": CONTENT_TYPE})
        request = Request(f"{self.url}/{path}", data, headers)  # noqa: S310  the settings check it
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                answer = json.loads(response.read(MAX_BYTES))
        except HTTPError as error:
            code, told = _told(error)
            if code in NOT_FOUND or error.code in unknown:
                raise UnknownSchemaError(f"the schema registry has no {path}: {told}") from None
            if error.code in refused:
                raise AccessError(f"the schema registry at {self.url} refuses: {told}") from None
            raise RegistryError(f"the schema registry at {self.url} fails: {told}") from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise RegistryError(
                f"the schema registry at {self.url} does not answer: {reason}"
            ) from None
        except (ValueError, RecursionError):  # of deep nesting
            raise RegistryError(f"the schema registry at {self.url} answers no JSON") from None
        if not isinstance(answer, dict):
            raise RegistryError(f"the schema registry at {self.url} answers no JSON object")
        return answer

    def _headers(self) -> dict[str, str]:
        """Return those of any question; the password may be another by now."""
        headers = {"Accept": CONTENT_TYPE}
        if self._settings.username is not None:
            try:
                pair = f"{self._settings.username}:{self._settings.get_password()}".encode()
            except ValueError as error:
                raise RegistryError(f"registry.{error}") from None
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        return headers


class _NoRedirects(HTTPRedirectHandler):
    """Somebody else is not to be told the password."""

    def redirect_request(self, *_args: Any) -> None:
        """Take a redirection for what it is: no answer."""


def _opener(settings: RegistrySettings) -> OpenerDirector:
    return build_opener(HTTPSHandler(context=settings.tls_context()), _NoRedirects)


def _told(error: HTTPError) -> tuple[int | None, str]:
    """Return the registry's own code, if it gave one, and what it says."""
    code, message = None, ""
    try:
        answer = json.loads(error.read(MAX_BYTES))
        code, message = answer["error_code"], str(answer["message"])
    except (OSError, HTTPException, ValueError, RecursionError, TypeError, KeyError):
        pass
    said = " ".join(message.split())[:500] or error.reason
    return code, f"{said} (HTTP status {error.code})"
