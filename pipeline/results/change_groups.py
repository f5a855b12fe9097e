"""What changed together: incidents with all that belongs to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fluxplain.config.alert_settings import Severity
from fluxplain.results.feature_names import REAL_NAMES, FeatureNames
from fluxplain.results.notes import Notes
from fluxplain.results.severity import severity, urgency
from fluxplain.schemas import Change
from fluxplain.schemas.wording import in_short, plural

LOSS_SHARE = 0.1
"""Share of the loss by which it must differ to show a change."""


@dataclass(frozen=True, slots=True)
class Incident:
    """What changed together, for people.

    Attributes
    ----------
    text
        One sentence, without a full stop: the main change, whether the loss shows it, and how many
        others there are.
    severity
        The highest of its changes that lasted; of the main one if none did.
    effect
        ``effect_size`` of the main change; None if unknown.
    first, last
        The smallest and the largest seq of its changes.
    lasts, learning, acknowledged
        Whether some change lasts as far as is known, and whether the model was still learning, or
        people have acknowledged the change, at all that last.
    changes
        Ids of its changes, the main one first, then by what they mean.
    """

    text: str
    severity: Severity
    effect: float | None
    first: int
    last: int
    lasts: bool
    learning: bool
    acknowledged: bool
    changes: list[str]


def ranked(
    changes: Iterable[Change], notes: Notes, window: int, names: FeatureNames = REAL_NAMES
) -> list[Incident]:
    """Return the incidents of one stream, without muted features; first what matters most.

    What lasts, is not acknowledged and no effect of learning comes first; then severity decides,
    effect, and time. Notices are left out.
    """
    heard = [each for each in changes if not each.is_notice and not notes.hides(each)]
    found = [_incident(group, notes, names) for group in in_incidents(heard, window)]
    return sorted(found, key=_rank, reverse=True)


def _rank(incident: Incident) -> tuple[bool, bool, bool, int, float, int]:
    return (
        incident.lasts,
        not incident.learning,
        not incident.acknowledged,
        urgency(incident.severity),
        incident.effect or 0.0,
        incident.last,
    )


def _incident(group: Sequence[Change], notes: Notes, names: FeatureNames) -> Incident:
    steps = [each for each in group if each.is_step] or list(group)
    main = max(steps, key=weight)
    others = sorted((each for each in group if each is not main), key=weight, reverse=True)
    more = f", with {plural(len(others), 'other change')}" if others else ""
    return Incident(
        text=f"{in_short(names.change(main))}{more}{of_loss(group, main)}",
        severity=max(map(severity, steps), key=urgency),
        effect=main.effect_size,
        first=min(each.seq for each in group),
        last=max(each.seq for each in group),
        lasts=main.is_step,
        learning=all(each.learning for each in steps),
        acknowledged=all(notes.acknowledged(each.id) is not None for each in steps),
        changes=[main.id, *(each.id for each in others)],
    )


def weight(change: Change) -> tuple[bool, bool, int, bool, float, int]:
    """Return a sort key: what lasts, and is not only the loss; urgent, of explanations, large."""
    is_loss, level = change.method == "loss", urgency(severity(change))
    effect = change.effect_size or 0.0
    return change.is_step, not is_loss, level, change.kind == "drift", effect, change.seq


def of_loss(incident: Sequence[Change], main: Change, news: Sequence[Change] = ()) -> str:
    """Return whether the loss shows the main change, too; nothing if that is not known.

    It is not known either if the loss rose in other ``news``: it may have shown the change late.
    """
    if main.method == "loss":
        return ""
    before, after = main.loss_before, main.loss_after
    if before is not None and after is not None and abs(after - before) > LOSS_SHARE * abs(before):
        return f"; the loss {'rose' if after > before else 'fell'}"
    losses = [each for each in incident if each.is_of_loss and each.direction]
    if losses:
        nearest = min(losses, key=lambda each: abs(_began(each) - _began(main)))
        return f"; the loss {nearest.direction}"
    has_risen = any(each.is_of_loss and each.direction == "rose" for each in news)
    is_unknown = has_risen or before is None or after is None
    return "" if is_unknown else "; the loss does not show it"


def _began(change: Change) -> int:
    return change.seq if change.after_seq is None else change.after_seq


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
