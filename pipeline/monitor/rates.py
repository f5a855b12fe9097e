"""Which smoothing rate is shown where explanations have several."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.config import Config


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates that are wanted.

    Attributes
    ----------
    common
        Of every stream; None for the one that comes first.
    own
        Stream → another one.
    """

    common: float | None = None
    own: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def first(cls, config: Config) -> "Rates":
        """Return the first rate of each stream."""
        own = {name: each.explain.alphas[0] for name, each in config.own_streams.items()}
        return cls(config.explain.alphas[0], own)

    def of(self, stream: str | None) -> float | None:
        """Return the rate of a stream."""
        return self.common if stream is None else self.own.get(stream, self.common)
