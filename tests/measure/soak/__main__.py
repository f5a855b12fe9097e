"""The command ``python -m tests.measure.soak``; its last line is the verdict."""

from typing import Annotated

import typer

from tests.kit.command import execute
from tests.measure.soak.run import Soak


def soak(
    records: Annotated[int, typer.Option(min=10_000, help="Observations in all.")] = 500_000,
    most_delay: Annotated[
        int,
        typer.Option(
            min=0,
            max=10_000,
            help="How many observations later a label comes, at most; then 5 % never come, and 1 % "
            "twice. With 0 labels come with their observations.",
        ),
    ] = 0,
) -> None:
    """Put a long stream through all roles; no worker may grow, die or lose anything."""
    execute(
        "soak",
        lambda folder, clock: Soak(records, most_delay, folder, clock).problems(),
        passed="memory and open files are flat, no worker died, every record was answered",
    )


if __name__ == "__main__":
    typer.run(soak)
