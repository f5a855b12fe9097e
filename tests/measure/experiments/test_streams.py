"""The data of the experiments."""

import gzip
from pathlib import Path

import pytest

from tests.measure.experiments.streams import elec2


def test_another_copy_of_elec2_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "elec2.csv.gz"
    path.write_bytes(gzip.compress(b"period,class\n0.5,1\n"))
    monkeypatch.setenv("DATA", str(tmp_path))
    with pytest.raises(ValueError, match=f"{path} has other data"):
        elec2()
    path.unlink()
    with pytest.raises(FileNotFoundError, match="DATA"):
        elec2()


def test_elec2_is_what_it_says(elec2_is_there: None) -> None:
    records = elec2()
    assert len(records) == 45_312
    assert records[0][0]["day"] == 2
    assert len({x["vicprice"] for x, _ in records[:17_424]}) == 1
    assert records[17_424][0]["vicprice"] != records[0][0]["vicprice"]
