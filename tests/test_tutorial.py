"""The tutorial runs as it stands, in a kernel of its own, and shows its pictures."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]

TUTORIAL = ROOT / "deploy" / "examples" / "tutorial.ipynb"


@pytest.mark.slow
def test_the_tutorial_runs_and_each_drawing_is_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *([before] if before else [])]))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # what it writes goes with the test
    notebook = nbformat.read(TUTORIAL, as_version=4)
    client = NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    drawing = [cell for cell in cells if "\ndraw(" in f"\n{cell.source}"]
    assert len(drawing) == 6
    for cell in drawing:
        shown = [output.data for output in cell.outputs if output.output_type == "execute_result"]
        assert [sorted(data) for data in shown] == [["image/png", "text/plain"]], cell.source


def test_the_tutorial_is_kept_without_outputs() -> None:
    notebook = nbformat.read(TUTORIAL, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
