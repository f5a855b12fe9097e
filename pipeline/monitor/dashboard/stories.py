"""The newest changes: all of them in short, and as many whole stories as there is room for."""

from collections import OrderedDict
from typing import Any

from schemas import Change

MAX_CHANGES = 500
"""Changes of a stream that the page lists, the newest."""

MAX_STORY_BYTES = 32 * 1024 * 1024
"""Of all whole stories; one with two curves has about 2 KB, and at most 1 MB."""

MAX_TEXT = 1_000
"""Characters of a sentence that are shown, as many as a reason of ours may have."""

_BRIEF = (
    "id",
    "kind",
    "seq",
    "feature",
    "method",
    "before",
    "after",
    "direction",
    "after_seq",
    "incident",
)


class Stories:
    """Whole changes, as JSON, by id; the oldest go first.

    Examples
    --------
    >>> stories = Stories(room=1000)
    >>> for seq in range(5):
    ...     stories.add(Change.notice(kind="gap", stream="features-0", seq=seq, detail="lost" * 9))
    >>> len(stories)
    1
    """

    def __init__(self, room: int = MAX_STORY_BYTES) -> None:
        self._room = room
        self._size = 0
        self._stories: OrderedDict[str, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._stories)

    def add(self, change: Change) -> None:
        """Keep a change, and forget old ones for it."""
        story = fitted(change.encode())
        self._size += len(story) - len(self._stories.pop(change.id, b""))
        self._stories[change.id] = story
        while self._size > self._room:
            _, oldest = self._stories.popitem(last=False)
            self._size -= len(oldest)

    def get(self, change_id: str) -> bytes | None:
        """Return a change as JSON; None if it is not kept."""
        return self._stories.get(change_id)


def fitted(text: bytes) -> bytes:
    """Return the same bytes without the room that orjson leaves behind them: up to 16 KB."""
    return memoryview(text).tobytes()


def brief(change: Change) -> dict[str, Any]:
    """Return what a list of changes shows of one."""
    return {
        **{name: getattr(change, name) for name in _BRIEF},
        "detail": shortened(change.detail),
    }


def shortened(text: str) -> str:
    """Return as much of a text as is shown."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
