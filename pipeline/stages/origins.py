"""Tracks which messages of the joined topics the model stage has taken, and which were lost."""

from collections.abc import Iterable

from fluxplain.schemas import BadRecordError, Change, parse_stream, stream_name
from fluxplain.stages.chain import Chain, Gap, Sight
from fluxplain.stages.stage import Message


class Origins:
    """The messages taken from each of the joined ``topics`` (full names) in one ``stream``."""

    def __init__(self, stream: str, topics: Iterable[str]) -> None:
        self._stream = stream
        _, self._partition = parse_stream(stream)
        self._chains = {topic: Chain() for topic in topics}
        self._sees_all: bool | None = None

    def take(self, message: Message) -> tuple[Sight, Change | None]:
        """Take a message that was passed on; return its position and the notice of a gap before it.

        Raises ``BadRecordError`` if it is from another topic or partition, or if so much was lost
        that it is no longer known whether it was taken.
        """
        if self._sees_all is None:
            self._sees_all = message.offset == 0
        topic, partition, offset = message.origin
        chain = self._chains.get(topic)
        if chain is None or partition != self._partition:
            raise BadRecordError(
                f"the message is from {stream_name(topic, partition)}, but only partition "
                f"{self._partition} of {', '.join(self._chains)} is passed on to {self._stream}"
            )
        sight = chain.see(offset)
        if sight is Sight.UNKNOWN:
            raise BadRecordError(
                f"offset {offset} of {stream_name(topic, partition)} came so late that it is no "
                "longer known whether it was taken before"
            )
        # a stage that starts in the middle cannot know what came before its first message
        is_base = chain.next == 0 and not (self._sees_all and message.previous is not None)
        gap = chain.take(offset, message.previous)
        return sight, None if is_base or gap is None else self._notice(message, gap)

    def _notice(self, message: Message, gap: Gap) -> Change:
        topic, partition, offset = message.origin
        return Change.notice(
            kind="gap",
            stream=self._stream,
            seq=message.offset,
            detail=(
                f"offset {offset} of {stream_name(topic, partition)} was read, but offsets "
                f"{gap.begin} to {gap.end - 1}, as far as passed on, are missing before it: they "
                "were lost, or come later and are taken then"
            ),
        )
