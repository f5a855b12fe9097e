"""Exports a topic to a folder of Parquet files, from where the last export ended."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import Progress

from fluxplain.cli import common as cli
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.client import partitions_of
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.results.topic_history import History, Message
from fluxplain.schemas import Record


def append_to_history(
    settings: Config, topic: str, kind: type[Record], out: Path, progress: Progress
) -> tuple[int, int]:
    """Append the topic's new records to a folder; return how many, and of unusable messages.

    Raises ``ConfigError`` if another process appends to it, or if the topic ends before the files.
    """
    folder = out / settings.topic(topic)
    folder.mkdir(parents=True, exist_ok=True)
    written = unusable = 0
    with _locked(folder):
        for partition in partitions_of(settings, settings.topic(topic)):
            history = History(folder, kind, partition)
            tally = history.append(_new(settings, topic, partition, history.next_offset, progress))
            written += tally.written
            unusable += tally.unusable
    return written, unusable


def _new(
    settings: Config, topic: str, partition: int, next_offset: int | None, progress: Progress
) -> Iterator[Message]:
    """Yield the messages of a partition that the history lacks, up to its current end."""
    starts = {partition: next_offset or 0}
    with TopicReader(settings, [topic], from_beginning=True, starts=starts) as reader:
        [(tp, offsets)] = reader.extent().items()
        start = offsets.start if next_offset is None else next_offset
        if start > offsets.stop:
            raise ConfigError(
                f"--out has offset {start - 1} of {tp}, but the topic ends at {offsets.stop}: it "
                "was deleted and created again. Export to another folder"
            )
        if start < offsets.start:
            cli.say(f"{tp}: {start} to {offsets.start - 1} were deleted before they were exported")
        ahead = {tp: range(max(start, offsets.start), offsets.stop)}
        messages = reader.until(ahead)
        for each in progress.track(messages, len(ahead[tp]), description=str(tp)):
            yield Message(int(each.offset() or 0), each.timestamp()[1], each.value())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another export to {folder} runs: wait for its end") from None
        yield
