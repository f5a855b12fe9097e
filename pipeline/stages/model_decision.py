"""The outcome of an announcement: the model was taken, or withdrawn."""

import shlex
from typing import Literal

Decision = Literal["taken", "withdrawn"]
"""Whether an announced model takes over or was withdrawn."""


def or_withdraw(version: str) -> str:
    """Return the end of an error about a missing model: the command that withdraws it."""
    return f", or withdraw it: `fluxplain model withdraw {shlex.quote(version)}`"
