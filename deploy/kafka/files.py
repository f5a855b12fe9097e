"""Paths of a cluster's files, and the one kind of error that this package raises."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class KafkaError(RuntimeError):
    """A problem that a user can fix; the message is one sentence."""


class Files:
    """The files in a cluster's folder (an absolute path): its whole state.

    `plan` holds the fixed settings, and exists only if everything else does. `lock` is held while
    brokers are started. `password` holds the user's password in one line, `tls` the certificates.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = folder / "cluster.json"
        self.lock = folder / "lock"
        self.password = folder / "password"
        self.tls = folder / "tls"

    def broker(self, node: int) -> Path:
        """Folder of a broker: its settings, data, log and process id."""
        return self.folder / f"broker-{node}"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    # an existing file would keep its permissions
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
