"""What a run says: its progress, and its numbers."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.measure.chaos.collector import Collector
from tests.measure.chaos.disturber import Disturber
from tests.measure.chaos.exits import Exits
from tests.measure.chaos.verifier import Comparison


def progress(fed: int, collector: Collector, disturber: Disturber) -> str:
    """Return how far it is."""
    published = ", ".join(f"{n:,} {name}" for name, n in list(collector.messages.items()))
    done = ", ".join(f"{n} of {m} {name}" for name, (n, m) in disturber.counts().items() if m)
    return f"{fed:,} fed; {published}; {done}"


def numbers(
    fed: int,
    comparison: Comparison,
    collector: Collector,
    disturber: Disturber,
    exits: Exits,
    log_path: Path,
) -> dict[str, object]:
    """Return name → number, of all that is worth knowing of a run."""
    topics = Counter(key[0] for key in collector.published)
    log = log_path.read_text(errors="replace").splitlines()
    return {
        "records fed": fed,
        "records expected": comparison.expected,
        "missing": len(comparison.missing),
        "different": len(comparison.different),
        "unexpected": len(comparison.unexpected),
        "disordered": len(comparison.disordered),
        "duplicated (the same again)": comparison.duplicated,
        **{f"published {name}": topics[name] for name in collector.messages},
        **{name: f"{done} of {n}" for name, (done, n) in disturber.counts().items()},
        **exits.numbers(),
        "states loaded": sum("resumes at offset" in line for line in log),
    }


def lines(values: Mapping[str, object]) -> list[str]:
    """Return a line for each."""
    return [
        f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}"
        for name, value in values.items()
    ]
