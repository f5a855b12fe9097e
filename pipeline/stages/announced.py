"""Models that are announced while the pipeline runs."""

from typing import Any, Protocol, runtime_checkable


class NotYetError(RuntimeError):
    """Something that was announced is not there yet. Without it nothing may go on."""


class Models(Protocol):
    """Where announced models are."""

    def get(self, sha256: str) -> Any:
        """Return a model.

        Raises
        ------
        NotYetError
            If it is not there.
        ValueError
            If it can never be used.
        """
        ...


@runtime_checkable
class Exchanges(Protocol):
    """A stage whose model may be replaced; where it finds others is no part of its state."""

    models: Models | None
