"""Bounds the number of classes: with each a model has more numbers and answers more slowly."""

from fluxplain.config import LabelSettings
from fluxplain.schemas import BadRecordError
from fluxplain.schemas.record import Target, describe


class LabelClasses:
    """The classes among a stream's labels, at most ``label.max_classes``.

    Examples
    --------
    >>> classes = LabelClasses(LabelSettings(type="string", max_classes=2))
    >>> for label in ("a", "b", "a"):
    ...     classes.take(label)
    >>> classes.check("c")
    Traceback (most recent call last):
        ...
    fluxplain.schemas.record.BadRecordError: y must be one of the first 2 classes \
(label.max_classes), not a string "c"; is it an id, or a number to predict \
(label.type = "number")?
    """

    def __init__(self, settings: LabelSettings) -> None:
        self._most = settings.max_classes if settings.type in {"integer", "string"} else None
        self._known: set[Target] = set()

    def check(self, label: Target) -> None:
        """Raise ``BadRecordError`` if a label's class is one too many."""
        if self._most is None or label in self._known:
            return
        if len(self._known) >= self._most:
            raise BadRecordError(
                f"y must be one of the first {self._most:,} classes (label.max_classes), not "
                f"{describe(label)}; is it an id, or a number to predict (label.type = "
                '"number")?'
            )

    def take(self, label: Target) -> None:
        """Note the class of a label that is used; raise ``BadRecordError`` as :meth:`check`."""
        self.check(label)
        if self._most is not None:
            self._known.add(label)
