"""Describes topics and groups of a real Kafka: their settings, this client's rights, members.

The embedded broker answers none of these requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource

from fluxplain.config import Config
from fluxplain.kafka.client import client_settings, refusal
from fluxplain.kafka.timeouts import REQUEST_S


class Described:
    """Answers about topics and groups; all methods raise ``BrokerError`` without one."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._admin = AdminClient(client_settings(config))

    def settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return topic → its settings, in the words of the broker."""
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
        futures = self._admin.describe_configs(asked, request_timeout=REQUEST_S)
        found = self._answers("cannot describe the topics' settings", futures)
        return {
            resource.name: {key: str(entry.value) for key, entry in entries.items()}
            for resource, entries in found.items()
        }

    def rights(self, topics: Sequence[str]) -> dict[str, set[str]]:
        """Return topic → the operations that this client may do."""
        futures = self._admin.describe_topics(
            TopicCollection([*topics]),
            include_authorized_operations=True,
            request_timeout=REQUEST_S,
        )
        return {
            name: _names(each.authorized_operations)
            for name, each in self._answers("cannot describe the topics", futures).items()
        }

    def groups(self, names: Sequence[str]) -> dict[str, tuple[int, set[str]]]:
        """Return group → its number of members, and the operations that this client may do."""
        futures = self._admin.describe_consumer_groups(
            [*names], include_authorized_operations=True, request_timeout=REQUEST_S
        )
        return {
            name: (len(each.members), _names(each.authorized_operations))
            for name, each in self._answers("cannot describe the groups", futures).items()
        }

    def _answers(self, what: str, futures: Mapping[Any, "Future[Any]"]) -> dict[Any, Any]:
        try:
            return {each: future.result(timeout=REQUEST_S) for each, future in futures.items()}
        except KafkaException as error:
            raise refusal(self._config, what, error.args[0]) from None


def _names(operations: Iterable[AclOperation] | None) -> set[str]:
    return {each.name for each in operations or ()}
