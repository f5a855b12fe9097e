"""Models of other libraries behind River's one-record interface.

The factories' arguments can be written in a TOML file: see ``deploy/docs/models.md``.
"""

from typing import TYPE_CHECKING

from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.models.encoder import Encoder
    from fluxplain.models.factories import from_river
    from fluxplain.models.scores import FaultClassifier, as_asked, minus_score
    from fluxplain.models.sklearn_models import from_sklearn
    from fluxplain.models.torch_models import from_torch
else:
    __getattr__, __dir__ = lazy(
        __name__,
        encoder=["Encoder"],
        factories=["from_river"],
        scores=["FaultClassifier", "as_asked", "minus_score"],
        sklearn_models=["from_sklearn"],
        torch_models=["from_torch"],
    )

__all__ = [
    "Encoder",
    "FaultClassifier",
    "as_asked",
    "from_river",
    "from_sklearn",
    "from_torch",
    "minus_score",
]
