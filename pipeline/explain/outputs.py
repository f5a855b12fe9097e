"""The predicted class of an output, and the class whose probability is shown."""

from collections.abc import Sequence

from fluxplain.evaluate import Label


def predicted_class(probabilities: dict[Label, float]) -> Label | None:
    """Return the most probable class, of equals the first, as River does; None without classes.

    Examples
    --------
    >>> predicted_class({0: 0.5, 1: 0.5}), predicted_class({})
    (0, None)
    """
    return max(probabilities, key=probabilities.__getitem__) if probabilities else None


def positive_class(classes: Sequence[Label]) -> Label | None:
    """Return the class whose probability a binary curve shows: the largest of at most two.

    ``True`` before ``False``, 1 before 0, the last in the alphabet for names. None when there are
    more than two classes, or none.

    Examples
    --------
    >>> positive_class([True, False]), positive_class([0, 1]), positive_class(["a", "b", "c"])
    (True, 1, None)
    """
    if len(classes) not in (1, 2):
        return None
    return max(classes, key=label_order)


def label_order(label: Label) -> tuple[str, Label]:
    """Return a sort key that orders labels of any kinds, the same in every process."""
    return (type(label).__name__, label)
