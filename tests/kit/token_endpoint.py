"""A token endpoint of OAuth, whose tokens a broker with unsecured tokens accepts."""

import base64
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs

import orjson


def unsecured(claims: dict[str, Any]) -> str:
    """Return a JSON Web Token without a signature."""
    parts = (base64.urlsafe_b64encode(orjson.dumps(each)) for each in ({"alg": "none"}, claims))
    return ".".join(part.rstrip(b"=").decode() for part in parts) + "."


class TokenEndpoint:
    """Issues tokens to one client by the client credentials grant; with a certificate over TLS.

    ``lifetime_s`` is that of the tokens; ``down`` makes it answer 503, ``answer`` with a body, and
    ``error`` 400 with one. ``answers`` is cleared to hold answers back, and ``dripping`` sends them
    byte by byte, in seconds.
    """

    def __init__(
        self,
        client_id: str,
        secret: str,
        lifetime_s: float = 3600.0,
        certificate: Path | None = None,
    ) -> None:
        self.lifetime_s = lifetime_s
        self.down = False
        self.answer: bytes | None = None
        self.error: dict[str, str] | None = None
        self.dripping = False
        self.answers = threading.Event()
        self.answers.set()
        self.received = 0
        """Number of requests, also of those that are held back."""
        self.broken = 0
        """Number of answers whose reader did not take all."""
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        """The user agent and the form of each request that was answered with a token."""
        self._login = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        endpoint, self._client_id = self, client_id

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                agent = self.headers["User-Agent"] or ""
                endpoint.received += 1
                endpoint.answers.wait()
                status, answer = endpoint._respond(self.headers["Authorization"], agent, body)
                self.send_response(status)
                if endpoint.dripping:
                    self._drip()
                self.send_header("Content-Length", str(len(answer)))
                self.send_header("Content-Type", "application/json")  # librdkafka insists on it
                self.end_headers()
                self.wfile.write(answer)

            def _drip(self) -> None:
                self.flush_headers()
                try:
                    for byte in b"X-Slow: " + b"x" * 100 + b"\r\n":
                        self.wfile.write(bytes([byte]))
                        time.sleep(0.05)
                except OSError:
                    endpoint.broken += 1

            def log_message(self, *_args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/oauth2/token"

    def _respond(self, login: str, agent: str, body: str) -> tuple[int, bytes]:
        if self.down:
            return 503, b""
        if self.error is not None:
            return 400, orjson.dumps(self.error)
        if login != f"Basic {self._login}":
            words = {"error": "invalid_client", "error_description": f"no {login}"}
            return 401, orjson.dumps(words)
        form = parse_qs(body)
        self.asked.append((agent, form))
        now = time.time()
        claims = {
            "sub": self._client_id,
            "iat": int(now),
            "exp": int(now + self.lifetime_s),
            "scope": form.get("scope", ["kafka"])[0],
        }
        token = {"access_token": unsecured(claims), "token_type": "Bearer"}
        return 200, orjson.dumps(token) if self.answer is None else self.answer

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
