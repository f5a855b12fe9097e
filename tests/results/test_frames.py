"""Exported files become the records that they were made of."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fluxplain.results.export_file import export
from fluxplain.results.frames import records_of
from fluxplain.results.selection import Selection
from fluxplain.schemas import Change, Explanation, Record
from fluxplain.schemas.change import Condition, Evidence, Period, Region
from tests.kit import records


def read_back(record: Record, path: Path) -> Record:
    export([(0, record.encode())], type(record), path, Selection())
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    [back] = records_of(frame)
    return back


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_values_and_ids_keep_their_types(ending: str, tmp_path: Path) -> None:
    conditions = [Condition("x", "==", True), Condition("y", "!=", "1"), Condition("z", ">", 2.5)]
    evidence = [Evidence(5, id="7", feature="y", value="true"), Evidence(6, id=7, increment=0.5)]
    region = Region(conditions, coverage=0.25, share=0.5)
    change: Change = records.change("x", 9, before=0.1, after=0.3)
    change = replace(change, evidence=evidence, region=region, returns_to=Period(0, 7))
    assert read_back(change, tmp_path / f"changes{ending}").encode() == change.encode()

    explanation: Explanation = replace(
        records.explanation("x", 9, 0.5),
        seqs=[7, 8, 9],
        increments=[0.1, 0.2, 0.3],
        values=[True, None, "1"],
        ids=["7", 8, None],
    )
    back = read_back(explanation, tmp_path / f"explanations{ending}")
    assert back.encode() == explanation.encode()
