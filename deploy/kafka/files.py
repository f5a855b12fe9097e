"""Paths of a cluster's files."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Files:
    """The files in a cluster's folder (an absolute path): its whole state."""

    folder: Path

    @property
    def plan(self) -> Path:
        """The fixed settings; exists only if everything else does."""
        return self.folder / "cluster.json"

    @property
    def lock(self) -> Path:
        """Lock that is held while brokers are started."""
        return self.folder / "lock"

    @property
    def password(self) -> Path:
        """File with the user's password, in one line."""
        return self.folder / "password"

    @property
    def tls(self) -> Path:
        """Folder with the certificates."""
        return self.folder / "tls"

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
