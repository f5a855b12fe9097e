"""One call draws what explains a model: explainers, records, frames."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fluxplain.explain import IncrementalPairPDP, IncrementalPDP, IncrementalPFI, IncrementalSAGE
from fluxplain.monitor.figures import draw
from fluxplain.results.export_file import export
from fluxplain.results.frames import records_of
from fluxplain.results.selection import Selection
from fluxplain.schemas import Change, Explanation, Prediction
from fluxplain.schemas.change import Curve
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.prediction import LabelCounts
from tests.kit.records import prediction
from tests.kit.support import Linear
from tests.monitor.figures.layout import assert_readable, written
from tests.monitor.figures.samples import changes_of, drift_of, stream_of

FEATURES = ["a", "b"]

MODEL = Linear({"a": 2.0, "b": 0.5})


def asked(explainer: Any) -> Any:
    """Return an explainer that has seen some observations."""
    for t in range(60):
        x = {"a": t % 7 / 7, "b": t % 3 / 3}
        if hasattr(explainer, "loss"):
            explainer.explain_one(x, MODEL.predict_one(x) + 0.1)
        else:
            explainer.explain_one(x)
    return explainer


def pfi() -> IncrementalPFI:
    return IncrementalPFI(MODEL, FEATURES, loss="squared_error", reservoir_size=10, seed=1)


def sage() -> IncrementalSAGE:
    return IncrementalSAGE(MODEL, FEATURES, loss="squared_error", reservoir_size=10, seed=1)


def pdp() -> IncrementalPDP:
    return IncrementalPDP(MODEL, FEATURES, storage_size=10, ice=3, seed=1)


def pair() -> IncrementalPairPDP:
    return IncrementalPairPDP(MODEL, [("a", "b")], storage_size=10, seed=1)


@pytest.mark.parametrize(
    ("make", "title"),
    [
        (pfi, "iPFI: what the model relies on now"),
        (sage, "iSAGE: what the model relies on now"),
        (pdp, "How the model's output depends on each feature"),
        (pair, "How the model's output depends on two features together"),
    ],
)
def test_every_explainer_draws_with_one_call(make: Callable[[], Any], title: str) -> None:
    figure = draw(asked(make()))
    assert isinstance(figure, Figure)
    assert title in written(figure)
    assert_readable(figure)


def test_importances_are_as_the_explainer_has_them() -> None:
    explainer = asked(pfi())
    [axes] = draw(explainer).axes
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [float(np.asarray(dot.get_xdata())[0]) for dot in dots] == [
        explainer.values["a"],
        explainer.values["b"],
    ]
    assert axes.get_xlabel() == "importance [loss]"


def test_one_feature_of_an_explainer() -> None:
    figure = draw(asked(pdp()), "b")
    assert "How the model's output depends on b" in written(figure)
    assert len(figure.axes) == 1
    with pytest.raises(ValueError, match="there is no explanation of 'c'; there are: a, b"):
        draw(asked(pdp()), "c")


@pytest.mark.parametrize("make", [pdp, pair])
def test_an_explainer_that_is_warming_up_says_so(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="still warming up"):
        draw(make())


@pytest.mark.slow
def test_records_draw_as_importances_curves_and_stories() -> None:
    records = stream_of(6)
    assert len(draw(records).axes) == 3
    assert "depends on f1" in written(draw(records, "f1"))
    change = drift_of("f0")
    for which in (change, change.id):
        assert "What changed: iSAGE of f0" in written(draw(records, change=which))
    assert "My title" in written(draw(records, title="My title"))
    with pytest.raises(
        ValueError, match=f"no change '0000'; the (nearest|latest) are .*{change.id}"
    ):
        draw(records, change="0000")
    with pytest.raises(ValueError, match="there is no explanation of 'g'; there are: f1, f0"):
        draw(records, "g")


@pytest.mark.slow
def test_frames_of_rows_are_the_records() -> None:
    kinds = (Explanation, Change, Prediction)
    by_kind = [[r for r in stream_of(2) if isinstance(r, kind)] for kind in kinds]
    frames = [pd.DataFrame([orjson.loads(r.encode()) for r in each]) for each in by_kind]
    assert [records_of(frame) for frame in frames] == by_kind
    story = draw(frames, change=changes_of(2)[0].id)
    assert "What changed: iSAGE of f0" in written(story)


def with_curves() -> list[Explanation]:
    """Return iPDP of numbers, categories, classes and pairs, with curves of single observations."""
    plain = next(each for each in stream_of(2) if isinstance(each, Explanation))
    plain = replace(plain, method="ipdp", seqs=[0], increments=[0.1])
    two = [0.5, 0.7]
    return [
        replace(plain, feature="n", grid=[1.0, 2.0], effect=two, ice=[Ice(0, [1.0, 2.0], two)]),
        replace(plain, feature="c", grid=["red", 1], effect=two),
        replace(plain, feature="k", grid=[1.0, 2.0], effect=[two, two], classes=["x", True]),
        replace(plain, feature="p", grid=[1.0, 2.0], second_grid=["u"], effect=[[0.5], [0.7]]),
    ]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_what_export_wrote_is_read_again(tmp_path: Path, ending: str) -> None:
    curve = Curve(5, ["red", "blue"], [0.1, 0.2])
    drift = replace(drift_of("c"), curve_before=curve, curve_after=curve, rank_after=1, ranked=4)
    calm = Change.notice(kind="gap", stream=drift.stream, seq=99, detail="90 lost")
    labels = LabelCounts(waiting=1, joined=2, missing=3, repeated=4, unknown=5)
    known = replace(prediction(4), prediction="up", y="down", classes=["u", "d"], model_version="7")
    late = replace(known, seq=5, labels=labels, missing=["c"], observation=2)
    for records in (with_curves(), [drift, calm], [known, late]):
        path = tmp_path / f"records.{ending}"
        values = ((0, record.encode()) for record in records)
        export(values, type(records[0]), path, Selection())
        frame = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path)
        assert records_of(frame) == records


def test_a_frame_by_hand_needs_little() -> None:
    frame = pd.DataFrame({"seq": [9, 19], "feature": "age", "value": [0.1, 0.2]})
    figure = draw(frame)
    assert "iPFI" in written(figure)
    assert "age" in written(figure)
    with pytest.raises(ValueError, match="lacks the columns seq, value"):
        draw(pd.DataFrame({"feature": ["age"]}))


def test_anything_else_is_an_error() -> None:
    with pytest.raises(TypeError, match="cannot plot int"):
        draw(7)  # type: ignore[arg-type]
