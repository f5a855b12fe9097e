"""Arbitrary short streams and parameters: the arrays remain River's model, also where it raises."""

import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import drift, tree

from tests.forest.models import KINDS, learn_both, pair, summary
from tests.forest.streams import Stream, with_targets
from tests.kit.support import PROPERTY

VALUES: dict[str, Any] = {
    "few numbers": lambda rng: rng.randrange(3),
    "numbers": lambda rng: rng.gauss(0, 1),
    "huge numbers": lambda rng: rng.choice((-1e100, 0.0, 1e100)),
    "numbers without a square": lambda rng: rng.choice((1e200, 1.0, 2.0, 3.0)),
    "words": lambda rng: rng.choice("xyz"),
    "more words with time": lambda rng: f"w{int(rng.paretovariate(1.0))}",
    "one word": lambda _: "w",
    "flags": lambda rng: rng.random() < 0.5,
}


class Shape(NamedTuple):
    """How a stream is made: the rest is random."""

    seed: int
    values: list[str]
    missing: float
    noise: float
    classes: int
    concepts: int
    records: int

    def stream(self) -> Stream:
        """Return the observations, whose label depends on a feature that changes."""
        rng, found = random.Random(self.seed), []
        for i in range(self.records):
            concept = i * self.concepts // self.records
            row = {f"f{k}": VALUES[each](rng) for k, each in enumerate(self.values)}
            seen = f"{row[f'f{concept % len(row)}']}"
            level = (seen > "1") + (seen > "x") + concept
            y = rng.randrange(self.classes) if rng.random() < self.noise else level % self.classes
            found.append(({f: v for f, v in row.items() if rng.random() >= self.missing}, y))
        return found


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    values=st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4),
    missing=st.sampled_from([0.0, 0.02, 0.3]),
    noise=st.sampled_from([0.0, 0.1, 0.5]),
    classes=st.integers(1, 4),
    concepts=st.integers(1, 6),
    records=st.integers(1, 600),
)

TREE = {
    "grace_period": st.sampled_from([1, 5, 20]),
    "delta": st.sampled_from([0.01, 0.3]),
    "tau": st.sampled_from([0.05, 0.3]),
    "leaf_prediction": st.sampled_from(["mc", "nb", "nba"]),
    "nb_threshold": st.sampled_from([0, 10]),
    "max_depth": st.sampled_from([None, 1, 3]),
    "binary_split": st.booleans(),
    "merit_preprune": st.booleans(),
    "max_share_to_split": st.sampled_from([0.6, 0.99]),
    "min_branch_fraction": st.sampled_from([0.0, 0.01, 0.2]),
    "split_criterion": st.sampled_from(["info_gain", "gini", "hellinger"]),
    "nominal_attributes": st.sampled_from([None, ["f0"]]),
}

DETECTORS = [
    drift.ADWIN(delta=0.9, clock=1, grace_period=2),
    drift.PageHinkley(min_instances=3, threshold=0.5),
]

PATIENCE = {
    "bootstrap_sampling": st.booleans(),
    "drift_window_threshold": st.sampled_from([0, 5, 30]),
    "switch_significance": st.sampled_from([0.05, 1.0, 2.0]),
    "drift_detector": st.sampled_from(
        [*DETECTORS, drift.binary.DDM(warm_start=3, drift_threshold=0.5)]
    ),
}
"""Parameters that adaptive trees have."""

REGRESSION = {
    "grace_period": st.sampled_from([1, 5, 20]),
    "delta": st.sampled_from([0.01, 0.3]),
    "tau": st.sampled_from([0.0, 0.05, 0.5]),
    "leaf_prediction": st.sampled_from(["mean", "model", "adaptive"]),
    "model_selector_decay": st.sampled_from([0.0, 0.95]),
    "max_depth": st.sampled_from([None, 1, 3]),
    "binary_split": st.booleans(),
    "merit_preprune": st.booleans(),
    "remove_poor_attrs": st.booleans(),
    "splitter": st.sampled_from(
        [None, tree.splitter.EBSTSplitter(), tree.splitter.TEBSTSplitter(digits=0)]
    ),
    "nominal_attributes": st.sampled_from([None, ["f0"]]),
}

PARAMETERS = {
    "HoeffdingAdaptiveTreeClassifier": {**TREE, **PATIENCE},
    "HoeffdingAdaptiveTreeRegressor": {
        **REGRESSION,
        **PATIENCE,
        "drift_detector": st.sampled_from(DETECTORS),
        "min_samples_split": st.sampled_from([1, 5]),
        "drift_window_threshold": st.sampled_from([-1, 0, 5, 30]),
    },
    "ARFRegressor": REGRESSION,
    "HoeffdingTreeRegressor": {**REGRESSION, "min_samples_split": st.sampled_from([1, 5])},
}
"""Those of other kinds are of a tree for classification."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(PROPERTY, max_examples=50)
@given(data=st.data(), shape=shapes)
def test_it_gives_rivers_numbers(kind: str, data: st.DataObject, shape: Shape) -> None:
    parameters = data.draw(st.fixed_dictionaries({}, optional=PARAMETERS.get(kind, TREE)))
    stream = shape.stream()
    if kind.endswith("Regressor"):
        stream = with_targets(stream, has_text=True)
    river, ours = learn_both(*pair(kind, parameters), stream)
    assert summary(ours) == summary(river)
