"""The newest dead letters, each once."""

import hashlib
from collections import OrderedDict, deque
from typing import Any

from pipeline.monitor.dashboard.stories import shortened
from schemas import DeadLetter

MAX_SEEN = 100_000
"""Dead letters remembered, some 20 MB; those of one crash come again within far fewer."""

LAST = 10
"""Dead letters that are shown, the newest."""


class Letters:
    """Counts dead letters, and keeps the last ones in short.

    Attributes
    ----------
    count
        How many there were.
    last
        Where the newest came from, and why; the oldest first.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def add(self, letter: DeadLetter) -> bool:
        """Take a dead letter, and return whether it is new; one that came before is dropped."""
        where = {"topic": letter.topic, "partition": letter.partition, "offset": letter.offset}
        # several workers write them, in any order; keys may be long
        digest = hashlib.sha256(repr((*where.values(), letter.key)).encode()).digest()
        if digest in self._seen:
            return False
        self._seen[digest] = None
        if len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)
        self.count += 1
        where["topic"] = shortened(letter.topic)
        self.last.append({**where, "reason": shortened(letter.reason)})
        return True
