"""Copies of sets: River's sums and ties follow the order of sets."""

from typing import TypeVar

T = TypeVar("T")


def copy_of(values: set[T]) -> set[T]:
    """Return a copy of a set with the same order, if Python has a way to make one.

    Otherwise it has the order of another copy, as a copy of River's model would.
    """
    found = values.copy()
    return found if [*found] == [*values] else set([*values])  # noqa: C405  one by one
