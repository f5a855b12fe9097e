"""A receiver of alerts."""

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest


class Receiver:
    """Takes alerts; ``respond`` says what each, by its number from 0, is answered."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.respond: Callable[[int], int] = lambda _n: 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                alert = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.headers["Idempotency-Key"] == alert["change"]["id"]
                receiver.ids.append(alert["change"]["id"])
                self.send_response(receiver.respond(len(receiver.ids) - 1))
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/secret-token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def wait(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
