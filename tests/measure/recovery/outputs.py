"""What each role publishes, and when."""

from collections import Counter
from collections.abc import Collection, Hashable

import orjson
from confluent_kafka import Message

from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.topics.reader import TopicReader
from fluxplain.schemas import parse_stream
from tests.kit.kafka_pipeline import identity

PUBLISHED: dict[str, Role] = {
    "predictions": "model",
    "explanations": "explainer",
    "changes": "drift",
}
"""Topic → the role that writes there."""


class Outputs:
    """The first new outputs, and the repeated ones, since a moment.

    Attributes
    ----------
    repeated
        Role → outputs since then that had been published before.
    """

    def __init__(self, config: Config) -> None:
        self._reader = TopicReader(config, list(PUBLISHED), from_beginning=True)
        # evaluations and explanations are dealt alike
        self._places = {
            feature: i % config.topics.partitions for i, feature in enumerate(config.explained)
        }
        self._seen: set[Hashable] = set()
        self._since = 0.0
        self._first: dict[tuple[Role, int], float] = {}
        self.repeated: Counter[Role] = Counter()

    def begin(self, since: float) -> None:
        """Forget what was published before a moment, in seconds since the epoch."""
        self._since = since
        self._first.clear()
        self.repeated.clear()

    def first_new(self, role: Role, partitions: Collection[int]) -> float | None:
        """Return when something new from each of the input's partitions was there.

        None if something is missing yet. What had been published before is not new.
        """
        first = [self._first.get((role, partition)) for partition in partitions]
        known = [at for at in first if at is not None]
        return max(known) if len(known) == len(first) else None

    def poll(self) -> None:
        """Read what is there, or wait a moment."""
        for message in self._reader.poll(0.05):
            self._take(message)

    def close(self) -> None:
        """Leave the broker."""
        self._reader.close()

    def _take(self, message: Message) -> None:
        name, value = self._reader.name(message), message.value()
        assert value is not None
        fields = orjson.loads(value)
        if fields.get("method") == "loss":
            return  # by the model, which its predictions tell more of
        role, at = PUBLISHED[name], message.timestamp()[1] / 1000
        key = identity(name, value)
        again = key in self._seen
        self._seen.add(key)
        if at < self._since:
            return
        if again:
            self.repeated[role] += 1
        else:
            place = (role, self._input_partition(role, fields))
            self._first[place] = min(at, self._first.get(place, at))

    def _input_partition(self, role: Role, fields: dict[str, str]) -> int:
        if role == "model":
            return parse_stream(fields["stream"])[1]
        return self._places[fields["feature"]]
