"""Errors that a user can fix, and the display of wrong values in them."""

MAX_SHOWN = 300
"""Longest display of a wrong value in an error, in characters."""


class UserError(Exception):
    """A user's mistake: the command line shows the message without a stack trace."""


class NotYetError(UserError):
    """Something required is not there yet, such as an announced model or a free port."""


def shown(value: object) -> str:
    """Return a value as Python writes it, cut if it is long; true and false as in TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes neither long numbers nor deep tables
        return "too large to be shown"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
