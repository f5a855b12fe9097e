"""How a worker process ends when it cannot go on, with which exit status, and why."""

import logging
import os
from typing import NoReturn

from fluxplain.config.replica import Replica
from fluxplain.errors import NotYetError
from fluxplain.kafka.client import BrokerError
from fluxplain.kafka.producer import DeliveryError, OversizeError

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


def replaced_settings(replica: Replica) -> str:
    """Return why a worker whose settings were replaced must end."""
    return (
        f"{replica}: other settings were registered for this pipeline since this worker was "
        "started (`fluxplain settings replace`): start it with those; `fluxplain settings show` "
        "names the keys that differ"
    )


def shorter_log(slot: object, offset: int, end: int) -> str:
    """Return why a slot cannot go on at an offset beyond the end of the log."""
    return (
        f"{slot} goes on at offset {offset}, but the topic ends at {end}: messages were lost, or "
        "the topic was made anew. New messages would have the offsets, and so the identity, of "
        "others that were published before. Use another topics.prefix, or make all topics anew "
        "and remove the checkpoints (`fluxplain checkpoints remove`)"
    )
