"""A receiver of alerts."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest

from fluxplain.schemas import Change


class Receiver:
    """Takes alerts; ``respond`` says what each, by its number from 0, is answered, and ``says``."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.got: list[tuple[dict[str, str], bytes]] = []
        """The headers and the content of each."""
        self.respond: Callable[[int], int] = lambda _n: 200
        self.says = b""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                alert = orjson.loads(content)
                change = Change.validated(alert["change"])
                assert self.headers["Idempotency-Key"] == change.event_id
                receiver.ids.append(change.id)
                receiver.got.append((dict(self.headers), content))
                self.send_response(receiver.respond(len(receiver.ids) - 1))
                self.end_headers()
                self.wfile.write(receiver.says)

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/secret-token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()
