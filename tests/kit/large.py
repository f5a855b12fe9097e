"""A stage with a large state."""

import os

from fluxplain.config import Config
from fluxplain.kafka.checkpoints.records import CHUNK_BYTES
from fluxplain.stages import DriftStage


class Large(DriftStage):
    """A stage whose state needs several chunks."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.ballast = os.urandom(3 * CHUNK_BYTES)
