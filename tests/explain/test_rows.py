"""Observations as rows of a data frame or a database, and values that cannot be used."""

import math
import sqlite3
from collections import namedtuple
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import linear_model, preprocessing, stats

from fluxplain.baselines import batch_pdp, batch_pfi
from fluxplain.explain import (
    IncrementalPairPDP,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalReasons,
)
from tests.explain.kinds import KINDS, WINDOWS, Kind, Known, explain, make, state, stream

FRAME = pd.DataFrame([{**x, "n": t, "even": t % 2 == 0} for t, (x, _) in enumerate(stream(40))])
LABELS = [y for _, y in stream(40)]


def records() -> list[dict[str, Any]]:
    """Return the rows as plain dictionaries."""
    rows: list[dict[str, Any]] = FRAME.to_dict("records")
    return rows


def from_database() -> list[Any]:
    """Return the rows as those of a database with names."""
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    database.execute("create table rows (a real, b real, c text, n integer)")
    values = FRAME[["a", "b", "c", "n"]].to_numpy().tolist()
    database.executemany("insert into rows values (?, ?, ?, ?)", values)
    return database.execute("select * from rows order by n").fetchall()


def scalars() -> list[dict[str, Any]]:
    """Return the rows with NumPy's numbers and booleans."""
    return [
        {f: v if isinstance(v, str) else np.asarray(v)[()] for f, v in row.items()}
        for row in records()
    ]


Row = namedtuple("Row", ["a", "b", "c", "n", "even"])

