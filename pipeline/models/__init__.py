"""Models of other libraries, made to be learned and asked as River's are.

Each factory takes what a table of a TOML file can say: see ``deploy/docs/models.md``.
"""

from typing import TYPE_CHECKING

from pipeline.lazy import lazy

if TYPE_CHECKING:
    from pipeline.models.encoder import Encoder
    from pipeline.models.scores import FaultClassifier, as_asked, minus_score, scored, title
    from pipeline.models.sklearn_models import from_sklearn
    from pipeline.models.steps import from_river
    from pipeline.models.torch_models import from_torch
else:
    __getattr__, __dir__ = lazy(
        __name__,
        encoder=["Encoder"],
        scores=["FaultClassifier", "as_asked", "minus_score", "scored", "title"],
        sklearn_models=["from_sklearn"],
        steps=["from_river"],
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
    "scored",
    "title",
]
