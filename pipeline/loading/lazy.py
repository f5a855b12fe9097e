"""Lazy packages: a module is imported when one of its names is first used."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def lazy(
    package: str, **modules: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return functions that let a package export names of modules not yet imported.

    Each role of the pipeline is a process: it starts sooner and needs less memory if it imports
    only what it uses. `modules` are the names that it exports, by module. No module may have the
    same name as an export: once imported, it would hide the export. The functions are the package's
    ``__getattr__`` and ``__dir__`` (PEP 562).

    Examples
    --------
    >>> find, names = lazy("fluxplain.evaluate", generic=["GenericEvaluator"])
    >>> find("GenericEvaluator").__module__, "GenericEvaluator" in names()
    ('fluxplain.evaluate.generic', True)
    >>> find("Nonsense")
    Traceback (most recent call last):
        ...
    AttributeError: module 'fluxplain.evaluate' has no attribute 'Nonsense'
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    def names() -> list[str]:
        return [*vars(sys.modules[package]), *module_of]

    return find, names
