"""What differs between arrays for classification and for regression."""

from typing import Any, NamedTuple

from fluxplain.forest.from_objects import TreeReader
from fluxplain.forest.regression.reader import RegressionReader
from fluxplain.forest.regression.regression_arrays import RegressionArrays
from fluxplain.forest.regression.writer import RegressionWriter
from fluxplain.forest.to_objects import TreeWriter
from fluxplain.forest.tree_arrays import TreeArrays


class Form(NamedTuple):
    """The classes for a kind of trees: arrays, and what converts River's objects to and fro."""

    arrays: Any
    reader: type[TreeReader]
    writer: type[TreeWriter]


CLASSIFICATION = Form(TreeArrays, TreeReader, TreeWriter)
REGRESSION = Form(RegressionArrays, RegressionReader, RegressionWriter)
