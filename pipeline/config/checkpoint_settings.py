"""The table ``[checkpoint]``."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fluxplain.config.base import variable
from fluxplain.config.secrets import Secret, Secrets

KEY_LENGTH = 32
"""Shortest key that signs checkpoints, in characters."""

MOST_LONGER = 12.0
"""How many times ``interval_s`` may lie between two checkpoints: 60 s by default."""


class CheckpointSettings(Secrets):
    """Where and how often workers save their state."""

    store: Literal["directory", "topic"] = "directory"
    """Where to keep state: `"directory"` for one machine, `"topic"` for workers that move between
    machines."""
    directory: Path = Path(".fluxplain/checkpoints")
    """The directory, relative to the worker's working directory."""
    key: Secret = None
    """Key that signs checkpoints, of at least 32 characters. Required for the store `"topic"`."""
    key_file: Path | None = None
    """A file with the key in its only line."""
    out_of_range: Literal["fail", "earliest", "latest"] = "fail"
    """What to do when messages were deleted before a worker read them: `"fail"` ends the worker;
    `"earliest"` and `"latest"` resume with the oldest or the next new message and publish the gap.
    """
    interval_s: Annotated[float, Field(ge=0.05, le=3600.0)] = 5.0
    """Seconds between two checkpoints; up to 12 times as many if they take more than 5 % of the
    time."""
    history: Annotated[int, Field(ge=0, le=1000)] = 8
    """Older checkpoints of each model that the store `"directory"` keeps for `fluxplain why` and
    `fluxplain model rollback`, at about even distances in the log; each takes as much disk space as
    the model. `0` keeps none. Besides, it keeps up to two of each role for `fluxplain checkpoints
    adopt`."""

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if self.signing_key() is None and self.store == "topic":
            raise ValueError(
                "store is 'topic', which needs a key that signs checkpoints, since they are "
                f"unpickled: set the environment variable {variable('checkpoint', 'key')}, or "
                "checkpoint.key_file"
            )
        return self

    @property
    def place(self) -> str:
        """Where state is kept, for messages."""
        return "the topic for them" if self.store == "topic" else str(self.directory.absolute())

    def signing_key(self) -> bytes | None:
        """Return the key that signs checkpoints; None if there is none."""
        key = self.read_secret("key", KEY_LENGTH)
        return None if key is None else key.encode()
