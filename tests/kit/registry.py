"""A schema registry over HTTP, as far as the pipeline asks it, that can also fail."""

import base64
import io
import json
import re
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import UUID

import fastavro

from fluxplain.config import RegistrySettings
from fluxplain.kafka.registry.codec import Decoder

Answer = tuple[int, Any]

NO_SCHEMA = 404, {"error_code": 40403, "message": "Schema not found"}


class RegistryServer:
    """Schemas in memory, behind an address of this machine.

    `failure` is answered whatever is asked, unless it is None; `asked` lists method and path of
    each request; `user` is the name and password that a request must have.
    """

    def __init__(self, user: tuple[str, str] | None = None) -> None:
        self._schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.failure: Answer | None = None
        self.is_read_only = False
        self.asked: list[str] = []
        self._user = user
        self._server = self._listening(0)
        self.url = f"http://127.0.0.1:{self._server.server_port}/registry"

    def add(self, subject: str, schema: Any, kind: str = "AVRO", **more: Any) -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self._register(
            subject, {"schema": text, "schemaType": kind, "references": [], **more}
        )

    def schema(self, id_: int) -> dict[str, Any]:
        return self._schemas[id_ - 1]

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def use_tls(self, certificate: Path) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    def start_again(self) -> None:
        """Listen again, at the same address, with the same schemas."""
        self._server = self._listening(self._server.server_port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def answer(self, method: str, path: str, body: Any, authorization: str | None) -> Answer:
        self.asked.append(f"{method} {path}")
        if self.failure is not None:
            return self.failure
        if self.is_read_only and path.endswith("/versions"):
            return 403, {"error_code": 40301, "message": "User is denied operation Write"}
        if self._user is not None:
            expected = base64.b64encode(":".join(self._user).encode()).decode()
            if authorization != f"Basic {expected}":
                return 401, {"error_code": 40101, "message": "Unauthorized"}
        for pattern, answer in self._routes.items():
            if found := re.fullmatch(f"/registry/{pattern}", path):
                return answer(self, body, *found.groups())
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _register(self, subject: str, schema: dict[str, Any]) -> int:
        if schema not in self._schemas:
            self._schemas.append(schema)
        id_ = self._schemas.index(schema) + 1
        if id_ not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(id_)
        return id_

    def _by_id(self, _body: Any, id_: str) -> Answer:
        known = 1 <= int(id_) <= len(self._schemas)
        return (200, self.schema(int(id_))) if known else NO_SCHEMA

    def _by_uuid(self, body: Any, uuid: str) -> Answer:
        return self._by_id(body, str(UUID(uuid).int))

    def _by_version(self, _body: Any, subject: str, version: str) -> Answer:
        return 200, self.schema(self.subjects[subject][int(version) - 1])

    def _found(self, body: Any, subject: str) -> Answer:
        ids = self.subjects.get(subject, [])
        found = [id_ for id_ in ids if self.schema(id_) == body]
        return (200, {"id": found[0], "subject": subject}) if found else NO_SCHEMA

    def _new(self, body: Any, subject: str) -> Answer:
        return 200, {"id": self._register(subject, body)}

    _routes: ClassVar[dict[str, Callable[..., Answer]]] = {
        "config": lambda _self, _body: (200, {"compatibilityLevel": "BACKWARD"}),
        r"schemas/ids/(\d+)": _by_id,
        r"schemas/guids/([\w-]+)": _by_uuid,
        r"subjects/([^/]+)": _found,
        r"subjects/([^/]+)/versions": _new,
        r"subjects/([^/]+)/versions/(\d+)": _by_version,
    }

    def _listening(self, port: int) -> ThreadingHTTPServer:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._handle("GET", None)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                self._handle("POST", json.loads(self.rfile.read(length)))

            def log_message(self, *_args: Any) -> None:
                pass

            def _handle(self, method: str, body: Any) -> None:
                path, _, _options = self.path.partition("?")
                status, answer = registry.answer(method, path, body, self.headers["Authorization"])
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", registry.url.replace("registry", "elsewhere"))
                if data.startswith(b"\x1f\x8b"):
                    self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server


def decoder_of(server: RegistryServer) -> Decoder:
    return Decoder(RegistrySettings(url=server.url))


def avro_of(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()
