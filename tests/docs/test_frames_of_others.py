"""The recipes for other tools: what they make of exported files."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import pytest

from fluxplain.results.export_file import export
from fluxplain.results.selection import EVERYTHING
from fluxplain.schemas import Prediction, Reasons, Record
from tests.docs.documents import snippets
from tests.kit.records import prediction, reasons

PAGE = "deploy/docs/ecosystem.md"


def recipe(text: str) -> str:
    [found] = [e.text for e in snippets("python") if e.document == PAGE and text in e.text]
    return found


def write(records: list[Record], kind: type[Record], path: str) -> None:
    export([(0, each.encode()) for each in records], kind, Path(path), EVERYTHING)


@pytest.mark.skipif(sys.platform != "linux", reason="shap is installed on Linux only")
def test_shap_gets_what_sums_to_the_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    matplotlib.use("Agg")
    first = reasons(3)
    # another feature is among those with names
    second = replace(reasons(5, output=0.8), names=["hour", "country"], values=[4, "AT"])
    sent = [first, second, reasons(5, label=False)]
    write([*sent], Reasons, "reasons.parquet")
    names: dict[str, Any] = {}
    exec(recipe("shap.Explanation"), names)
    explanation = names["explanation"]
    assert explanation.feature_names == ["amount", "hour", "country", "rest"]
    assert explanation.values.tolist() == [
        [*first.contributions, 0.0, first.rest],
        [0.0, *second.contributions, second.rest],
    ]
    sums = explanation.values.sum(axis=1) + explanation.base_values
    assert sums.tolist() == pytest.approx([0.9, 0.8])
    assert explanation.data[:, :2].tolist()[0] == [950.5, 3.0]


def test_evidently_gets_inputs_with_predictions_and_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sent = [replace(prediction(seq), id=f"tx-{seq}") for seq in range(3)]
    write([*sent], Prediction, "predictions.parquet")
    ids = [f"tx-{n}" for n in (2, 0, 7)]
    inputs = pd.DataFrame({"id": ids, "amount": [2.5, 0.5, 9.0], "country": ["AT", "DE", "AT"]})
    inputs.to_csv("transactions.csv", index=False)
    names: dict[str, Any] = {}
    exec(recipe("inputs.merge"), names)
    assert names["frame"][["id", "amount", "country", "prediction", "y"]].to_numpy().tolist() == [
        ["tx-2", 2.5, "AT", "1", "1"],
        ["tx-0", 0.5, "DE", "1", "1"],
    ]
