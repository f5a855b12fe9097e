"""Says how far Maven has come, from its log: a fresh machine downloads for minutes."""

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from time import monotonic

from fluxplain.schemas.wording import plural

EVERY_S = 4.0
"""Seconds between two lines."""

_BEGUN = re.compile(r"Downloading from [^:]+: (\S+)")

_DONE = re.compile(r"Downloaded from [^:]+: (\S+) \(([\d.]+) (B|kB|MB)")

_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6}


def wait_for(maven: "Popen[bytes]", log: Path, tell: Callable[[str], None]) -> int:
    """Wait until Maven ends, and return its exit status; ``tell`` gets a line every few seconds."""
    began = monotonic()
    while True:
        try:
            return maven.wait(EVERY_S)
        except TimeoutExpired:
            tell(line(log.read_text(errors="replace"), monotonic() - began))


def line(text: str, seconds: float) -> str:
    """Return a line about the files that are there, and the one that is being downloaded.

    Examples
    --------
    >>> log = '''[INFO] Downloading from central: https://repo/a.pom
    ... [INFO] Downloaded from central: https://repo/a.pom (8.1 kB at 12 kB/s)
    ... [INFO] Downloading from central: https://repo/kafka-clients.jar
    ... '''
    >>> line(log, 8.2)
    '  8 s: 1 file, 0.0 MB; getting kafka-clients.jar'
    """
    done = {url: float(size) * _BYTES[unit] for url, size, unit in _DONE.findall(text)}
    waiting = [url for url in _BEGUN.findall(text) if url not in done]
    now = f"; getting {waiting[-1].rpartition('/')[2]}" if waiting else ""
    return f"  {seconds:.0f} s: {plural(len(done), 'file')}, {sum(done.values()) / 1e6:.1f} MB{now}"
