"""Separates labels from their observations, in order to send them later."""

from collections import deque
from collections.abc import Iterable, Iterator

import orjson

from fluxplain.schemas.late_label import LabelValue


def with_label_delay(values: Iterable[bytes], delay: int) -> Iterator[bytes | LabelValue]:
    """Yield observations without their labels, and each label `delay` observations later.

    An observation without an ``id`` gets its number as id. Other values are passed on unchanged.

    Examples
    --------
    >>> for value in with_label_delay([b'{"x":{"a":1},"y":2}', b'{"x":{"a":3},"y":4}'], 1):
    ...     print(value)
    b'{"x":{"a":1},"id":0}'
    b'{"x":{"a":3},"id":1}'
    LabelValue(value=b'{"id":0,"y":2}')
    LabelValue(value=b'{"id":1,"y":4}')
    """
    waiting: deque[tuple[int, LabelValue]] = deque()
    for i, value in enumerate(values):
        fields = orjson.loads(value)
        if isinstance(fields, dict) and "x" in fields and "y" in fields:
            label = {"id": fields.setdefault("id", i), "y": fields.pop("y")}
            waiting.append((i + delay, LabelValue(orjson.dumps(label))))
            yield orjson.dumps(fields)
        else:
            yield value
        while waiting and waiting[0][0] <= i:
            yield waiting.popleft()[1]
    for _, label_value in waiting:
        yield label_value
