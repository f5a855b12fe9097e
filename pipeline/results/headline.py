"""The state of a stream in a few words: what the model relies on, what changed, how fresh it is."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fluxplain.config import Config
from fluxplain.config.checkpoint_settings import MOST_LONGER
from fluxplain.results.change_groups import in_incidents, of_loss, weight
from fluxplain.results.feature_names import REAL_NAMES, FeatureNames
from fluxplain.results.notes import NO_NOTES, Notes
from fluxplain.results.pipeline_status import PipelineStatus, RoleStatus
from fluxplain.results.severity import severity, urgency
from fluxplain.results.stream_results import TOP, StreamResults, StreamView
from fluxplain.schemas import Change
from fluxplain.schemas.change_wording import percent
from fluxplain.schemas.methods import METHOD_NAMES, Method
from fluxplain.schemas.wording import in_short, listed, plural, printable

Tone = Literal["calm", "changed", "quiet", "late", "lost", "waiting"]
"""Nothing to do; a change to look at; no new records; the pipeline is behind; it stopped, or does
not answer; nothing is known yet."""

CERTAIN = 2.0
"""Standard errors above 0 from which on the model surely relies on a feature."""


class Limits(NamedTuple):
    """From when on something is news, or wrong.

    Attributes
    ----------
    recent
        Observations for which a change is news: as long as it is followed up.
    patience_s
        Seconds without progress, or behind, from which on something is wrong. Roles commit with
        their checkpoints, so they seem to wait in between.
    settled_s
        Seconds without progress after which messages surely wait, if no results come either.
    together
        Observations within which changes belong to one incident.
    """

    recent: int = 1000
    patience_s: float = 120.0
    settled_s: float = 15.0
    together: int = 1000

    @classmethod
    def configured(cls, config: Config) -> "Limits":
        """Return the limits that fit to the settings."""
        longest_s = MOST_LONGER * config.checkpoint.interval_s
        settled_s = max(3.0 * config.checkpoint.interval_s, 15.0)
        drift, patience_s = config.drift, max(2.0 * longest_s, 60.0)
        return cls(drift.follow_up, patience_s, settled_s, drift.incident_window)


DEFAULT = Limits()

LEAST_SHARE = 0.005
"""Smallest share of all importance that is worth naming."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The state of a stream.

    Attributes
    ----------
    tone
        How urgent it is; see :data:`Tone`.
    relies_on, change, pipeline
        What the model relies on now, what changed last, and whether the pipeline keeps up: a
        sentence each, without a full stop.
    method, shares
        Feature → share of all importance by this method, from 0 to 1: the largest ones.
    change_id
        The change that the sentence is about; None without one.
    """

    tone: Tone
    relies_on: str
    change: str
    pipeline: str
    method: Method | None = None
    shares: Mapping[str, float] | None = None
    change_id: str | None = None

    @property
    def text(self) -> str:
        """All in one line."""
        return printable(". ".join((self.change, self.relies_on, self.pipeline, ""))).strip()


def headline(  # noqa: PLR0917
    results: StreamResults,
    status: PipelineStatus,
    alphas: Sequence[float] = (),
    limits: Limits = DEFAULT,
    notes: Notes = NO_NOTES,
    names: FeatureNames = REAL_NAMES,
) -> Headline:
    """Return the state of a stream; ``alphas`` are the preferred smoothing rates.

    Changes of muted features are left out, and acknowledged ones are no news.
    """
    view = results.at(alphas)
    method = next(iter(view.methods), None)
    shares = {} if method is None else _shares(view, method)
    heard = [each for each in view.changes if not notes.hides(each)]
    latest = _latest(results, heard, notes, limits)
    news, main = latest.news, latest.main
    is_silent = main is None and len(heard) < len(view.changes)
    muted = ", apart from those of muted features" if is_silent else ""
    tone, pipeline = _pipeline(results, status, limits)
    if tone == "calm" and news:
        tone = "changed"
    return Headline(
        tone=tone,
        relies_on=_relies_on(method, {names.of(name): n for name, n in shares.items()}),
        change=_changed(results, latest, notes, names) + muted,
        pipeline=pipeline,
        method=method,
        shares=shares,
        change_id=None if main is None else main.id,
    )


def _shares(view: StreamView, method: Method) -> dict[str, float]:
    """Return the largest shares of all importance by a method that are surely above 0."""
    newest = view.newest(method)
    total = sum(abs(each.value) for each in newest.values())
    sure = {
        feature: each.value / total
        for feature, each in newest.items()
        if each.std_error is not None
        and each.value > max(CERTAIN * each.std_error, LEAST_SHARE * total)
    }
    return dict(sorted(sure.items(), key=lambda item: (-item[1], item[0]))[:TOP])


def _relies_on(method: Method | None, shares: Mapping[str, float]) -> str:
    if method is None:
        return "No explanation yet"
    if not shares:
        return f"By {METHOD_NAMES[method]}, the model surely relies on no feature yet"
    features = [f"{feature} ({percent(share)})" for feature, share in shares.items()]
    return f"By {METHOD_NAMES[method]}, the model relies most on {listed(features)}"


class _Latest(NamedTuple):
    """The changes that are news, the main one, and its incident.

    The incident is that of the most urgent news, or the last one without news; of equally urgent
    news, that of the newest.
    ``seq`` is that of the newest lasting change; ``is_last`` tells whether none is newer.
    """

    news: list[Change]
    main: Change | None
    incident: list[Change]
    seq: int
    is_last: bool


def _latest(
    results: StreamResults, changes: Sequence[Change], notes: Notes, limits: Limits
) -> _Latest:
    steps = [each for each in changes if not each.is_notice]
    lasting = [each for each in steps if each.is_step]
    if not lasting:
        return _Latest([], None, [], -1, not steps)
    news = [
        each
        for each in lasting
        if not each.learning
        and each.seq > results.newest_seq - limits.recent
        and notes.acknowledged(each.id) is None
    ]
    groups = in_incidents(lasting, limits.together)
    incident = groups[-1]
    if news:
        urgent = max(news, key=lambda each: (urgency(severity(each)), each.seq))
        incident = next(group for group in groups if any(each is urgent for each in group))
    told = [each for each in incident if any(each is new for new in news)]
    main = max(told or incident, key=weight)
    seq = max(each.seq for each in lasting)
    return _Latest(news, main, incident, seq, all(each.seq <= seq for each in steps))


def _changed(results: StreamResults, latest: _Latest, notes: Notes, names: FeatureNames) -> str:
    news, main = latest.news, latest.main
    nothing = "No change" if latest.is_last else "No lasting change"
    if main is None:
        return f"{nothing} so far" if results.newest_seq >= 0 else "Nothing to explain yet"
    told = in_short(names.change(main))
    if not news:
        ago = plural(max(results.newest_seq - latest.seq, 0), "record")
        known = ", acknowledged" if notes.acknowledged(main.id) else ""
        known += ", while the model was still learning" if main.learning else ""
        return f"{nothing} for {ago}; the last{known}: {told}"
    since = max(results.newest_seq - main.seq, 0)
    others = f", with {plural(len(news) - 1, 'other change')}" if len(news) > 1 else ""
    when = f"{plural(since, 'record')} ago" if since else "just now"
    return f"Changed {when}: {told}{others}{of_loss(latest.incident, main, news)}"


def _pipeline(results: StreamResults, status: PipelineStatus, limits: Limits) -> tuple[Tone, str]:
    if status.trouble is not None:
        return "lost", f"Unknown whether the pipeline keeps up: {status.trouble}"
    if status.to_read and not status.is_loaded:
        return "waiting", f"Reading the history: {percent(status.read / status.to_read)}"
    if (waiting := _waiting(status, limits)) is not None:
        return waiting
    if results.newest_seq < 0:
        return "waiting", "Waiting for the first record"
    if status.has_roles and not status.roles:
        return "waiting", "Asking the broker how far the roles are"
    return _progress(results, status, limits)


def _waiting(status: PipelineStatus, limits: Limits) -> tuple[Tone, str] | None:
    """Return that messages wait for longer than they should; None if they do not.

    The roles' progress is seen only for as long as somebody looks, so the time since the newest
    result counts, too, from when the messages began to wait.
    """
    if not status.roles:
        return None
    stalled = max(status.roles, key=RoleStatus.stalled_s)
    oldest = max(status.roles, key=RoleStatus.waited_s)
    stalled_s, silent_s = stalled.stalled_s(), min(status.freshness.quiet_s(), oldest.waited_s())
    is_silent = silent_s > limits.patience_s
    if stalled_s > limits.patience_s or (is_silent and stalled_s > limits.settled_s):
        since, to_go = duration(max(stalled_s, silent_s)), plural(stalled.lag, "message")
        return "lost", f"Stopped: no progress for {since}; {stalled.part} has {to_go} to go"
    to_go = f"{oldest.part} has {plural(oldest.lag, 'message')} to go"
    if is_silent:
        return "late", f"No result for {duration(silent_s)}, and {to_go}"
    if oldest.waited_s() > limits.patience_s:
        return "waiting", f"Not known yet whether the pipeline keeps up: {to_go}"
    if min(stalled_s, silent_s) > limits.settled_s:
        return "waiting", f"No result for {duration(silent_s)}, and {to_go}"
    return None


def _progress(results: StreamResults, status: PipelineStatus, limits: Limits) -> tuple[Tone, str]:
    lag = max((role.lag for role in status.roles if role.reads_source), default=0)
    rate = status.throughput.rate(time.monotonic())
    if rate > 0.0 and lag / rate > limits.patience_s:
        return "late", f"{duration(lag / rate)} behind: {plural(lag, 'record')} to go"
    quiet_s = results.freshness.quiet_s()
    if quiet_s > limits.patience_s:
        return "quiet", f"No new record for {duration(quiet_s)}" + (", and none waits" * (not lag))
    return "calm", "The pipeline keeps up" if status.roles else "All records are read"


def duration(seconds: float) -> str:
    """Return a time in its largest whole unit.

    Examples
    --------
    >>> duration(59), duration(125), duration(7300), duration(200_000)
    ('59 seconds', '2 minutes', '2 hours', '2 days')
    """
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return plural(int(seconds // size), unit)
    return plural(int(seconds), "second")
