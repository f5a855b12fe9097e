"""Pickled models in a folder, each under its digest."""

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
"""Largest file of a model. It is read whole, and is part of each checkpoint."""

READ_BYTES = 1024 * 1024
"""Part of a file that is read at once for its digest."""

AGAIN_S = 60.0
"""Pause before an unchanged file that could not be used is read again: something that it needs may
have been installed."""

FileState = tuple[int, ...]
"""Device, inode, size and times: these change when a file does."""


class ModelFolder:
    """Pickled models in a folder, each in a file named by its digest.

    Who can write there can run code where the model role runs: so it must be a folder of this
    machine, or one that is trusted as such. Only regular files in it are read: a symbolic link is
    not followed, and nothing is unpickled before its digest was checked. The folder is created
    for this user alone.

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
        """Return a model's file; raise ValueError for what is no digest, but may be a path."""
        if not is_sha256(sha256):
            raise ValueError(f"{sha256[:100]!r} is no SHA-256 digest in hexadecimal")
        return self._folder / f"{sha256}.pickle"

    def put(self, data: bytes) -> str:
        """Keep a pickled model; return its digest."""
        sha256 = hashlib.sha256(data).hexdigest()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._folder / f"{sha256}.{os.getpid()}.tmp"
        aside.write_bytes(data)
        aside.rename(self.path(sha256))
        return sha256

    def get(self, sha256: str) -> Any:
        """Return a model.

        Raises NotYetError if its file is missing or incomplete, or its code not installed, and
        ValueError if it cannot be unpickled. Callers may ask each second: an unusable file is read
        again only after a change or a minute.
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
    # a FIFO is not waited for
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
        raise NotYetError(f"{path} is no regular file")
    if found.st_size > MAX_MODEL_BYTES:
        raise NotYetError(
            f"{path} has {found.st_size:,} bytes, but a model has at most {MAX_MODEL_BYTES:,}"
        )


def _state_of(file: IO[bytes]) -> FileState:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _model_of(path: Path, file: IO[bytes], sha256: str) -> Any:
    """Return the model in an open file; read it into memory only if its digest is right."""
    size, digest = os.fstat(file.fileno()).st_size, hashlib.sha256()
    for begin in range(0, size, READ_BYTES):
        digest.update(file.read(min(READ_BYTES, size - begin)))
    if digest.hexdigest() == sha256:
        file.seek(0)
        data = file.read(size)
        # again, since somebody may write there meanwhile
        if hashlib.sha256(data).hexdigest() == sha256:
            return _unpickled_here(path, data)
    raise NotYetError(f"{path} is not what was announced: its digest is another one")


def _unpickled_here(path: Path, data: bytes) -> Any:
    try:
        return unpickled(data)
    except ValueError as error:
        if isinstance(error.__cause__, ImportError | AttributeError):
            # another machine may have it, and all must resume with the same model
            raise NotYetError(f"{path} needs what is not installed here: {error}") from error
        raise
