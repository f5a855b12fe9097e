"""Packages that import a module when one of its names is first asked for."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def lazy(
    package: str, **modules: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return what a package needs to offer names of its modules before these are imported.

    A role of the pipeline is a process of its own: it starts sooner, and needs less memory, if it
    imports only what it uses.

    Parameters
    ----------
    package
        Its name.
    modules
        Module → its names that the package offers. No module may be called as such a name: once
        imported, it would be found in the place of the name.

    Returns
    -------
    The ``__getattr__`` and the ``__dir__`` of the package (PEP 562).

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