ROWS = {
    "series": lambda: [row for _, row in FRAME.iterrows()],
    "namedtuple": lambda: [Row(*row) for row in FRAME.to_numpy().tolist()],
    "itertuples": lambda: list(FRAME[["a", "b", "c", "n"]].itertuples(index=False)),
    "database": from_database,
    "scalars": scalars,
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("kind", [*KINDS, *WINDOWS], ids=str)
def test_a_row_is_explained_as_the_dictionary(kind: Kind, rows: Any) -> None:
    features = ["a", "b", "c", "n"]
    of_rows, of_dicts = make(kind, Known(), features), make(kind, Known(), features)
    for row, x, y in zip(rows(), records(), LABELS, strict=True):
        explain(of_rows, row, np.float64(y))
        explain(of_dicts, x, y)
    assert any(of_dicts.values.values())
    assert state(of_rows) == state(of_dicts)


def test_a_row_has_its_reasons() -> None:
    of_rows, of_dicts = (
        IncrementalReasons(Known(), ["a", "b", "c"], reservoir_size=5, seed=1) for _ in range(2)
    )
    for (_, row), x in zip(FRAME.iterrows(), records(), strict=True):
        assert of_rows.explain_one(row) == of_dicts.explain_one(x)
    assert of_rows.reasons(FRAME.iloc[0]) == of_dicts.reasons(records()[0])


def test_rows_are_explained_as_a_batch() -> None:
    rows: Any = [row for _, row in FRAME.iterrows()]
    found, expected = (
        batch_pfi(Known(), xs, LABELS, ["a", "n", "c"], loss="squared_error", seed=1)
        for xs in (rows, records())
    )
    assert found == expected
    assert batch_pdp(Known(), rows, ["a", "c"]) == batch_pdp(Known(), records(), ["a", "c"])


class Recorder:
    """A model that keeps what it was asked about."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def predict_one(self, x: dict[str, Any]) -> float:
        self.asked.append(dict(x))
        return 0.0


def test_a_model_gets_pythons_numbers() -> None:
    model = Recorder()
    pfi = IncrementalPFI(model, ["n", "even", "c"], loss="squared_error", reservoir_size=2, seed=1)
    for row in scalars()[:5]:
        pfi.explain_one(row, 1)
    assert {type(x["n"]) for x in model.asked} == {int}
    assert {type(x["even"]) for x in model.asked} == {bool}
    assert {type(x["c"]) for x in model.asked} == {str}


@pytest.mark.parametrize("of", [np.bool_, np.int64, np.str_])
@pytest.mark.parametrize("loss", ["cross_entropy", "zero_one", "brier"])
def test_a_label_of_numpy_is_the_label(of: Any, loss: str) -> None:
    class Even:
        def predict_proba_one(self, x: dict[str, float]) -> dict[Any, float]:
            return {of(1).item(): 0.75 - x["a"] / 9.0, of(0).item(): 0.25 + x["a"] / 9.0}

    found = []
    for convert in (of, lambda label: of(label).item()):
        pfi = IncrementalPFI(Even(), ["a"], loss=loss, reservoir_size=2, seed=1)
        found.append([pfi.explain_one({"a": float(t % 5)}, convert(t % 2)) for t in range(9)])
    assert found[0] == found[1]
    assert any(found[0][-1].values())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (FRAME, r"one row, not a DataFrame: give frame\.iloc\[0\]"),
        ([1.0, 2.0], r"not a list: give dict\(zip\(names, row\)\)"),
        (np.zeros(3), r"not a ndarray: give dict\(zip"),
    ],
)
def test_what_has_no_names_is_refused(row: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make(KINDS[0], Known()).explain_one(row, 1.0)


LINEAR_KINDS = [Kind(IncrementalPairPDP), Kind(IncrementalReasons), *KINDS[:1], *KINDS[-3:]]


def of_linear(kind: Kind, model: object) -> Any:
    """Return an explainer that is warm soon, and how to call it."""
    if kind.of is IncrementalPairPDP:
        return IncrementalPairPDP(model, [("a", "b")], storage_size=3, seed=1).explain_one
    if kind.of is IncrementalReasons:
        return IncrementalReasons(model, ["a", "b"], reservoir_size=3, seed=1).explain_one
    explainer = make(kind, model, ["a", "b"])
    return lambda x: explain(explainer, x, 1.0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("old", "'a' is 'old', but was a number before"),
        (None, "'a' is None, not a number, a boolean or text"),
        ([1.0, 2.0], r"'a' is \[1\.0, 2\.0\], not a number"),
        (pd.NA, "'a' is <NA>, not a number"),
        (math.nan, "'a' is nan, not a finite number"),
        (np.float32("inf"), "'a' is inf, not a finite number"),
    ],
    ids=str,
)
@pytest.mark.parametrize("as_series", [False, True])
@pytest.mark.parametrize("kind", LINEAR_KINDS, ids=str)
def test_a_value_that_the_model_cannot_take_is_named(
    kind: Kind, as_series: bool, value: object, message: str
) -> None:
    model = linear_model.LinearRegression()
    explain_one = of_linear(kind, model)
    for t in range(10):
        x = {"b": float(t % 3), "a": float(t)}
        explain_one(x)
        model.learn_one(x, 1.0)
    bad: Any = {"b": 1.0, "a": value}
    with pytest.raises((ValueError, TypeError), match=message) as raised:
        explain_one(pd.Series(bad, dtype=object) if as_series else bad)
    assert isinstance(raised.value, TypeError) == isinstance(raised.value.__cause__, TypeError)


@pytest.mark.parametrize("value", ["old", None, [1.0]])
def test_a_value_that_cannot_be_used_makes_later_explanations_no_slower(value: Any) -> None:
    model = linear_model.LinearRegression()
    reasons = IncrementalReasons(model, ["a", "b"], reservoir_size=3, seed=1)
    for t in range(10):
        found = reasons.explain_one({"a": float(t % 3), "b": float(t)})
        model.learn_one({"a": float(t % 3), "b": float(t)}, 1.0)
    with pytest.raises((ValueError, TypeError), match="'b' is"):
        reasons.explain_one({"a": 1.0, "b": value})
    after = reasons.explain_one({"a": 1.0, "b": 1.0})
    assert found is not None
    assert after is not None
    assert found.way == after.way == "structure"  # not one call for each input


def test_text_at_the_points_of_numbers_is_named() -> None:
    class Zero:
        def predict_one(self, x: object) -> float:
            return 0.0

    for grid in ("quantile-range", "range"):
        pdp = IncrementalPDP(Zero(), ["a"], grid=grid, categorical=[], seed=1)
        with pytest.raises(ValueError, match="'a' is 'old', but its evaluation points are numbers"):
            pdp.explain_one({"a": "old"})


def test_a_value_that_the_model_can_take_is_no_error() -> None:
    model = preprocessing.StatImputer(("b", stats.Mean())) | linear_model.LinearRegression()
    for t in range(9):
        model.learn_one({"a": float(t), "b": None if t % 3 else 1.0}, 2.0 * t)
    pfi = IncrementalPFI(model, ["a", "b"], loss="squared_error", reservoir_size=3, seed=1)
    for t in range(9):
        x: Any = {"a": float(t), "b": None if t % 3 else 1.0}
        pfi.explain_one(x, 2.0 * t)
    assert pfi.values["a"] > 0.0


def test_an_error_without_an_unusual_value_is_raised_as_it_is() -> None:
    class Broken:
        def predict_one(self, x: object) -> float:
            raise KeyError("weights")

    with pytest.raises(KeyError, match="weights"):
        make(KINDS[0], Broken(), ["a"]).explain_one({"a": 1.0}, 1.0)


def test_an_error_that_names_another_feature_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError, match=r"^the observation lacks the feature 'a'$"):
        make(KINDS[0], Known(), ["a"]).explain_one({"b": None}, 1.0)
