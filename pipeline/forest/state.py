"""The arrays of all trees of a model.

Every array's first axis grows when it is full. Freed places are used again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluxplain.evaluate.encoding import Floats

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Kinds = NDArray[np.int8]

LEAF, NUMERIC, CATEGORY, CATEGORIES = range(4)
"""Kinds of nodes: a leaf; a branch by a threshold, by one category, or with one edge a category."""

MEAN_N, MEAN, SQUARES, LEAST, MOST = range(5)
"""What a Gaussian observer keeps of a class: total weight, mean, sum of squares, and the range."""

OFF = -2
"""Instead of the observer of a feature that is switched off."""


class Trees(NamedTuple):
    """Of each tree: its root (-1 of one that has learned nothing), and what it counts.

    ``classes`` are those that it has learned, shape (trees, classes). The others are parameters of
    River that may change between two trees; ``features`` is how many a leaf looks at, -1 for all.
    ``sizes`` are River's estimates of bytes an active and an inactive leaf take, and the factor
    from all leaves to the tree. ``to_measure`` says that they are due to be made, ``is_large`` that
    River would switch leaves off because of them.
    """

    root: Integers
    weight: Floats
    active: Integers
    inactive: Integers
    grows: Flags
    classes: Flags
    grace_period: Floats
    delta: Floats
    tau: Floats
    features: Integers
    sizes: Floats
    to_measure: Flags
    is_large: Flags


class Nodes(NamedTuple):
    """Of each node its kind, test, and statistics.

    ``test`` is a threshold or the code of a category. ``below`` are the two nodes below a branch
    with two ways; else its first and last edge. ``leaf`` is the place among the leaves.
    ``n_classes`` classes are known, in the order of ``order``; ``known``, ``weight`` and ``prior``,
    the logarithm of its share, are by class. Where a weight ``is_integer``, River has an integer,
    not a float, which ``sum`` adds in another way. For regression, there is one class, which has
    the weight of all observations, and ``moments`` are their targets' mean and sum of squares.
    """

    kind: Kinds
    feature: Integers
    test: Floats
    below: Integers
    depth: Integers
    leaf: Integers
    n_classes: Integers
    order: Integers
    known: Flags
    weight: Floats
    is_integer: Flags
    prior: Floats
    moments: Floats


class Edges(NamedTuple):
    """The ways below a branch by categories; ``following`` is the next one, -1 behind the last."""

    category: Integers
    node: Integers
    following: Integers


class Leaves(NamedTuple):
    """Of each leaf: what it learned, and where.

    ``correct`` are the weights that its majority class and its naive Bayes predicted rightly;
    ``tried`` the weight at the last attempt to split; ``chosen`` the features that it looks at, if
    it looks at some only. ``observed`` are the features in the order of their observers; ``place``
    is the observer of each feature, -1 if there is none, OFF if it is switched off. ``is_fresh``
    says whether the logarithms that naive Bayes needs are those of now.
    """

    is_active: Flags
    correct: Floats
    tried: Floats
    n_chosen: Integers
    chosen: Integers
    n_observed: Integers
    observed: Integers
    place: Integers
    is_fresh: Flags


class Observers(NamedTuple):
    """Of each leaf, observer and class: what was seen of the feature.

    ``n_classes`` classes are known, in the order of ``order``. ``gaussian`` has what the constants
    above name; ``terms`` has -2 variance, and half its logarithm. Of a categorical feature,
    ``terms`` has the weight, ``first`` and ``last`` are entries; ``values`` the first and last
    entry of the categories in the order in which they came. ``point`` is the first point, for
    regression.
    """

    n_classes: Integers
    order: Integers
    known: Flags
    gaussian: Floats
    terms: Floats
    first: Integers
    last: Integers
    values: Integers
    point: Integers


class Entries(NamedTuple):
    """Categories and their weights; ``following`` is the next entry of the same list.

    Where a weight ``is_integer``, River has an integer; see :class:`Nodes`.
    """

    category: Integers
    weight: Floats
    is_integer: Flags
    following: Integers


class Points(NamedTuple):
    """For regression: values that a leaf has seen of a feature, and moments of their targets.

    ``moments`` are weight, mean and sum of squares. Values of a numeric feature are a search tree
    below ``left`` and ``right``, where moments are those of the value and of all on its left.
    Categories are a list by ``right``.
    """

    value: Floats
    moments: Floats
    left: Integers
    right: Integers


class Models(NamedTuple):
    """For regression: each leaf's linear model.

    ``known`` says which weights are not missing, ``steps`` how often the model has learned,
    ``errors`` are River's fading squared errors of the mean and of the model.
    """

    weight: Floats
    known: Flags
    intercept: Floats
    steps: Integers
    errors: Floats


class News(NamedTuple):
    """What Python has to look at after an observation was learned.

    ``n`` is how many categories were new to a leaf, and how many trees' sizes River would look at.
    ``seen`` has of each new category the leaf, the feature, the category, and whether it is the
    leaf's first.
    """

    n: Integers
    seen: Integers


class Free(NamedTuple):
    """Places that are free, as stacks; ``n`` is how many of each, in this order."""

    n: Integers
    nodes: Integers
    leaves: Integers
    edges: Integers
    entries: Integers
    points: Integers


SEEN, ERROR, SPREAD = range(3)
"""What an adaptive tree keeps of a node's errors: how many it has seen, their mean, and the sum of
squared distances from it."""

GROWN, PRUNED, SWITCHED = range(3)
"""What an adaptive tree counts of its alternate trees."""


class Adaptive(NamedTuple):
    """Of each node of an adaptive tree: its alternate tree, and its errors.

    River's alternate trees are single leaves: one that splits replaces the main tree. ``alternate``
    is -1 where there is none. ``counts`` has what the constants above name. The others are of one
    observation: ``path`` are the branches that it passes, each with its alternate tree, and its
    leaf; ``dropped`` are the ``n_dropped`` nodes that are no longer in the tree but learn it yet.
    """

    alternate: Integers
    errors: Floats
    counts: Integers
    path: Integers
    dropped: Integers
    n_dropped: Integers


MAJORITY, BAYES, ADAPTIVE, MEANS, LINEAR, BETTER = range(6)
"""How a leaf predicts: by its majority class, by naive Bayes, or by the better of both.

