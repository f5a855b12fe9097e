"""What a run says: its progress, its numbers, and the end of the workers' log."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline.supervisor import Supervisor, describe_status
from tests.chaos.collector import Collector
from tests.chaos.disturber import Disturber
from tests.chaos.verifier import Comparison

PROGRESS_S = 10.0

LOG_LINES = 25


class Clock:
    """Puts the time since the start before each line, and says when one about progress is due."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._began_at = self._told_at = time.monotonic()

    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._began_at

    def say(self, line: str) -> None:
        """Write a line."""
        self._write(f"{self.elapsed_s():6.1f} s  {line}")

    def progress(self, fed: int, collector: Collector, disturber: Disturber) -> None:
        """Write how far it is, every few seconds."""
        if time.monotonic() - self._told_at < PROGRESS_S:
            return
        self._told_at = time.monotonic()
        published = ", ".join(f"{n:,} {name}" for name, n in list(collector.messages.items()))
        done = ", ".join(f"{n} of {m} {name}" for name, (n, m) in disturber.counts().items())
        self.say(f"{fed:,} fed; {published}; {done}")


def numbers(
    fed: int,
    comparison: Comparison,
    collector: Collector,
    disturber: Disturber,
    workers: Supervisor,
    log_path: Path,
) -> dict[str, object]:
    """Return name → number, of all that is worth knowing of a run."""
    topics = Counter(key[0] for key in collector.published)
    stopped = Counter([*disturber.removals, *workers.exit_statuses.values()])
    log = log_path.read_text(errors="replace").splitlines()
    return {
        "records fed": fed,
        "records expected": comparison.expected,
        "missing": len(comparison.missing),
        "different": len(comparison.different),
        "unexpected": len(comparison.unexpected),
        "disordered": len(comparison.disordered),
        "duplicated (the same again)": comparison.duplicated,
        **{f"published: {name}": topics[name] for name in collector.messages},
        **{name: done for name, (done, _) in disturber.counts().items()},
        "workers died": _statuses(Counter(status for _, status in workers.deaths)),
        "workers were stopped": _statuses(stopped),
        "states loaded": sum("goes on at offset" in line for line in log),
    }


def end_of_log(log_path: Path) -> list[str]:
    """Return the last lines of the workers' log, and why workers ended themselves."""
    if not log_path.exists():
        return []
    lines = log_path.read_text(errors="replace").splitlines()
    fatal = [line for line in lines if " CRITICAL " in line]
    return [
        "the workers' log ends:",
        *lines[-LOG_LINES:],
        *(["workers ended themselves:", *fatal[:LOG_LINES]] if fatal else []),
    ]


def table(values: Mapping[str, object]) -> list[str]:
    """Return the lines of a table."""
    return [
        f"{name:<28} {value:,}" if isinstance(value, int) else f"{name:<28} {value}"
        for name, value in values.items()
    ]


def _statuses(statuses: Counter[int]) -> str:
    said = [f"{n} by {describe_status(status)}" for status, n in sorted(statuses.items())]
    return ", ".join(said) or "none"
