"""Checks the ports of workers before any of them starts."""

import socket

from fluxplain.config import Config, ConfigError

LARGEST = 65_535


def check_ports(settings: Config, workers: int) -> None:
    """Raise ``ConfigError`` unless this many workers of each replica can have a port of their own.

    With ``health.port = 0`` each takes a free one, and nothing is checked.
    """
    first, host = settings.health.port, settings.health.host
    last = first + len(settings.replicas()) * workers - 1
    if not first:
        return
    given = f"health.port is {first}, so the workers take the ports up to {last}"
    if last > LARGEST:
        raise ConfigError(f"{given}, but {LARGEST} is the largest")
    if settings.dashboard.enabled and first <= settings.dashboard.port <= last:
        raise ConfigError(f"{given}, but dashboard.port is {settings.dashboard.port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in range(first, last + 1):
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                raise ConfigError(
                    f"{given}, but none can listen at {port}: {error.strerror}; "
                    "health.port = 0 takes free ports"
                ) from None
