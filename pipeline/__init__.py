"""Explains an online model with every record that it learns from, on Kafka or in Python."""

from typing import TYPE_CHECKING

from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.explain import (
        IncrementalPDP,
        IncrementalPFI,
        IncrementalReasons,
        IncrementalSAGE,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        explain=["IncrementalPDP", "IncrementalPFI", "IncrementalReasons", "IncrementalSAGE"],
    )

__version__ = "0.1.0"

__all__ = [
    "IncrementalPDP",
    "IncrementalPFI",
    "IncrementalReasons",
    "IncrementalSAGE",
    "__version__",
]
