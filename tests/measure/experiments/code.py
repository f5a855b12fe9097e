"""The code that a result depends on, so that results of different code are not mixed."""

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ALWAYS = ("fluxplain.explain", "fluxplain.evaluate", "fluxplain.baselines")

Place = tuple[str, str]
"""A module, and a name in it."""


def code_behind(module: str, name: str) -> set[str]:
    """Return the code that a function, named by its module and name, leads to.

    Docstrings and comments are left out. The code is what the names in it stand for, and the names
    in that, and so on: what only the report uses is not among it. The packages that explain are
    always among it, as a whole.
    """
    code = {ast.unparse(tree) for package in ALWAYS for tree in _trees(package)}
    seen: set[Place] = set()
    places = [(module, name)]
    while places:
        place = places.pop()
        if place not in seen:
            seen.add(place)
            found, names = _look_up(*place)
            code |= found
            places += names
    return code


def _look_up(module: str, name: str) -> tuple[set[str], list[Place]]:
    """Return the code of a name, and the places of the names in it."""
    if module.partition(".")[0] not in ("fluxplain", "tests") or module.startswith(ALWAYS):
        return set(), []
    top = _top(module)
    if name not in top:  # a module of this package
        inner = f"{module}.{name}"
        return set(), [(inner, each) for each in _top(inner)]
    statement, original = top[name]
    if isinstance(statement, ast.ImportFrom):
        return set(), [(statement.module or "", original)]
    used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return {ast.unparse(statement)}, [(module, each) for each in sorted(used & top.keys())]


@cache
def _top(module: str) -> dict[str, tuple[ast.stmt, str]]:
    """Return for each name at the top of a module what binds it, and its name where it is from."""
    [tree] = _trees(module)
    return {name: (node, original) for node in tree.body for name, original in _bound(node)}


def _bound(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ImportFrom):
        yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name, node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for each in (each for target in targets for each in ast.walk(target)):
            if isinstance(each, ast.Name):
                yield each.id, each.id


@cache
def whole_code(*packages: str) -> set[str]:
    """Return all code of some packages or modules; docstrings and comments are left out."""
    return {ast.unparse(tree) for each in packages for tree in _trees(each, whole=True)}


def _trees(module: str, *, whole: bool | None = None) -> tuple[ast.Module, ...]:
    """Return a module, or all modules of a package."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin)
    is_whole = module in ALWAYS if whole is None else path.name == "__init__.py"
    paths = sorted(path.parent.rglob("*.py")) if is_whole else [path]
    return tuple(_WithoutDocstrings().visit(ast.parse(each.read_text("utf-8"))) for each in paths)


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node
