"""Growing lists of categories in flat arrays."""

from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from fluxplain.evaluate.encoding import Encoding, Floats
from fluxplain.evaluate.evaluator import Value
from fluxplain.evaluate.hoeffding.tree_kernels import Integers

FEW = 1_000
"""Number of categories up to which unused ones do not matter."""


class Lists:
    """Lists of categories, each contiguous; an item has its category's code once there is one.

    Attributes
    ----------
    n_unused
        Number of items that belong to no list any more.
    """

    def __init__(self) -> None:
        self.n_unused = 0
        self._codes: Floats = np.zeros(0)
        self._items: list[tuple[str, Value]] = []
        self._places: dict[int, tuple[int, int, int]] = {}  # begin, end, end of the room
        self._mark: object = None
        self._without_code: set[int] = set()

    @property
    def is_wasteful(self) -> bool:
        """Whether more than half of the arrays is unused."""
        return self.n_unused > max(FEW, len(self._items) // 2)

    def extend(self, key: int, feature: str, values: Iterable[Value]) -> tuple[int, int]:
        """Add the values that a list does not have yet; return where it begins and ends."""
        begin, end, room = self._places.get(key, (0, 0, 0))
        new = list(islice(values, end - begin, None))
        if end + len(new) > room:
            begin, end, room = self._moved(begin, end, room, len(new))
        for value in new:
            self._items[end] = feature, value
            self._without_code.add(end)
            end += 1
        self._places[key] = begin, end, room
        return begin, end

    def release(self, key: int) -> None:
        """Drop a list."""
        begin, _, room = self._places.pop(key, (0, 0, 0))
        self.n_unused += room - begin

    def codes(self, encoding: Encoding) -> Floats:
        """Return the items' codes; NaN for a category without one yet."""
        if self._mark is not encoding.mark:
            self._mark = encoding.mark
            for begin, end, _ in self._places.values():
                self._without_code |= set(range(begin, end))
        for item in list(self._without_code):
            code = self._codes[item] = encoding.code(*self._items[item])
            if not np.isnan(code):
                self._without_code.discard(item)
        return self._codes

    def _moved(self, begin: int, end: int, room: int, more: int) -> tuple[int, int, int]:
        """Move a list to a larger piece at the end of the arrays."""
        n, size, start = end - begin, 2 * (end - begin + more), len(self._items)
        if start + size > len(self._codes):
            self._codes = np.pad(self._codes, (0, start + size))
        self._items += [*self._items[begin:end], *[("", 0)] * (size - n)]
        self.n_unused += room - begin
        self._without_code -= set(range(begin, end))
        self._without_code |= set(range(start, start + n))
        return start, start + n, start + size

    def __len__(self) -> int:
        return len(self._codes)


class Tables:
    """Tables of the categories that leaves have learned, with their weights; numbered from 0 on."""

    def __init__(self) -> None:
        self.lists = Lists()
        self._places: Integers = np.zeros((2, 0), np.int32)
        self._weights: Floats = np.zeros(0)
        self._totals: Floats = np.zeros(0)
        self._size = 0
        self._free: list[int] = []

    def write(self, number: int, feature: str, learned: Mapping[Value, float]) -> int:
        """Write the table with a number, or a new one for -1; return its number."""
        if number < 0:
            number = self._free.pop() if self._free else self._size
            self._size = max(self._size, number + 1)
        begin, end = self.lists.extend(number, feature, learned)
        if number >= len(self._totals):
            more = (0, number + 1)
            self._places = np.pad(self._places, ((0, 0), more))
            self._totals = np.pad(self._totals, more)
        if len(self.lists) > len(self._weights):
            self._weights = np.pad(self._weights, (0, len(self.lists) - len(self._weights)))
        self._places[:, number] = begin, end
        self._weights[begin:end] = list(learned.values())
        self._totals[number] = sum(learned.values())
        return number

    def release(self, number: int) -> None:
        """Drop a table."""
        self.lists.release(number)
        self._free.append(number)

    def arrays(self, encoding: Encoding) -> tuple[Integers, Floats, Floats, Floats]:
        """Return places, codes, weights and totals, as the kernel ``vote`` takes them."""
        return self._places, self.lists.codes(encoding), self._weights, self._totals
