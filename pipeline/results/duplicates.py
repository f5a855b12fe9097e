"""Recognizes records that were published before."""

import hashlib
from collections import OrderedDict

from fluxplain.schemas import DeadLetter, Record

MAX_LETTERS = 100_000
"""Dead letters remembered, some 20 MB; repetitions after a crash lie within far fewer."""

_IDENTITY = ("stream", "kind", "feature", "method", "alpha")


class Duplicates:
    """Recognizes records by their identity.

    What follows from a stream is published in order of seq, always to the same partition, and after
    a crash again from some seq on. So in a partition nothing new lies at or below the newest seq.
    Only dead letters come from several workers at once: of these the last are remembered.
    """

    def __init__(self, max_keys: int | None = None) -> None:
        self._max_keys = max_keys
        self._newest: dict[tuple[object, ...], int] = {}
        self._letters: OrderedDict[bytes, None] = OrderedDict()

    def is_new(self, record: Record, partition: int) -> bool | None:
        """Remember a record; return whether it is new, None if there is no room to remember it."""
        if isinstance(record, DeadLetter):
            return self._is_new_letter(record)
        key = (partition, *(getattr(record, name, None) for name in _IDENTITY))
        seq: int = getattr(record, "seq")  # noqa: B009  of all published records
        newest = self._newest.get(key)
        if newest is None and len(self._newest) == self._max_keys:
            return None
        if newest is not None and seq <= newest:
            return False
        self._newest[key] = seq
        return True

    def _is_new_letter(self, letter: DeadLetter) -> bool:
        identity = (letter.topic, letter.partition, letter.offset, letter.key)
        # keys may be long
        digest = hashlib.sha256(repr(identity).encode(errors="replace")).digest()
        if digest in self._letters:
            return False
        self._letters[digest] = None
        if len(self._letters) > MAX_LETTERS:
            self._letters.popitem(last=False)
        return True
