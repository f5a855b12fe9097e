"""What a process loads, and what a package offers and may import."""

import ast
import inspect
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import fluxplain.evaluate
import fluxplain.explain
import fluxplain.models
import fluxplain.stages
from tests.kit.preloaded import bare_path
from tests.kit.settings import SETTINGS, write_config

START = """
import os, sys
from pathlib import Path

def tell():
    # Numba asks SciPy for its version, which loads next to nothing
    large = {"river", "scipy.stats", "numba", "matplotlib", "pandas", "sklearn"}
    print(*large & set(sys.modules), flush=True)

from fluxplain.cli.main import app
from fluxplain.config import load_config
tell()
from fluxplain.agents import make_stage, stage_class
from fluxplain.config.replica import Replica
path, *roles = sys.argv[1:]
for role in roles:
    if os.fork():
        os.wait()
        continue
    stage_class(role)
    make_stage(load_config(Path(path), role), Replica(role), "fluxplain.features", 0)
    tell()
    break
"""
"""What a worker does until it asks for a broker, and then for its first partition."""

LOADED = {
    "model": {"river", "scipy.stats", "numba"},
    "explainer": {"numba"},
    "drift": {"numba"},
}
"""Role → the large libraries that its workers load."""

ROOT = Path(__file__).parents[1]

ARROWS = {
    "schemas": "",
    "pipeline/loading": "",
    "pipeline/http": "",
    "pipeline/evaluate": "loading",
    "pipeline/forest": "loading evaluate",
    "pipeline/explain": "loading evaluate",
    "pipeline/baselines": "evaluate explain",
    "pipeline/drift": "errors loading evaluate schemas",
    "pipeline/models": "errors loading evaluate schemas __version__",
    "pipeline/config": "errors loading evaluate forest explain drift models schemas",
    "pipeline/sources": "errors config schemas",
    "pipeline/stages": "errors loading evaluate explain drift models config schemas",
    "pipeline/kafka": "errors explain models stages config http schemas __version__",
    "pipeline/results": "errors kafka config sources schemas",
    "pipeline/monitor": "loading results config http schemas",
    "pipeline/alerts": "config kafka schemas __version__",
    "agents": "stages kafka config schemas",
    "pipeline/cli": "errors evaluate forest models stages kafka results monitor alerts sources "
    "config schemas agents local __version__",
}
"""Folder → all of ours that its modules may import, from the foundations to the roof."""


def test_no_arrow_leads_upwards() -> None:
    below = {"errors", "local", "__version__"}
    for folder, allowed in ARROWS.items():
        assert set(allowed.split()) <= below, f"{folder} imports what stands above it"
        below.add(Path(folder).name)


def test_every_folder_has_its_arrows() -> None:
    folders = {path.parent for path in (ROOT / "pipeline").glob("*/__init__.py")}
    assert {ROOT / name for name in ARROWS} == folders | {ROOT / "agents", ROOT / "schemas"}


@pytest.mark.parametrize(("folder", "allowed"), ARROWS.items())
def test_imports_go_one_way(folder: str, allowed: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    names = [name for path in paths for name in _imported(path)]
    found = {second for first, second, *_ in names if first == "fluxplain"}
    assert found <= {Path(folder).name, *allowed.split()}


def test_only_one_folder_knows_faust_and_aiokafka() -> None:
    cage = ROOT / "pipeline" / "kafka" / "faust"
    paths = {
        path for each in ("pipeline", "agents", "schemas") for path in (ROOT / each).rglob("*.py")
    }
    caged = {"faust", "mode", "aiokafka"}
    knowing = {path for path in paths if caged & {name for name, *_ in _imported(path)}}
    assert knowing
    assert {path.parent for path in knowing} == {cage}


@cache
def _imported(path: Path) -> list[list[str]]:
    """Return the parts of each name that a module imports, at least two."""
    names: list[list[str]] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names += [f"{package}{alias.name}.".split(".") for alias in node.names]
    return names


def test_a_worker_loads_only_what_its_role_uses(tmp_path: Path) -> None:
    path = write_config(tmp_path / "fluxplain.toml", {**SETTINGS, "drift": {}})
    result = subprocess.run(
        [sys.executable, "-c", START, str(path), *LOADED],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "PYTHONPATH": bare_path()},
    )
    commands, *workers = (set(line.split()) for line in result.stdout.splitlines())
    assert not commands
    assert workers == list(LOADED.values())


@pytest.mark.parametrize(
    "package", [fluxplain.evaluate, fluxplain.explain, fluxplain.models, fluxplain.stages]
)
def test_what_a_package_offers_is_found(package: ModuleType) -> None:
    for name in package.__all__:
        # a module that was called as what it offers would be found in its place
        assert not inspect.ismodule(getattr(package, name)), name
        assert name in dir(package)
