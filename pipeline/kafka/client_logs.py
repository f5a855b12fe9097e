"""Limits repeated log messages of Kafka's clients.

While a broker is away they log every connection attempt: thousands of lines a minute.
"""

import logging
import re
import time
from typing import Any

from fluxplain.kafka.client import LIBRDKAFKA_LOG

QUIET_S = 30.0
"""Seconds before a client's message may be logged again."""

_VARYING = re.compile(r"[\d.:#]+")


class RepetitionFilter(logging.Filter):
    """Passes one of many similar messages of a client, with the number of suppressed ones.

    Messages are similar if only numbers (addresses, ports, times) differ. fluxplain's own messages
    always pass.

    Examples
    --------
    >>> limit = RepetitionFilter()
    >>> def record(text):
    ...     return logging.LogRecord("aiokafka", logging.ERROR, "", 0, text, (), None)
    >>> [limit.filter(record(f"Unable to connect to node {n}")) for n in (1, 2, 3)]
    [True, False, False]
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record; add the number of suppressed ones to its message."""
        if record.name.startswith("fluxplain.") and record.name != LIBRDKAFKA_LOG:
            return True
        kind = (record.name, _VARYING.sub("", record.getMessage()))
        now = time.monotonic()
        since, more = self._passed.get(kind, (-QUIET_S, 0))
        if now - since < QUIET_S:
            self._passed[kind] = (since, more + 1)
            return False
        if len(self._passed) >= 1000:
            self._passed.clear()
        self._passed[kind] = (now, 0)
        if more:
            record.msg = f"{record.getMessage()} (and {more:,} more like it)"
            record.args = ()
        return True


def logging_settings() -> dict[str, Any]:
    """Return the settings of long-running processes for :func:`logging.config.dictConfig`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {"format": "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"}
        },
        "filters": {"repetitions": {"()": RepetitionFilter}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "plain",
                "filters": ["repetitions"],
            }
        },
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {"fluxplain": {"level": "INFO"}, LIBRDKAFKA_LOG: {"propagate": True}},
    }
