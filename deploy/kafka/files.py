"""Where the files of a cluster are."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Files:
    """The files in the folder of a cluster; they are all of its state.

    Parameters
    ----------
    folder
        Its absolute path.
    """

    folder: Path

    @property
    def plan(self) -> Path:
        """What was decided once; there only if everything else is there too."""
        return self.folder / "cluster.json"

    @property
    def lock(self) -> Path:
        """Held while brokers are being started."""
        return self.folder / "lock"

    @property
    def password(self) -> Path:
        """The password of the user, in one line."""
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
    # one that is there would keep its permissions
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process is inside with this file."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
