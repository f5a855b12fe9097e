"""The times that observations state, as moments."""

from contextlib import suppress
from datetime import UTC, datetime

from fluxplain.schemas.record import Timestamp

UNITS = ((1e8, 1.0), (1e11, 1e3), (1e14, 1e6), (1e17, 1e9))
"""Smallest number of each unit, and how many of them are a second: seconds since 1970 from 1973 on,
milliseconds, microseconds and nanoseconds. Smaller numbers are counters, or years."""

LARGEST = 1e20


def moment(ts: Timestamp | None) -> float | None:
    """Return a time as seconds since 1970; None if it is none that one can know.

    Texts are in a format of ISO 8601; without an offset, they are taken as UTC.

    Examples
    --------
    >>> moment(1795392506.25), moment(1795392506250), moment("2026-11-22T22:48:26.25")
    (1795392506.25, 1795392506.25, 1795387706.25)
    >>> moment(17), moment("Monday"), moment(None)
    (None, None, None)
    """
    if isinstance(ts, str):
        with suppress(ValueError, OverflowError):
            time = datetime.fromisoformat(ts)
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        return None
    if ts is None or not UNITS[0][0] <= ts < LARGEST:
        return None
    return next(ts / per_s for least, per_s in reversed(UNITS) if ts >= least)


def readable(ts: Timestamp) -> str:
    """Return a time as a person reads it: numbers as date and time in UTC, texts as they are.

    Examples
    --------
    >>> readable(1795392506.6392417), readable("22.11.2026"), readable(17)
    ('2026-11-23 00:08:26 UTC', '22.11.2026', '17')
    """
    seconds = None if isinstance(ts, str) else moment(ts)
    with suppress(ValueError, OverflowError, OSError):
        if seconds is not None:
            return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return str(ts)
