"""The table ``[health]``."""

from typing import Annotated

from pydantic import Field

from fluxplain.config.base import Port, Section


class HealthSettings(Section):
    """Each worker's health endpoint and watchdog."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address that `/healthz`, `/readyz` and `/metrics` listen on."""
    port: Port = 0
    """Port to listen on; 0 takes any free one and logs it. `fluxplain up` gives its n-th worker
    `port` + n − 1."""
    stall_s: Annotated[float, Field(ge=1.0, le=86400.0)] = 60.0
    """Seconds without progress, while messages wait and the broker answers, after which a worker
    ends itself. Must be longer than the model ever needs for one observation."""
