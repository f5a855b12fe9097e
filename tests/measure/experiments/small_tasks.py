"""Tasks that are tested with; apart, so that processes that run them start quickly."""

import time
from pathlib import Path


def square(*, base: int, seed: int, noted: str) -> int:
    with Path(noted).open("a") as file:
        file.write(f"{seed}\n")
    if base == 13:
        raise ValueError("13 is not squared")
    return base * base


def sleep(*, seconds: float, noted: str) -> float:
    Path(noted).touch()
    time.sleep(seconds)
    return seconds
