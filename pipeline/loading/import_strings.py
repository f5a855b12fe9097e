"""Loads the user's code by import string, ``module:name``."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, cast


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
            close = get_close_matches(part, dir(target), n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"{module_name} has no {name}{meant}") from None
        sought = ""
        if isinstance(error, ModuleNotFoundError):
            sought = f"; looked in {os.getcwd()} and among the installed packages"
        raise ValueError(
            f"cannot import {module_name}: {type(error).__name__}: {error}{sought}"
        ) from error
    if not callable(target):
        raise ValueError("it is not a function or class")
    return cast(Callable[..., Any], target)


def parameters(factory: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a factory's parameters; none if its signature is unknown."""
    try:
        return frozenset(inspect.signature(factory).parameters)
    except (TypeError, ValueError):
        return frozenset()
