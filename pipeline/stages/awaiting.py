"""What becomes of an announced model that is waited for."""

import shlex
from typing import Literal

Decision = Literal["taken", "withdrawn"]
"""Whether an announced model takes over or was withdrawn."""


def or_withdraw(version: str) -> str:
    """Return what else helps where a model is not there, as the end of a sentence."""
    return f", or withdraw it: `fluxplain model withdraw {shlex.quote(version)}`"
