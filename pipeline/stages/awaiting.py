"""What a pipeline waits for: an announced model, or the schema registry."""

import shlex
from typing import Literal

Decision = Literal["taken", "withdrawn"]
"""Whether an announced model takes over or was withdrawn."""


class NotYetError(RuntimeError):
    """Something that was announced is not there yet. Without it nothing may go on."""


def or_withdraw(version: str) -> str:
    """Return what else helps where a model is not there, as the end of a sentence."""
    return f", or withdraw it: `fluxplain model withdraw {shlex.quote(version)}`"
