"""River's forests as arrays: the same parameters and numbers, in less time."""

from typing import TYPE_CHECKING

from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.forest.arf_classifier import ARFClassifier
    from fluxplain.forest.conversion import as_arrays, as_river
    from fluxplain.forest.names import UnsupportedError
    from fluxplain.forest.tree_classifier import HoeffdingTreeClassifier
else:
    __getattr__, __dir__ = lazy(
        __name__,
        arf_classifier=["ARFClassifier"],
        conversion=["as_arrays", "as_river"],
        names=["UnsupportedError"],
        tree_classifier=["HoeffdingTreeClassifier"],
    )

__all__ = [
    "ARFClassifier",
    "HoeffdingTreeClassifier",
    "UnsupportedError",
    "as_arrays",
    "as_river",
]
