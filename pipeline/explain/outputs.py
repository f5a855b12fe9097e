"""Averages of model outputs: numbers, or class → probability.

A class that an output lacks counts as probability 0.
"""

from collections.abc import Sequence

from pipeline.evaluate import Label, Output


def mean_output(outputs: Sequence[Output]) -> Output:
    """Return the mean of one or more outputs of the same kind.

    The mean is built up one output at a time, so that the mean of equal outputs is that output,
    exactly.

    Examples
    --------
    >>> mean_output([1.0, 2.0])
    1.5
    >>> mean_output([{"a": 1.0}, {"b": 1.0}])
    {'a': 0.5, 'b': 0.5}
    """
    mean = outputs[0]
    for count, output in enumerate(outputs[1:], start=2):
        mean = move(mean, output, 1.0 / count)
    return mean


def move(current: Output, towards: Output, weight: float) -> Output:
    """Return ``current`` moved by ``weight`` (0 to 1) of the way towards another output.

    Raises
    ------
    TypeError
        If one output is a number and the other a set of probabilities.
    """
    if isinstance(current, dict) and isinstance(towards, dict):
        labels = dict.fromkeys((*current, *towards))
        return {
            label: _move(current.get(label, 0.0), towards.get(label, 0.0), weight)
            for label in labels
        }
    if isinstance(current, dict) or isinstance(towards, dict):
        raise TypeError("the model gave a number once and probabilities another time")
    return _move(current, towards, weight)


def _move(current: float, towards: float, weight: float) -> float:
    return current + weight * (towards - current)


def predicted_class(probabilities: dict[Label, float]) -> Label | None:
    """Return the most probable class, of equals the first, as River does; None if there is none.

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
