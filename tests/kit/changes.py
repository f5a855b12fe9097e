"""What a watch of one series finds."""

from fluxplain.drift.follow_up import Shift
from fluxplain.drift.signal_watch import SignalWatch


def shifts_at(watch: SignalWatch, seq: int, number: float) -> list[Shift]:
    """Return the shift that the watch finds at a number, if any, without outcomes."""
    return [each for each in watch.update(seq, number, None) if isinstance(each, Shift)]
