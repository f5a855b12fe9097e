"""Recognizes duplicates, which crashes cause."""

import hashlib
from collections import OrderedDict

import orjson

from fluxplain.schemas import Change, DeadLetter, Reasons, Record
from fluxplain.schemas.record import Label

MAX_LETTERS = 100_000
"""Dead letters to remember, some 20 MB; duplicates after a crash lie within far fewer."""

_IDENTITY = ("stream", "kind", "feature", "method", "signal", "alpha")


class Duplicates:
    """Recognizes duplicates by identity.

    A stream's results of one kind are published in order of seq to one partition, and after a crash
    again from some earlier seq on. So a record below the newest seq is a duplicate, and one at it
    too, unless it is about another label, or another change; of changes, the seq that their status
    takes into account comes first. Only dead letters come from several workers at once; the last
    ones are remembered one by one.

    Parameters
    ----------
    max_keys
        Most identities without their seq to remember; None for all.
    incarnations
        Whether the records of a new incarnation are new, although their seqs are not.
    """

    def __init__(self, max_keys: int | None = None, *, incarnations: bool = False) -> None:
        self._max_keys = max_keys
        self._fields = (*_IDENTITY, "incarnation") if incarnations else _IDENTITY
        self._newest: dict[tuple[object, ...], tuple[tuple[int, int], list[Label | None]]] = {}
        self._letters: OrderedDict[bytes, None] = OrderedDict()

    def is_new(self, record: Record, partition: int) -> bool | None:
        """Remember a record; return whether it is new, or None if there is no room for it."""
        if isinstance(record, DeadLetter):
            return self._is_new_letter(record)
        key = (partition, *(getattr(record, name, None) for name in self._fields))
        seq: int = getattr(record, "seq")  # noqa: B009  of all published records
        status_seq = record.status_seq if isinstance(record, Change) else None
        place = (seq if status_seq is None else status_seq), seq
        label = _told_apart(record)
        newest, labels = self._newest.get(key, (None, []))
        if newest is None and len(self._newest) == self._max_keys:
            return None
        if newest is not None and (place < newest or (place == newest and label in labels)):
            return False
        self._newest[key] = place, [*labels, label] if place == newest else [label]
        return True

    def dump(self) -> bytes:
        """Return what is remembered of all records but dead letters, as JSON."""
        return orjson.dumps([(key, *newest) for key, newest in self._newest.items()])

    def load(self, dumped: bytes) -> None:
        """Remember what :meth:`dump` returned."""
        self._newest |= {
            tuple(key): (tuple(place), labels) for key, place, labels in orjson.loads(dumped)
        }

    def _is_new_letter(self, letter: DeadLetter) -> bool:
        identity = (letter.topic, letter.partition, letter.offset, letter.key)
        # a digest, because keys may be long
        digest = hashlib.sha256(repr(identity).encode(errors="replace")).digest()
        if digest in self._letters:
            return False
        self._letters[digest] = None
        if len(self._letters) > MAX_LETTERS:
            self._letters.popitem(last=False)
        return True


def _told_apart(record: Record) -> Label | None:
    """Return what differs between several records of one identity and seq."""
    if isinstance(record, Change):
        return record.id
    return record.label if isinstance(record, Reasons) else None
