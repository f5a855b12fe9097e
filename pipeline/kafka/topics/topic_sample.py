"""Reads the newest messages of any topic of the user's."""

from difflib import get_close_matches

from confluent_kafka import Message

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError, cluster
from fluxplain.kafka.topics.topic_reader import TopicReader

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of the messages after which reading stops."""

MOST_LISTED = 20
"""Names of topics that are listed where one is missing."""


def newest_values(config: Config, topic: str, limit: int) -> list[bytes | None]:
    """Return the values of about the newest ``limit`` messages of a topic, by their timestamps.

    Each partition gives the same number of them. ``topic`` is the whole name, without a prefix.
    Raises ``BrokerError`` if there is no such topic, or the broker refuses or does not answer.
    """
    known = cluster(config).topics
    if topic not in known:
        raise _no_topic(config, topic, [*known])
    anywhere = config.model_copy(update={"topics": config.topics.model_copy(update={"prefix": ""})})
    newest = max(1, limit // len(known[topic].partitions))
    messages: list[Message] = []
    size = 0
    with TopicReader(anywhere, [topic], from_beginning=True, newest=newest) as reader:
        ends = reader.extent()
        for message in reader.until(ends):
            messages.append(message)
            size += len(message.value() or b"")
            if size > MOST_BYTES:
                break
    return [each.value() for each in sorted(messages, key=lambda each: each.timestamp()[1])]


def _no_topic(config: Config, topic: str, known: list[str]) -> BrokerError:
    names = sorted(name for name in known if not name.startswith("_"))
    close = get_close_matches(topic, names, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    more = ", …" if len(names) > MOST_LISTED else ""
    listed = f"; its topics: {', '.join(names[:MOST_LISTED])}{more}" if names else ", nor any other"
    return BrokerError(
        f"the broker at {config.kafka.bootstrap_servers} has no topic {topic!r}{meant}{listed}"
    )
