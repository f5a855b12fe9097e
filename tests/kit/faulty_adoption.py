"""A command that is killed while it adopts checkpoints.

Usage: ``python -m tests.kit.faulty_adoption STEP checkpoints adopt …``
"""

import sys
from functools import partialmethod
from typing import Any

from fluxplain.cli.main import main
from fluxplain.kafka.checkpoints.adoption import Adoption
from fluxplain.kafka.ownership.register import Register
from tests.kit.faulty_worker import Sound, die


def dies_after(of: Any, sound: Sound, *args: Any) -> None:
    """Die when a step is done."""
    sound(of, *args)
    die()


STEPS: dict[str, tuple[Any, str, Sound]] = {
    "all-replays": (Adoption, "register", die),
    "the-record": (Register, "_append", dies_after),
}
"""What is done before the command dies → the method, and what replaces it."""


if __name__ == "__main__":
    owner, name, faulty = STEPS[sys.argv.pop(1)]
    setattr(owner, name, partialmethod(faulty, getattr(owner, name)))
    main()
