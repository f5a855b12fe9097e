"""A folder of pickled models, named by their digests."""

import errno
import hashlib
import os
import stat
import time
from pathlib import Path
from typing import IO, Any

from fluxplain.errors import NotYetError
from fluxplain.models.warm_start import unpickled
from fluxplain.schemas.control import is_sha256

MAX_MODEL_BYTES = 4 * 1024**3
"""Largest model file, in bytes. It is read into memory, and part of each checkpoint."""

READ_BYTES = 1024 * 1024
"""Bytes of a file read at a time for its digest."""

AGAIN_S = 60.0
"""Seconds before an unchanged, unusable file is read again: a missing package may have been
installed."""

FileState = tuple[int, ...]
"""Device, inode, size and times, which change with a file."""


class ModelFolder:
    """A folder of pickled models, each in a file named by its digest.

    Write access to it allows running code in the model role, so it must be a local or equally
    trusted folder; it is created for this user only. Only regular files are read, symbolic links
    are not followed, and nothing is unpickled before its digest was checked.

    Examples
    --------
    >>> import pickle, tempfile
    >>> folder = ModelFolder(Path(tempfile.mkdtemp()))
    >>> folder.get(folder.put(pickle.dumps({"any": "model"})))
    {'any': 'model'}
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._useless: tuple[FileState, float, str] | None = None

    def path(self, sha256: str) -> Path:
        """Return a model's file; raise ValueError for an invalid digest, which could be a path."""
        if not is_sha256(sha256):
            raise ValueError(f"{sha256[:100]!r} is not a SHA-256 digest in hexadecimal")
        return self._folder / f"{sha256}.pickle"

    def put(self, data: bytes) -> str:
        """Store a pickled model; return its digest."""
        sha256 = hashlib.sha256(data).hexdigest()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._folder / f"{sha256}.{os.getpid()}.tmp"
        aside.write_bytes(data)
        aside.rename(self.path(sha256))
        return sha256

    def get(self, sha256: str) -> Any:
        """Return a model.

        Raises NotYetError if its file is missing or incomplete or its code not installed, and
        ValueError if it cannot be unpickled. It may be called every second: an unusable file is
        read again only after a change or a minute.
        """
        path = self.path(sha256)
        try:
            with _opened(path) as file:
                state = _state_of(file)
                self._check_useful(state)
                try:
                    return _model_of(path, file, sha256)
                except NotYetError as error:
                    self._useless = state, time.monotonic(), str(error)
                    raise
        except OSError as error:
            is_link = error.errno == errno.ELOOP
            why = "a symbolic link, which is not followed" if is_link else error.strerror
            raise NotYetError(f"{path} is not there ({why})") from None

    def _check_useful(self, state: FileState) -> None:
        if self._useless is None:
            return
        known, at, reason = self._useless
        if state == known and time.monotonic() - at < AGAIN_S:
            raise NotYetError(reason)


def _opened(path: Path) -> IO[bytes]:
    """Open a regular file of at most the largest size."""
    # O_NONBLOCK: do not wait for a FIFO
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    descriptor = os.open(path, flags)
    try:
        _check_file(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotYetError(f"{path} is not a regular file")
    if found.st_size > MAX_MODEL_BYTES:
        raise NotYetError(
            f"{path} has {found.st_size:,} bytes, but a model has at most {MAX_MODEL_BYTES:,}"
        )


def _state_of(file: IO[bytes]) -> FileState:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _model_of(path: Path, file: IO[bytes], sha256: str) -> Any:
    """Return the model in an open file; read it into memory only if its digest matches."""
    size, digest = os.fstat(file.fileno()).st_size, hashlib.sha256()
    for begin in range(0, size, READ_BYTES):
        digest.update(file.read(min(READ_BYTES, size - begin)))
    if digest.hexdigest() == sha256:
        file.seek(0)
        data = file.read(size)
        # again, since the file may have changed meanwhile
        if hashlib.sha256(data).hexdigest() == sha256:
            return _unpickled_here(path, data)
    raise NotYetError(f"{path} is not the announced model: its digest differs")


def _unpickled_here(path: Path, data: bytes) -> Any:
    try:
        return unpickled(data)
    except ValueError as error:
        if isinstance(error.__cause__, ImportError | AttributeError):
            # another machine may have it, and all must resume with the same model
            raise NotYetError(f"{path} needs code that is not installed here: {error}") from error
        raise
