"""The table ``[dashboard]``."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from fluxplain.config.base import Name, Port, Section, wrong
from fluxplain.config.stream_settings import Partition


class DashboardSettings(Section):
    """The live web page."""

    enabled: bool = True
    """Whether `fluxplain up` serves the page."""
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on. The page has no authentication: to reach it from other machines, put a
    proxy with authentication in front of it."""
    port: Port = 8777
    """Port to listen on; 0 takes any free one and prints it."""
    metrics_port: Port | None = None
    """Port at which the dashboard exports the lag of all consumer groups to Prometheus
    ([metrics](../README.md#metrics)), and nothing else; 0 takes any free one and prints it. By
    default the dashboard exports nothing."""
    names: list[Name] = []
    """Extra host names to accept, for example your proxy's. Requests for any other host are refused
    (protection against DNS rebinding)."""
    write: bool | None = None
    """Whether people may acknowledge changes and mute features on the page, for all to see. By
    default they may if `host` is this machine only: without authentication, whoever reaches the
    page could."""
    streams: Mapping[Partition, Annotated[str, Field(min_length=1, max_length=60)]] = {}
    """Names to show for streams, by the partition of `features`."""
    features: Mapping[Name, Annotated[str, Field(min_length=1, max_length=60)]] = {}
    """Names to show for features, groups and pairs: on the page, in `fluxplain watch`, in figures
    and in alerts. Published records keep the names of `[features]`."""
    units: Mapping[Name, Annotated[str, Field(min_length=1, max_length=20)]] = {}
    """Units of features, shown with their values."""

    @model_validator(mode="after")
    def _has_two_ports(self) -> Self:
        if self.port and self.metrics_port == self.port:
            taken = "the page listens there: dashboard.port is the same"
            raise wrong("metrics_port", self.metrics_port, taken)
        return self
