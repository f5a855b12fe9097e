"""Writes the results of the local pipeline to files."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from fluxplain.schemas import OUTPUTS, DeadLetter, Record


class LocalFiles:
    """Writes records as JSON lines, one file per topic."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.counts = dict.fromkeys(OUTPUTS, 0)
        self.last_dead_letter: DeadLetter | None = None
        self._stack = ExitStack()
        self._files = {
            topic: self._stack.enter_context((folder / f"{topic}.jsonl").open("wb"))
            for topic in OUTPUTS
        }

    def write(self, record: Record) -> None:
        """Append one record to its file."""
        self._files[record.TOPIC].write(record.encode() + b"\n")
        self.counts[record.TOPIC] += 1
        if isinstance(record, DeadLetter):
            self.last_dead_letter = record

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
