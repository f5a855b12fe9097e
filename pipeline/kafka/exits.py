"""Ends a worker process that cannot continue: exit statuses and messages."""

import logging
import os
from typing import NoReturn

from fluxplain.config.replica import Replica
from fluxplain.errors import NotYetError
from fluxplain.kafka.client import BrokerError
from fluxplain.kafka.producer import DeliveryError, OversizeError

log = logging.getLogger("fluxplain.worker")

EXIT_FAILED = 70
"""Exit status of a worker that failed: a restart may help."""

EXIT_NOT_YET = 75
"""Exit status of a worker that lacks something which may appear: the broker, topics, a model, the
schema registry, a free port."""

EXIT_REFUSED = 78
"""Exit status of a worker that would fail again: a person must intervene."""


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
    """End the process: a person must decide."""
    log.critical(reason)
    end(EXIT_REFUSED)


def end(status: int) -> NoReturn:
    """Flush the log and end the process at once."""
    # not sys.exit: Faust would shut down gracefully, and commit
    logging.shutdown()
    os._exit(status)


def replaced_settings(replica: Replica) -> str:
    """Return the message for a worker whose settings were replaced."""
    return (
        f"{replica}: other settings or versions were registered for this pipeline after this "
        "worker started (`fluxplain settings replace`, `fluxplain checkpoints adopt`). Start it "
        "with those; `fluxplain settings show` names what differs"
    )


def shorter_log(slot: object, offset: int, end: int) -> str:
    """Return the message for a slot whose next offset is beyond the end of the log."""
    return (
        f"the next offset of {slot} is {offset}, but the topic ends at {end}: messages were lost, "
        "or the topic was created again. New messages would reuse the offsets, and so the "
        "identity, of published results. Use another topics.prefix, or create all topics again and "
        "remove the checkpoints (`fluxplain checkpoints remove`)"
    )
