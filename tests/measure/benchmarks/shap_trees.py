"""Reasons for outputs of a forest of scikit-learn, beside those of the shap package."""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from fluxplain.explain.output_reasons import IncrementalReasons
from fluxplain.forest import as_arrays
from tests.kit.scikit_forests import exported
from tests.measure.benchmarks.library_streams import agrawal
from tests.measure.benchmarks.timing import Figure, Run

TRAINED, BACKGROUND, BLOCK, BLOCKS = 2_000, 100, 20, 15
"""Records that the forest is fitted to, that are stored, of a block, and blocks of each side."""

DEPTHS = {"depth 6": 6, "full depth": None}

FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "ours": lambda block: block.to_dict("records"),
    "one by one": lambda block: [row[None] for row in block.to_numpy()],
    "all at once": pd.DataFrame.to_numpy,
}
"""Records as each side takes them."""

FORM = "{:,.0f} µs"


def beside_shap(run: Run) -> Iterator[Figure]:
    """Measure reasons beside shap's interventional TreeExplainer: a random forest of 10 trees.

    scikit-learn's forest, fitted to 2,000 records of agrawal, d = 9, against 100 records. Ours are
    of the same trees, exported to arrays. Processor times of a record: the sides take turns in
    blocks of 20 records. shap gets them one by one, as in a stream, and all at once.
    """
    rows = list(islice(agrawal(), TRAINED + BACKGROUND + BLOCK * BLOCKS))
    x, y = pd.DataFrame([row for row, _ in rows]), [label for _, label in rows]
    x = x.astype("float32").astype("float64")  # as scikit-learn rounds them
    background, rest = x[TRAINED : TRAINED + BACKGROUND], x[TRAINED + BACKGROUND :]
    for name, depth in DEPTHS.items():
        run.clock.say(name)
        fitted = RandomForestClassifier(10, max_depth=depth, random_state=1)
        sides = _sides(fitted.fit(x[:TRAINED], y[:TRAINED]), background)
        took: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(BLOCKS):
            block = rest[number * BLOCK : (number + 1) * BLOCK]
            for side in [*sides] if number % 2 else reversed(sides):
                took[side].append(_time(sides[side], FORMS[side](block)))
        for side in ("one by one", "all at once"):
            pairs = list(zip(took["ours"], took[side], strict=True))[1:]  # the first one compiles
            title = f"reasons of RF-10, {name}: faster than shap, {side}"
            yield Figure.of_pairs(title, pairs, FORM, faster=True)


def _sides(fitted: Any, background: pd.DataFrame) -> dict[str, Callable[[Any], object]]:
    import shap  # noqa: PLC0415  takes seconds

    theirs = shap.TreeExplainer(fitted, data=background, feature_perturbation="interventional")
    names = list(background)
    ours = IncrementalReasons(
        as_arrays(exported(fitted, names)), names, reservoir_size=BACKGROUND, seed=1
    )
    for row in background.to_dict("records"):
        ours.explain_one(row)
    return {
        "ours": lambda block: [ours.reasons(row) for row in block],
        "one by one": lambda block: [
            theirs.shap_values(row, check_additivity=False) for row in block
        ],
        "all at once": lambda block: theirs.shap_values(block, check_additivity=False),
    }


def _time(explain: Callable[[Any], object], block: Any) -> float:
    """Return the microseconds of a record."""
    begin = time.process_time()  # others may use the machine
    explain(block)
    return (time.process_time() - begin) / BLOCK * 1e6
