"""What a process loads, and what a package offers and may import."""

import ast
import inspect
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
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

from fluxplain.cli.commands import app
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

FOLDERS = {"pipeline": "fluxplain", "agents": "fluxplain.agents", "schemas": "fluxplain.schemas"}
"""Folder of the product → the package it is imported as."""

SHARED = {"__init__", "__main__"}
"""Names that several modules have."""

ARROWS = {
    "schemas": "",
    "pipeline/loading": "spelling",
    "pipeline/http": "",
    "pipeline/evaluate": "loading",
    "pipeline/forest": "loading evaluate",
    "pipeline/explain": "loading evaluate",
    "pipeline/baselines": "evaluate explain",
    "pipeline/drift": "errors spelling loading evaluate schemas",
    "pipeline/models": "errors loading evaluate schemas __version__",
    "pipeline/config": "errors spelling loading evaluate forest explain drift models schemas",
    "pipeline/sources": "errors spelling config schemas",
    "pipeline/stages": "errors spelling loading evaluate explain drift models config schemas",
    "pipeline/kafka": "errors explain models stages config http schemas __version__",
    "pipeline/results": "errors drift kafka config sources schemas",
    "pipeline/monitor": "errors loading results config http schemas",
    "pipeline/alerts": "results config kafka schemas __version__",
    "agents": "stages kafka config schemas",
    "pipeline/cli": "errors spelling loading evaluate forest models stages kafka results monitor "
    "alerts sources config schemas agents local __version__",
}
"""Folder → all of ours that its modules may import, from the foundations to the roof."""


def test_a_worker_does_not_load_data_frames_that_are_installed_beside_it() -> None:
    code = (
        "from fluxplain.loading.deferred import defer\n"
        "defer()\n"
        "import sys\n"
        "from fluxplain.stages import ModelStage\n"
        "print({'pandas', 'sklearn'} & set(sys.modules))\n"
        "from river import datasets, drift\n"
        "print(len(next(iter(datasets.Phishing()))[0]))\n"
        "print(drift.datasets.AirlinePassengers.__name__)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["set()", "9", "AirlinePassengers"]


def test_no_arrow_leads_upwards() -> None:
    below = {"errors", "spelling", "local", "__version__"}
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
    paths = _modules().values()
    caged = {"faust", "mode", "aiokafka"}
    knowing = {path for path in paths if caged & {name for name, *_ in _imported(path)}}
    assert knowing
    assert {path.parent for path in knowing} == {cage}


def test_modules_import_each_other_without_cycles() -> None:
    modules = _modules()
    graph = {name: set(_needed(path, modules)) for name, path in modules.items()}
    assert sum(map(len, graph.values())) > len(graph)
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def test_imports_of_functions_and_types_are_not_needed_to_load_a_module(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import a\n"
        "from b import name\n"
        "class C:\n    from b import c\n    def f(self):\n        import d\n"
        "if TYPE_CHECKING:\n    import e\nelse:\n    import g\n"
    )
    assert [*_needed(module, ["a", "b", "b.c", "d", "e", "g"])] == ["a", "b", "b.c", "g"]


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(path.stem for path in _modules().values())
    twice = {name for name, n in names.items() if n > 1}
    assert twice == SHARED


def _modules() -> dict[str, Path]:
    """Return the product's modules by the names they are imported as."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join([package, *parts]).removesuffix(".__init__")] = path
    return found


def _needed(path: Path, modules: Container[str]) -> Iterator[str]:
    """Yield the modules among these that a module imports when it is loaded."""
    for node in _run_at_import(ast.parse(path.read_text("utf-8")).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = (name if name in modules else node.module for name in inner)
            yield from (name for name in names if name in modules)


def _run_at_import(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes outside of functions and of ``if TYPE_CHECKING``."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _run_at_import(node.orelse)
        else:
            yield from _run_at_import(ast.iter_child_nodes(node))


@cache
def _imported(path: Path) -> list[list[str]]:
    """Return the parts of each name that a module imports, at least two."""
    names: list[list[str]] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names += [f"{package}{alias.name}.".split(".") for alias in node.names]
    return names


@pytest.mark.slow
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
