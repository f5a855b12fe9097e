"""Changes in a few words, for lists."""

from pipeline.digits import moved, written
from pipeline.monitor.text import printable
from schemas import Change
from schemas.change import METHOD_NAMES


def in_short(change: Change) -> str:
    """Return what changed and how; of what is no drift, its kind and its whole sentence.

    Examples
    --------
    >>> from dataclasses import replace
    >>> gap = Change.notice(kind="gap", stream="features-0", seq=7, detail="some were lost")
    >>> in_short(gap)
    'gap: some were lost'
    >>> drift = replace(gap, kind="drift", method="isage", feature="age", before=0.1, after=0.4567)
    >>> in_short(drift), in_short(replace(drift, before=None))
    ('iSAGE of age rose from 0.1 to 0.457', 'iSAGE of age changed to 0.457')
    """
    if change.kind != "drift":
        return printable(f"{change.kind}: {change.detail}")
    if change.method is None or change.after is None:
        return printable(change.detail)
    name = "the loss" if change.method == "loss" else METHOD_NAMES[change.method]
    what = name if change.feature is None else f"{name} of {change.feature}"
    if change.before is None:
        return printable(f"{what} changed to {change.after:.3g}")
    text = moved((change.before, None), (change.after, None), written)
    return printable(f"{what} {text}")
