"""The demonstration with its dashboard, as ``make demo`` runs it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Demo:
    """A running demonstration, and the address of its dashboard."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.address = self.line(r"Dashboard: (http://\S+)")

    def line(self, pattern: str) -> str:
        """Wait for a line, and return what the pattern's group is there."""
        assert self._process.stdout is not None
        for line in iter(self._process.stdout.readline, b""):
            found = re.search(pattern, line.decode())
            if found:
                return found.group(1)
        raise AssertionError(f"the demo ended without {pattern!r}")

    def end(self) -> int:
        """Wait until it ends by itself, and return its exit status."""
        assert self._process.stdout is not None
        self._process.stdout.read()
        return self._process.wait(60)


@contextmanager
def demo(out: Path, *options: str) -> Iterator[Demo]:
    """Run ``fluxplain demo``; stop it if it has not ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fluxplain.cli", "demo", "--out", str(out), *options],
        stdout=subprocess.PIPE,
    )
    try:
        yield Demo(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
