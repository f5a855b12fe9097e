"""Changes in a few words, for lists."""

from pipeline.digits import told_apart
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
    before, after = told_apart((change.before, None), (change.after, None), _written)
    if change.before == change.after:
        return printable(f"{what} stayed at {after}")
    verb = "rose" if change.after > change.before else "fell"
    return printable(f"{what} {verb} from {before} to {after}")


def _written(value: float, _: float | None, more: int) -> str:
    return f"{value:.{3 + more}g}"
