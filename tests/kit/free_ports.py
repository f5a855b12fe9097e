"""Ports that nobody else gets meanwhile."""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress


def free_ports(count: int) -> int:
    """Return the first of some free ports in a row, below those that connections get."""
    while True:
        first = random.SystemRandom().randrange(10_000, 32_000)
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


@contextmanager
def last_port_taken(count: int) -> Iterator[int]:
    """Give the first of some ports in a row, of which somebody listens at the last only.

    A port that the system chooses will not do: others that it chose may be right beside it.
    """
    first = free_ports(count)
    with socket.create_server(("127.0.0.1", first + count - 1)):
        yield first
