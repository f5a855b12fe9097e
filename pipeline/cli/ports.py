"""Checks the ports of workers before any of them starts."""

import socket

from fluxplain.config import Config, ConfigError

LARGEST = 65_535


def check_ports(settings: Config, workers: int) -> None:
    """Raise ``ConfigError`` unless this many workers of each replica can have a port of their own.

    With ``health.port = 0`` each takes a free one, and nothing is checked.
    """
    for port in worker_ports(settings, workers):
        if reason := why_busy(settings.health.host, port):
            raise ConfigError(
                f"{_given(settings, workers)}, but none can listen at {port}: {reason}; "
                "health.port = 0 takes free ports"
            )


def worker_ports(settings: Config, workers: int) -> range:
    """Return the ports of this many workers of each replica; none for ``health.port = 0``.

    Raises ``ConfigError`` if they exceed the largest port, or contain one of the dashboard's.
    """
    if not settings.health.port:
        return range(0)
    ports = _ports(settings, workers)
    if ports[-1] > LARGEST:
        raise ConfigError(f"{_given(settings, workers)}, but {LARGEST} is the largest")
    dashboard = settings.dashboard
    for key, port in (("port", dashboard.port), ("metrics_port", dashboard.metrics_port)):
        if dashboard.enabled and port in ports:
            raise ConfigError(f"{_given(settings, workers)}, but dashboard.{key} is {port}")
    return ports


def why_busy(host: str, port: int) -> str | None:
    """Return why nobody can listen at a port now; None if one can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return str(error.strerror)
    return None


def _ports(settings: Config, workers: int) -> range:
    first = settings.health.port
    return range(first, first + len(settings.replicas()) * workers)


def _given(settings: Config, workers: int) -> str:
    ports = _ports(settings, workers)
    return f"health.port is {ports[0]}, so the workers take the ports up to {ports[-1]}"
