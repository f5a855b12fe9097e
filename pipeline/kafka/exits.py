"""How a worker process ends when it cannot go on, and what its exit status says."""

import logging
import os
from typing import NoReturn

from pipeline.kafka.client import BrokerError
from pipeline.kafka.producer import DeliveryError, OversizeError
from pipeline.stages.announced import NotYetError

log = logging.getLogger("fluxplain.worker")

EXIT_FAILED = 70
"""Exit status of a worker that failed and may be started again."""

EXIT_NOT_YET = 75
"""Exit status of a worker that needs something which may come: broker, topics, a model, the schema
registry."""

EXIT_REFUSED = 78
"""Exit status of a worker that would fail again: somebody must look."""


def fail(what: str, error: Exception) -> NoReturn:
    """End the process at once: nothing may be acknowledged or committed after this."""
    if isinstance(error, OversizeError):
        refuse(f"{what}: {error}")
    if isinstance(error, NotYetError):
        log.critical("%s: %s", what, error)
        end(EXIT_NOT_YET)
    known = isinstance(error, DeliveryError | BrokerError)
    log.critical("%s: %s: %s", what, type(error).__name__, error, exc_info=None if known else error)
    end(EXIT_FAILED)


def refuse(reason: str) -> NoReturn:
    """End the process: somebody must decide."""
    log.critical(reason)
    end(EXIT_REFUSED)


def end(status: int) -> NoReturn:
    """End the process at once, with all that was logged."""
    # not sys.exit: Faust would stop in good order, and commit
    logging.shutdown()
    os._exit(status)
