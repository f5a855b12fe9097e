"""Ports that nobody else gets meanwhile."""

import random
import socket
from contextlib import ExitStack, suppress


def free_ports(count: int) -> int:
    """Return the first of some free ports in a row, below those that connections get."""
    while True:
        first = random.SystemRandom().randrange(10_000, 32_000)
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