For regression: by the mean of the targets, by a linear model, or by the better of both.
"""


class Settings(NamedTuple):
    """What River's parameters of the same names say.

    ``zero`` and ``one`` are the codes of the classes 0 and 1, for Hellinger's distance. ``ranks``
    sort the classes, ``category_ranks`` the categories of each feature, shape (features,
    categories). ``nominal`` says of each feature whether its numbers are codes of categories.
    ``max_bytes`` is the largest size of a tree, and ``period`` the weight after which sizes are
    estimated. ``two`` and ``half`` are 2.0 and 0.5: as constants, the compiler would compute other
    powers than Python.

    For regression: ``least`` is ``min_samples_split``, ``decay`` is ``model_selector_decay``. The
    rest are parameters of a leaf's model: learning rates, penalty, largest gradient, and first
    intercept.
    """

    prediction: int
    criterion: int
    nb_threshold: float
    max_depth: float
    n_splits: int
    binary_split: bool
    merit_preprune: bool
    remove_poor_attrs: bool
    stop_mem_management: bool
    min_branch_fraction: float
    max_share_to_split: float
    zero: int
    one: int
    ranks: Integers
    category_ranks: Integers
    nominal: Flags
    max_bytes: float
    period: float
    two: float
    half: float
    least: float = 0.0
    decay: float = 0.0
    rate: float = 0.0
    intercept_rate: float = 0.0
    l2: float = 0.0
    clip: float = 0.0
    intercept: float = 0.0


class State(NamedTuple):
    """All arrays."""

    trees: Trees
    nodes: Nodes
    edges: Edges
    leaves: Leaves
    observers: Observers
    entries: Entries
    points: Points
    models: Models
    news: News
    adaptive: Adaptive
    free: Free
    settings: Settings
