"""Models as files: a folder that holds each under its digest."""

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

from pipeline.stages.announced import NotYetError


class ModelFolder:
    """Pickled models in a folder, each in a file that is called as its digest.

    Whoever can write there can run code where the model role runs: so it must be a folder of this
    machine, or one that is trusted as such.

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

    def path(self, sha256: str) -> Path:
        """Return where a model is kept."""
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

        Raises
        ------
        NotYetError
            If there is no such file, it is not whole, or its code is not installed.
        ValueError
            If it cannot be unpickled.
        """
        path = self.path(sha256)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise NotYetError(
                f"a model was announced that is not here: {path} ({error.strerror}); copy it from "
                "where `fluxplain model announce` ran"
            ) from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise NotYetError(f"a model was announced, but {path} is not what was announced")
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
