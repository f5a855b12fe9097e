"""What ``deploy/docs/models.md`` says: each example runs, and the table is what was measured."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import orjson
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from fluxplain.config import load_config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import DeadLetter, Evaluation
from tests.docs.documents import snippets
from tests.kit.support import agrawal, of_kind
from tests.models.kinds import KINDS
from tests.models.table import RESULTS, read, short_table

ROOT = Path(__file__).parents[2]
PAGE = "deploy/docs/models.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")

EXAMPLES = [
    pytest.param(
        each.text,
        marks=[pytest.mark.torch] if "from_torch" in each.text else [],
        id=f"{PAGE}:{each.line}",
    )
    for each in snippets("toml")
    if each.document == PAGE
]
[PYTHON] = [each.text for each in snippets("python") if each.document == PAGE]
OWN_FILE = ROOT / "deploy" / "examples" / "mymodel.py"

OWN = '[model]\nfactory = "mymodel:Cells"\nparams = { widths = { age = 20 } }\n'
"""The class of the example, of which there are no settings."""

HEAD = """
[features]
salary = "numeric"
age = "numeric"
car = "categorical"
"""
NUMBERS = HEAD.replace('car = "categorical"\n', "")

SHORT = """
[explain.ipfi]
reservoir_size = 20
[explain.isage]
reservoir_size = 20
[explain.ipdp]
storage_size = 20
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mymodel.py").write_text(PYTHON)
    data = agrawal(200, seed=2)
    frame = pd.DataFrame([x for x, _ in data])[["salary", "age"]]
    forest = RandomForestClassifier(n_estimators=3, random_state=1)
    joblib.dump(forest.fit(frame, [bool(y) for _, y in data]), tmp_path / "credit.joblib")
    yield tmp_path
    sys.modules.pop("mymodel", None)


@pytest.mark.parametrize("example", [*EXAMPLES, OWN])
def test_an_example_runs(folder: Path, example: str) -> None:
    # River's scalers know numbers only; a pipeline with categories is the user's own
    head = NUMBERS if "from_river" in example else HEAD
    path = folder / "fluxplain.toml"
    path.write_text(f"{head}\n{example}\n{SHORT}")
    pipeline = LocalPipeline(load_config(path))
    values: list[bytes] = []
    for x, y in agrawal(60):
        record: dict[str, Any] = {"x": {**x, "car": f"car {x['car']}"}, "y": bool(y)}
        values.append(orjson.dumps(record))
    records = list(pipeline.run(values))
    assert not of_kind(records, DeadLetter)
    assert not of_kind(records, Evaluation)  # the reference passes them on
    assert b'"method":"isage"' in b"".join(record.encode() for record in records)


def test_there_are_examples_of_all() -> None:
    assert OWN_FILE.read_text(encoding="utf-8") == PYTHON, "the file that others use"
    named = set(re.findall(r'factory = "fluxplain.models:(\w+)"', TEXT))
    assert named == {"from_river", "from_sklearn", "from_torch"}
    assert len(EXAMPLES) >= 7


def test_the_table_is_what_was_measured() -> None:
    results = read(RESULTS)
    assert set(results) == set(KINDS)
    assert all(result.different == result.dead_letters == 0 for result, _ in results.values())
    assert short_table(RESULTS) in TEXT, f"put this into {PAGE}:\n{short_table(RESULTS)}"
