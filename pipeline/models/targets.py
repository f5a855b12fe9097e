"""What a model of arrays predicts: classes, a number, or how unusual an observation is."""

from collections.abc import Sequence

from pipeline.evaluate import Label

KINDS = {"boolean": bool, "integer": int, "string": str}
"""Label type → type of its classes. Besides, there are ``"number"`` and ``"none"``."""


def check_label(label: str) -> None:
    """Raise ``ValueError`` if there is no such type of label."""
    allowed = [*KINDS, "number", "none"]
    if label not in allowed:
        raise ValueError(f"label is {label!r}, but must be one of {', '.join(allowed)}")


def classes_of(label: str, classes: Sequence[Label] | None) -> list[Label]:
    """Return the classes, sorted as scikit-learn sorts them.

    Parameters
    ----------
    label
        ``"boolean"``, ``"integer"`` or ``"string"``.
    classes
        As configured; ``"boolean"`` needs none.

    Raises
    ------
    ValueError
        If they are needed, too few, or of another type.

    Examples
    --------
    >>> classes_of("boolean", None), classes_of("string", ["no", "maybe"])
    ([False, True], ['maybe', 'no'])
    """
    kind = KINDS[label]
    if classes is None:
        if label == "boolean":
            return [False, True]
        example = "[0, 1]" if label == "integer" else '["no", "yes"]'
        raise ValueError(f"classes is missing: it must name all {label} labels, as {example}")
    if not isinstance(classes, Sequence) or isinstance(classes, str):
        raise ValueError(f"classes is {classes!r}, but must be a list")
    wrong = [each for each in classes if type(each) is not kind]
    if wrong:
        raise ValueError(f"classes has {wrong[0]!r}, but label.type is {label!r}")
    if len(set(classes)) < len(classes) or len(classes) < 2:
        raise ValueError(f"classes is {classes!r}, but must be at least two, each once")
    return sorted(classes)
