"""Errors that whoever runs the pipeline can mend, and how they show a value."""

MAX_SHOWN = 300
"""Most characters of a wrong value in an error."""


class UserError(Exception):
    """A user's mistake; the command line shows its message, and no stack trace."""


class NotYetError(RuntimeError):
    """Something is not there yet, as an announced model. Without it nothing may go on."""


def shown(value: object) -> str:
    """Return a value as Python writes it, cut if it is long; true and false as in TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes neither long numbers nor deep tables
        return "too large to be shown"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
