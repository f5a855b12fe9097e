"""Checks of parameters that several explainers and storages share."""

from collections.abc import Collection
from typing import Literal

ALL: Literal["all"] = "all"


def check_share(name: str, number: float) -> float:
    """Return a parameter's number, or raise ``ValueError`` if it is not in (0, 1]."""
    if isinstance(number, Collection) or not 0.0 < number <= 1.0:
        raise ValueError(f"{name} is {number!r}, but must lie in (0, 1]")
    return number


def check_size(size: int) -> int:
    """Return ``size``, or raise ``ValueError`` if it is no integer of at least 1."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(f"size is {size!r}, but must be an integer of at least 1")
    return size


def check_warm_up(warm_up: int | None, reservoir_size: int) -> int:
    """Return ``warm_up``, by default ``reservoir_size``; raise ``ValueError`` if out of range."""
    if warm_up is None:
        return reservoir_size
    if not 1 <= warm_up <= reservoir_size:
        raise ValueError(f"warm_up is {warm_up!r}, but must lie in [1, {reservoir_size}]")
    return warm_up
