"""Wording of numbers, changes and names for terminals, figures and messages."""

import math
from collections.abc import Callable, Sequence

from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHOD_NAMES

MAX_EXTRA_DIGITS = 17
"""Significant digits that distinguish any two floats."""

Mean = tuple[float, float | None]
"""A number and its standard error; None if that is unknown."""

Write = Callable[[float, float | None, int], str]
"""Formats a number and its standard error with so many extra digits. The text is the number, or
begins with it and a space."""


def distinct_texts(one: Mean, other: Mean, write: Write) -> tuple[str, str]:
    """Format two numbers with enough digits to see which is larger; equal ones with few."""
    difference = other[0] - one[0]
    for more in range(MAX_EXTRA_DIGITS):
        texts = write(*one, more), write(*other, more)
        if not difference or not math.isfinite(difference):
            break
        first, second = (float(text.split()[0]) for text in texts)
        if (second > first) == (difference > 0) and first != second:
            break
    return texts


def moved(before: Mean, after: Mean, write: Write, *, seems: bool = False) -> str:
    """Describe the change of a number: it rose, fell or stayed, or seems to have done so."""
    texts = distinct_texts(before, after, write)
    if before[0] == after[0]:
        return f"stayed at {texts[1]}"
    is_higher = after[0] > before[0]
    verbs = ("seems to have fallen", "seems to have risen") if seems else ("fell", "rose")
    return f"{verbs[is_higher]} from {texts[0]} to {texts[1]}"


def written(value: float, _std_error: float | None, more: int) -> str:
    """Format a number without its standard error, with three digits and ``more``."""
    return f"{value:.{3 + more}g}"


def measured(value: float, std_error: float | None, scale: float, more: int = 0) -> str:
    """Format a value ± its standard error, if known; digits as in :func:`number`."""
    text = number(value, scale, more)
    return text if std_error is None else f"{text} ±{number(std_error, scale, more)}"


def number(value: float, scale: float, more: int = 0) -> str:
    """Format a number to ``more`` digits beyond three of the scale."""
    if not math.isfinite(value):
        return "?"
    digits = decimals(scale)
    if digits is None:
        return f"{value:.{2 + more}g}"
    digits += more
    # 0.0 added: no "-0.000"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def decimals(scale: float) -> int | None:
    """Return the number of decimals for a scale; None if scientific notation reads better."""
    if not 1e-3 <= scale < 1e6:
        return None if scale else 3
    return max(0, 2 - math.floor(math.log10(scale)))


def compared(
    before: float | None,
    after: float | None,
    before_std_error: float | None = None,
    after_std_error: float | None = None,
) -> tuple[str, str]:
    """Format a value before and after, with enough digits to see that they differ."""
    scale = max(abs(before or 0.0), abs(after or 0.0))

    def write(value: float, std_error: float | None, more: int = 0) -> str:
        return measured(value, std_error, scale, more)

    if before is None or after is None:
        one = "–" if before is None else write(before, before_std_error)
        return one, "–" if after is None else write(after, after_std_error)
    return distinct_texts((before, before_std_error), (after, after_std_error), write)


def in_short(change: Change) -> str:
    """Describe a change in one line; a notice by its kind and detail."""
    if change.is_notice:
        return printable(f"{change.kind}: {change.detail}")
    if change.after is None or (change.method is None and not change.is_of_distribution):
        return printable(change.detail)
    text = f"{subject(change)} changed to {change.after:.3g}"
    if change.before is not None:
        levels = (change.before, None), (change.after, None)
        text = f"{subject(change)} {moved(*levels, written)}"
    return printable(text + (f" ({STATUS[change.status]})" if change.status in STATUS else ""))


STATUS = {
    "noticed": "new",
    "confirmed": "confirmed",
    "unclear": "not certain",
    "transient": "did not last",
    "reverted": "undone by a further change",
}
"""Status of a change → words."""


ERRORS = "wrong predictions"
"""Name of the signal ``"error"``."""


def subject(change: Change) -> str:
    """Return what changed: the loss, the share of wrong predictions, or an explanation.

    Examples
    --------
    >>> notice = Change.notice(
    ...     kind="drift", stream="features-0", seq=7, detail="", feature="age", method="ipdp"
    ... )
    >>> subject(notice)
    'iPDP of age'
    """
    if change.signal == "error":
        return f"the share of {ERRORS}"
    if change.is_of_distribution:
        return _of_distribution(change)
    if change.method == "loss" or change.method is None:
        return "the loss"
    name = "the trend" if change.signal == "trend" else METHOD_NAMES[change.method]
    return name if change.feature is None else f"{name} of {change.feature}"


def _of_distribution(change: Change) -> str:
    """Return what changed: a feature's mean or spread, or the share of a category.

    Examples
    --------
    >>> from dataclasses import replace
    >>> about = {"stream": "features-0", "seq": 7, "detail": "", "feature": "car"}
    >>> step = Change.notice(kind="input", **about)
    >>> _of_distribution(replace(step, signal="share", category="bmw"))
    'the share of car = bmw'
    >>> _of_distribution(replace(step, kind="output", signal="share", category=True))
    'the predicted probability of True'
    """
    if change.kind == "output" and change.signal == "share":
        return f"the predicted probability of {change.category}"
    if change.kind == "output":
        return (
            "the spread of the predictions" if change.signal == "spread" else "the mean prediction"
        )
    if change.signal == "share":
        return f"the share of {change.feature} = {change.category}"
    return f"{'the spread of ' if change.signal == 'spread' else ''}input {change.feature}"


def signal_name(change: Change) -> str:
    """Return the name of the changed method or signal, or the kind of the notice."""
    if change.signal == "error":
        return ERRORS
    return METHOD_NAMES[change.method] if change.method else change.kind


def plural(n: int, thing: str) -> str:
    """Return a count with its noun."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def listed(things: Sequence[str]) -> str:
    """Return things in a sentence.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(things[:-1]), things[-1]] if len(things) > 1 else things)


def printable(text: str) -> str:
    """Replace characters that could control a terminal: records may hold any text."""
    return "".join(c if c.isprintable() else "�" for c in text)
