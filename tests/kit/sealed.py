"""Checkpoints that are sealed, and one who sees what of them is unpickled."""

import logging
import os
import pickle
from collections.abc import Iterator
from functools import cache

import pytest

from fluxplain.config import Config
from fluxplain.kafka.checkpoints import checkpoint
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, Slot, State
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.kafka.checkpoints.records import CHUNK_BYTES
from fluxplain.kafka.ownership.lives import FIRST, Life
from fluxplain.kafka.ownership.writers import Fence
from fluxplain.stages import DriftStage
from tests.fuzz.pools import REGRESSION

SLOT = Slot("drift", "fluxplain.explanations", 0)

IDENTITY = Identity.of({"seed": "one"}, "cluster", {SLOT.topic: "id of the topic"})

KEY = b"a key of at least thirty-two characters"


class Large(DriftStage):
    """A stage whose state needs several chunks."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.ballast = os.urandom(3 * CHUNK_BYTES)


class Unpickled:
    """What unpickling gives in these tests: nothing that a fuzzer wrote is run."""


class Spy:
    """Stands in for ``pickle`` and writes down what it is given."""

    HIGHEST_PROTOCOL = pickle.HIGHEST_PROTOCOL
    dumps = staticmethod(pickle.dumps)

    def __init__(self) -> None:
        self.given: list[bytes] = []

    def loads(self, state: bytes) -> tuple[Unpickled, Life, Fence]:
        self.given.append(state)
        return Unpickled(), FIRST, Fence()


@pytest.fixture(scope="module")
def spy() -> Iterator[Spy]:
    """Watch what is unpickled; and keep no log of what is passed over."""
    spy = Spy()
    logging.disable(logging.CRITICAL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "pickle", spy)
        yield spy
    logging.disable(logging.NOTSET)


@cache
def sealed(key: bytes | None, offset: int) -> tuple[bytes, State]:
    """Return header and state of a good checkpoint."""
    return Envelope(IDENTITY, key).seal(SLOT, Checkpoint(offset, DriftStage(REGRESSION)))
