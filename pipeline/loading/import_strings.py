"""Loads the user's code by import string, ``module:name``."""

import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable
from typing import Any, cast

from fluxplain.spelling import hint


def load(reference: str) -> Callable[..., Any]:
    """Import a function or class, ``module:name``, also from the working directory.

    >>> load("json:loads")("[1]")
    [1]
    >>> load("json:load_all")
    Traceback (most recent call last):
        ...
    ValueError: json has no load_all; did you mean load?
    """
    module_name, _, name = reference.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    target: Any = None
    part = ""
    try:
        target = importlib.import_module(module_name)
        for part in name.split("."):
            target = getattr(target, part)
    except Exception as error:  # the user's module may raise anything
        if target is not None and isinstance(error, AttributeError):
            meant = hint(part, dir(target))
            raise ValueError(f"{module_name} has no {name}{meant}") from None
        sought = ""
        if isinstance(error, ModuleNotFoundError):
            sought = f"; looked in {os.getcwd()} and among the installed packages"
            sought += hint(*_unknown_module(module_name))
        raise ValueError(
            f"cannot import {module_name}: {type(error).__name__}: {error}{sought}"
        ) from error
    if not callable(target):
        raise ValueError("it is not a function or class")
    return cast(Callable[..., Any], target)


def _unknown_module(name: str) -> tuple[str, list[str]]:
    """Return the first part of a module's name that is not there, and the names beside it."""
    parent, _, rest = name.partition(".")
    if parent not in sys.modules:
        return parent, [each.name for each in pkgutil.iter_modules()]
    while rest:
        part, _, rest = rest.partition(".")
        if f"{parent}.{part}" not in sys.modules:
            folders = getattr(sys.modules[parent], "__path__", [])
            return part, [each.name for each in pkgutil.iter_modules(folders)]
        parent = f"{parent}.{part}"
    return name, []


def parameters(factory: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a factory's parameters; none if its signature is unknown."""
    try:
        return frozenset(inspect.signature(factory).parameters)
    except (TypeError, ValueError):
        return frozenset()
