"""A model that takes over from another one."""

from typing import Any

from pipeline.models.scores import as_asked
from pipeline.models.usable import check_kind, check_usable


def taking_over(model: Any, *, label: str, learns: bool) -> Any:
    """Return a model as it is asked, if it can take over.

    Parameters
    ----------
    model, label, learns
        See :func:`~pipeline.models.usable.check_usable`.

    Raises
    ------
    ValueError
        If it cannot be explained, and why.
    """
    try:
        # it is not made: whatever random numbers it has, it brings along
        check_usable(model, lambda: model, label=label, learns=learns)
    except ValueError as error:
        raise ValueError(f"it is a {type(model).__name__}{error}") from error
    try:
        check_kind(model, label)
    except ValueError as error:
        raise ValueError(f"it is a {error}") from error
    return as_asked(model, label)
