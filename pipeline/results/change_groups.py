"""What changed together: incidents with all that belongs to them."""

from collections.abc import Iterable

from fluxplain.schemas import Change


def in_incidents(changes: Iterable[Change], window: int) -> list[list[Change]]:
    """Group the changes of one stream by incident, the earliest first; notices stand alone.

    The drift role names the incidents of explanations. A change of the loss, inputs or predictions
    has none: it belongs to the incident that began at most ``window`` observations before it, or
    after it.

    Examples
    --------
    >>> from dataclasses import replace
    >>> step = Change.notice(kind="drift", stream="s-0", seq=5_039, detail="", method="loss")
    >>> other = Change.notice(kind="input", stream="s-0", seq=7_510, detail="", feature="a")
    >>> named = replace(step, seq=5_051, incident="s-0@5051", feature="a", method="ipfi")
    >>> [len(each) for each in in_incidents([step, named, other], window=1_000)]
    [2, 1]
    """
    found: list[list[Change]] = []
    of_name: dict[str, list[Change]] = {}
    current: list[Change] | None = None
    for change in sorted(changes, key=lambda each: (each.seq, each.id)):
        if change.is_notice:
            found.append([change])
            continue
        group = None if change.incident is None else of_name.get(change.incident)
        if group is None and current is not None and _joins(change, current, window):
            group = current
        if group is None:
            group = current = []
            found.append(group)
        group.append(change)
        if change.incident is not None:
            of_name[change.incident] = group
    return found


def _joins(change: Change, group: list[Change], window: int) -> bool:
    """Return whether a change belongs to a group, whose incident may have no name yet."""
    is_named = change.incident is not None and any(each.incident for each in group)
    return not is_named and change.seq - group[0].seq <= window
