"""River's forests as arrays: the same parameters and numbers, in less time."""

from typing import TYPE_CHECKING

from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.forest.adaptive_tree_classifier import HoeffdingAdaptiveTreeClassifier
    from fluxplain.forest.adaptive_tree_regressor import HoeffdingAdaptiveTreeRegressor
    from fluxplain.forest.arf_classifier import ARFClassifier
    from fluxplain.forest.arf_regressor import ARFRegressor
    from fluxplain.forest.conversion import as_arrays, as_river
    from fluxplain.forest.names import UnsupportedError
    from fluxplain.forest.tree_classifier import HoeffdingTreeClassifier
    from fluxplain.forest.tree_regressor import HoeffdingTreeRegressor
else:
    __getattr__, __dir__ = lazy(
        __name__,
        adaptive_tree_classifier=["HoeffdingAdaptiveTreeClassifier"],
        adaptive_tree_regressor=["HoeffdingAdaptiveTreeRegressor"],
        arf_classifier=["ARFClassifier"],
        arf_regressor=["ARFRegressor"],
        conversion=["as_arrays", "as_river"],
        names=["UnsupportedError"],
        tree_classifier=["HoeffdingTreeClassifier"],
        tree_regressor=["HoeffdingTreeRegressor"],
    )

__all__ = [
    "ARFClassifier",
    "ARFRegressor",
    "HoeffdingAdaptiveTreeClassifier",
    "HoeffdingAdaptiveTreeRegressor",
    "HoeffdingTreeClassifier",
    "HoeffdingTreeRegressor",
    "UnsupportedError",
    "as_arrays",
    "as_river",
]
