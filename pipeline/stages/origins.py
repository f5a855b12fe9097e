"""Which messages of the joined topics the model stage has taken, and which were lost."""

from collections.abc import Iterable

from fluxplain.schemas import BadRecordError, Change, parse_stream, stream_name
from fluxplain.stages.base import Message
from fluxplain.stages.chain import Chain, Gap, Sight


class Origins:
    """The messages that were taken of each of the joined topics.

    Parameters
    ----------
    stream
        Name of the partition that holds the messages of all of them.
    topics
        The topics that are joined, by their full names.
    """

    def __init__(self, stream: str, topics: Iterable[str]) -> None:
        self._stream = stream
        _, self._partition = parse_stream(stream)
        self._chains = {topic: Chain() for topic in topics}
        self._sees_all: bool | None = None

    def take(self, message: Message) -> tuple[Sight, Change | None]:
        """Take a message that was passed on.

        Returns
        -------
        tuple
            What was known of it, and the notice of what was lost before it, if anything was.

        Raises
        ------
        BadRecordError
            If it is from another topic or partition; or so much was lost that it is no longer known
            whether it was taken.
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
        # a stage that starts in the middle does not know what was before its first message
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
                f"offset {offset} of {stream_name(topic, partition)} was read, but what was passed "
                f"on of offsets {gap.begin} to {gap.end - 1} is missing before it: it was lost, or "
                "comes later and is taken then"
            ),
        )
