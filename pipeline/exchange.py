"""Models as files: a folder that holds each under its digest."""

import errno
import hashlib
import os
import pickle
import stat
import time
from pathlib import Path
from typing import IO, Any

from pipeline.stages.announced import NotYetError
from pipeline.stages.validation import is_sha256

MAX_MODEL_BYTES = 4 * 1024**3
"""Largest file of a model, in bytes. It is read whole, and is part of each checkpoint."""

READ_BYTES = 1024 * 1024
"""How much of a file is read at once for its digest."""

AGAIN_S = 60.0
"""Seconds after which a file that was of no use is read again although it looks the same: something
may have been installed that it needs."""

FileState = tuple[int, ...]
"""What changes when a file does."""


class ModelFolder:
    """Pickled models in a folder, each in a file that is called as its digest.

    Whoever can write there can run code where the model role runs: so it must be a folder of this
    machine, or one that is trusted as such. Only regular files in it are read: a symbolic link is
    not followed, and nothing is unpickled before its digest was checked.

    Parameters
    ----------
    folder
        Created if it is missing, for this user alone.

    Examples
    --------
    >>> import tempfile
    >>> folder = ModelFolder(Path(tempfile.mkdtemp()))
    >>> folder.get(folder.put(pickle.dumps({"any": "model"})))
    {'any': 'model'}
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._useless: tuple[FileState, float, str] | None = None

    def path(self, sha256: str) -> Path:
        """Return where a model is kept.

        Raises
        ------
        ValueError
            If that is no digest, but could be a path to somewhere else.
        """
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

        A file that was of no use is read again only when it has changed, or after a minute: who
        waits for it may ask each second.

        Raises
        ------
        NotYetError
            If there is no such file, it is not whole, or its code is not installed.
        ValueError
            If it cannot be unpickled.
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
    """Open a file that can hold a model."""
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
    """Return the model in an open file; only one with the right digest is read into memory."""
    size, digest = os.fstat(file.fileno()).st_size, hashlib.sha256()
    for begin in range(0, size, READ_BYTES):
        digest.update(file.read(min(READ_BYTES, size - begin)))
    if digest.hexdigest() == sha256:
        file.seek(0)
        data = file.read(size)
        # what is unpickled is what was announced, also if somebody writes there meanwhile
        if hashlib.sha256(data).hexdigest() == sha256:
            return _unpickled_here(path, data)
    raise NotYetError(f"{path} is not what was announced: its digest is another one")


def _unpickled_here(path: Path, data: bytes) -> Any:
    try:
        return unpickled(data)
    except ValueError as error:
        if isinstance(error.__cause__, ImportError | AttributeError):
            # on another machine it may be there, and all must go on with the same model
            raise NotYetError(f"{path} needs what is not installed here: {error}") from error
        raise


def unpickled(data: bytes) -> Any:
    """Return the model in a file.

    Raises
    ------
    ValueError
        If there is none.
    """
    try:
        return pickle.loads(data)  # noqa: S301  of a local folder
    except Exception as error:  # whatever the model's own code raises
        raise ValueError(f"it cannot be unpickled: {type(error).__name__}: {error}") from error
