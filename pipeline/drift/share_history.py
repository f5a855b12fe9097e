"""The shares of categories since the last change, in bounded memory."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate

from fluxplain.drift.glr_rows import BLOCK
from fluxplain.drift.windows import Bucket, Part, Windows
from fluxplain.schemas.record import Value

MOST_BLOCKS = 256
"""Newest blocks that are kept individually; older ones are summed."""

MOST_CATEGORIES = 1_000
"""Most categories in the sum of older blocks: those that came first."""

MOST_CHARACTERS = 100_000
"""Most characters of categories in the newest blocks (2,048 texts of 48), and in the older sum."""

Shares = Mapping[Value, float]
"""Category → 1, of one observation; or class → its predicted probability."""


class Sums:
    """Sums of the shares of some observations, from ``seq`` on, and sums of their squares."""

    __slots__ = ("characters", "n", "seq", "squares", "sums")

    def __init__(self, seq: int) -> None:
        self.seq, self.n, self.characters = seq, 0, 0
        self.sums: dict[Value, float] = {}
        self.squares: dict[Value, float] = {}

    def add(self, n: int, sums: Shares, squares: Shares) -> None:
        """Add sums of ``n`` observations; ignore new categories once the limits are reached."""
        self.n += n
        for category, total in sums.items():
            if category in self.sums or self._has_room():
                self.characters += _characters(category) if category not in self.sums else 0
                self.sums[category] = self.sums.get(category, 0.0) + total
                self.squares[category] = self.squares.get(category, 0.0) + squares[category]

    def _has_room(self) -> bool:
        return len(self.sums) < MOST_CATEGORIES and self.characters < MOST_CHARACTERS

    def bucket(self, category: Value) -> Bucket:
        """Return the shares of a category."""
        mean = self.sums.get(category, 0.0) / self.n
        squares = self.squares.get(category, 0.0) - self.n * mean * mean
        return Bucket(Part(self.n, mean, max(squares, 0.0)), self.seq, 0, 0.0)


class ShareHistory:
    """Keeps the newest blocks of shares, and one sum of all older blocks.

    The categories in the blocks have at most ``most_characters``. A text counts in each block: each
    observation may bring its own copy. A model's classes share theirs and need no limit.

    Examples
    --------
    >>> history = ShareHistory()
    >>> for seq in range(0, 800, 8):
    ...     history.add(seq, [{"a" if seq < 400 else "b": 1.0}, {"c": 1.0}] * 4)
    >>> history.most_moved(400)
    'b'
    >>> before, after = history.windows("b").split(400)
    >>> before.part.mean, after.part.mean
    (0.0, 0.5)
    """

    def __init__(self, most_characters: float = MOST_CHARACTERS) -> None:
        self._most_characters = most_characters
        self._older: Sums | None = None
        self._blocks: deque[Sums] = deque()
        self._characters = 0

    def add(self, seq: int, rows: Sequence[Shares]) -> None:
        """Append a block of observations that begins at ``seq``."""
        block = Sums(seq)
        for row in rows:
            block.add(1, row, {category: share * share for category, share in row.items()})
        self._blocks.append(block)
        self._characters += block.characters
        while self._is_too_long():
            oldest = self._oldest()
            if self._older is None:
                self._older = Sums(oldest.seq)
            self._older.add(oldest.n, oldest.sums, oldest.squares)

    @property
    def n(self) -> int:
        """Number of observations in the history."""
        return sum(each.n for each in self._all())

    def common(self, rare: float) -> dict[Value, None]:
        """Return the common categories, the most frequent one first.

        The least frequent ones, which together have the share ``rare``, are left out.
        """
        sums = _total(self._all()).sums
        ordered = sorted(sums, key=lambda category: sums[category])
        upto = accumulate(sums[category] for category in ordered)
        least = rare * sum(sums.values())
        known = [each for each, total in zip(ordered, upto, strict=True) if total > least]
        return dict.fromkeys(reversed(known))

    def windows(self, category: Value) -> Windows:
        """Return the shares of a category."""
        return Windows.of([each.bucket(category) for each in self._all()])

    def most_moved(self, newest: int) -> Value:
        """Return the category whose share in the newest observations differs most from before.

        A tie goes to the last in order: of two classes, to the second one.
        """
        blocks = self._all()
        split = max(len(blocks) - newest // BLOCK, 1)
        before, after = _total(blocks[:split]), _total(blocks[split:])

        def rank(category: Value) -> tuple[float, str, Value]:
            means = [each.sums.get(category, 0.0) / max(each.n, 1) for each in (before, after)]
            return round(abs(means[1] - means[0]), 9), type(category).__name__, category

        return max({**before.sums, **after.sums}, key=rank)

    def forget(self, newest: int) -> None:
        """Drop all but about ``newest`` observations."""
        self._older = None
        while len(self._blocks) > max(newest // BLOCK, 1):
            self._oldest()

    def _is_too_long(self) -> bool:
        n = len(self._blocks)
        return n > MOST_BLOCKS or (n > 1 and self._characters > self._most_characters)

    def _oldest(self) -> Sums:
        """Remove the oldest block, and return it."""
        oldest = self._blocks.popleft()
        self._characters -= oldest.characters
        return oldest

    def _all(self) -> list[Sums]:
        return [*([] if self._older is None else [self._older]), *self._blocks]


def _total(blocks: Sequence[Sums]) -> Sums:
    total = Sums(0)
    for block in blocks:
        total.add(block.n, block.sums, block.squares)
    return total


def _characters(category: Value) -> int:
    return len(category) if isinstance(category, str) else 0
