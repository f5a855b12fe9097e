"""Finds features that resemble even the old records from which their replacements come."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluxplain.config import Config
from fluxplain.evaluate import Observation
from fluxplain.explain.storage.autocorrelation import LONGEST_SPAN, Autocorrelations
from fluxplain.explain.storage.delay import as_number, longest_wait
from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHOD_NAMES, Method
from fluxplain.stages.intake.sample import Sample

TOO_LONG = 0.3
"""Largest sum of autocorrelations, as a share of the age, that counts as harmless.

Where autocorrelations fall exponentially, iPFI of a linear model is about a tenth too small there.
"""

LEAST_BLOCKS = 3
"""Blocks that tell the sums: with fewer, a single shift of the values would look like them."""


class LongDependence:
    """Compares the sums of the features' autocorrelations with an age of replacements, in records.

    Sums are known after about 15 times the ``age``. Spans are bounded, so of old replacements only
    every second, third, … record counts.

    Examples
    --------
    >>> rng, value, dependence = np.random.default_rng(1), 0.0, LongDependence(("a", "b"), age=500)
    >>> for _ in range(8_000):
    ...     value += rng.normal()
    ...     dependence.update({"a": value, "b": rng.normal()})
    >>> [*dependence.too_long()]
    ['a']
    """

    def __init__(self, features: tuple[str, ...], age: int) -> None:
        self._features = features
        self._step = -(-age // LONGEST_SPAN)
        self._autocorrelations = Autocorrelations(len(features), age // self._step)
        self._seen = 0

    def update(self, x: Observation) -> None:
        """Take the next observation."""
        self._seen += 1
        if self._seen % self._step == 0:
            self._autocorrelations.update(np.array([as_number(x[f]) for f in self._features]))

    def too_long(self) -> dict[str, int]:
        """Return features with too long sums → sum of autocorrelations, in records.

        If values resemble each other for much longer than the age, the sum is estimated too small.
        """
        known = self._autocorrelations
        most = TOO_LONG * known.span
        if known.blocks < LEAST_BLOCKS or known.largest <= most:
            return {}
        sums = zip(self._features, known.sums.tolist(), strict=True)
        return {feature: round(n * self._step) for feature, n in sums if n > most}


class AutocorrelationWatch:
    """Says once of each method that its importances may be too small.

    Methods without replacements are left out, and so are those with a uniform sample: records that
    resemble the newest one become ever fewer there.
    """

    def __init__(self, config: Config) -> None:
        used = {method for name in config.explained for method in config.methods_of(name)}
        tables = {method: config.explain.of(method) for method in config.explain.methods}
        self._sizes: dict[Method, int] = {
            method: table.reservoir_size
            for method, table in tables.items()
            if method in used
            and hasattr(table, "reservoir_size")
            and getattr(table, "sampler", None) != "uniform"
        }
        self._by_size = {
            size: LongDependence(tuple(config.features), size + longest_wait(size))
            for size in {*self._sizes.values()}
        }

    def update(self, x: Observation) -> Mapping[Method, str]:
        """Take the next observation; return the warnings that are new."""
        warnings: dict[Method, str] = {}
        for size, dependence in [*self._by_size.items()]:
            dependence.update(x)
            found = dependence.too_long()
            if found:
                methods = [method for method, own in self._sizes.items() if own == size]
                warnings |= {method: _warning(method, found, size) for method in methods}
                del self._by_size[size]
        return warnings

    def notices(self, stream: str, sample: Sample) -> list[Change]:
        """Take the next observation of a stream; return the warnings that are new, as records."""
        about: dict[str, Any] = {"stream": stream, "seq": sample.seq, "ts": sample.ts}
        return [
            Change.notice(kind="autocorrelation", **about, method=method, detail=text)
            for method, text in self.update(sample.x).items()
        ]


def _warning(method: Method, found: Mapping[str, int], size: int) -> str:
    name = max(found, key=lambda each: found[each])
    others = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    return (
        f"{METHOD_NAMES[method]}: {name}{others} resembles its own past for so long (its "
        f"autocorrelations add up to at least {found[name]:,} records) that importances may be too "
        f"small. Raise reservoir_size, now {size:,}"
    )
