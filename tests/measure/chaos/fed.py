"""Whether a log is what was fed into it."""

from collections.abc import Sequence

IN_FLIGHT = 1_000
"""Messages that a producer may send again at once."""


def sent_again(log: Sequence[bytes | None], fed: Sequence[bytes | None]) -> int | None:
    """Return how many messages a log holds again; None if else it is not what was fed.

    When all brokers were killed at once, the restarted ones may know a message, but not who wrote
    it. Its producer, which had no answer, then begins a new epoch and sends it again.

    Examples
    --------
    >>> fed = [b"a", b"b", b"c", b"d"]
    >>> sent_again([b"a", b"b", b"c", b"b", b"c", b"d"], fed)
    2
    >>> sent_again([b"a", b"c", b"b", b"d"], fed), sent_again([b"a", b"b", b"c"], fed)
    (None, None)
    """
    done = again = 0
    for value in log:
        if done < len(fed) and value == fed[done]:
            done += 1
        elif value in fed[max(done - IN_FLIGHT, 0) : done]:
            again += 1
        else:
            return None
    return again if done == len(fed) else None
