"""HTTP requests that end in time: urllib's timeout is for each address, and for each read."""

import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import TypeVar

Result = TypeVar("Result")


def in_thread(call: Callable[[], Result]) -> "Future[Result]":
    """Return the future result of a call in a thread of its own, which no exit waits for."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def handlers(context: ssl.SSLContext) -> tuple[urllib.request.BaseHandler, ...]:
    """Return urllib's handlers whose connections end a request's timeout after they are made."""
    return _Handler(), _TlsHandler(context)


class _Connection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        # a copy: TLS takes the socket over
        timer = threading.Timer(self.timeout or 0.0, _end, [self.sock.dup()])
        timer.daemon = True
        timer.start()


class _TlsConnection(HTTPSConnection, _Connection):
    """``HTTPSConnection`` calls ``_Connection.connect`` before its handshake."""


def _end(connection: socket.socket) -> None:
    with connection, suppress(OSError):  # it has ended already
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_Connection, request)


class _TlsHandler(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._own_context = context

    def https_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_TlsConnection, request, context=self._own_context)
