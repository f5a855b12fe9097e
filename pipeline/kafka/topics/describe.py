"""Describes topics and groups of a real Kafka: their settings, this client's rights, members.

The embedded broker answers none of these requests.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource

from fluxplain.config import Config
from fluxplain.kafka.client import RETRY_S, client_settings, refusal
from fluxplain.kafka.timeouts import REQUEST_S

NOT_READY = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
"""Errors of a broker that is becoming the coordinator of a group, as of a new cluster's first."""

_Futures = Mapping[Any, "Future[Any]"]


class Described:
    """Answers about topics and groups; all methods raise ``BrokerError`` without one."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._admin = AdminClient(client_settings(config))

    def settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return topic → its settings, in the words of the broker."""
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
        found = self._answers(
            "cannot describe the topics' settings", self._admin.describe_configs, asked
        )
        return {
            resource.name: {key: str(entry.value) for key, entry in entries.items()}
            for resource, entries in found.items()
        }

    def rights(self, topics: Sequence[str]) -> dict[str, set[str]]:
        """Return topic → the operations that this client may do."""
        describe = partial(self._admin.describe_topics, include_authorized_operations=True)
        asked = TopicCollection([*topics]) if topics else []
        found = self._answers("cannot describe the topics", describe, asked)
        return {name: _names(each.authorized_operations) for name, each in found.items()}

    def groups(self, names: Sequence[str]) -> dict[str, tuple[int, set[str]]]:
        """Return group → its number of members, and the operations that this client may do."""
        describe = partial(self._admin.describe_consumer_groups, include_authorized_operations=True)
        return {
            name: (len(each.members), _names(each.authorized_operations))
            for name, each in self._answers(
                "cannot describe the groups", describe, [*names]
            ).items()
        }

    def _answers(self, what: str, describe: Callable[..., _Futures], asked: Any) -> dict[Any, Any]:
        """Return the answers; asks again for a while if a broker is not ready yet.

        Nothing is asked about no things: the client refuses that.
        """
        if not asked:
            return {}
        deadline = time.monotonic() + REQUEST_S
        while True:
            futures = describe(asked, request_timeout=REQUEST_S)
            try:
                return {each: future.result(timeout=REQUEST_S) for each, future in futures.items()}
            except KafkaException as error:
                problem = error.args[0]
                if problem.code() not in NOT_READY or time.monotonic() > deadline:
                    raise refusal(self._config, what, problem) from None
            time.sleep(RETRY_S)


def _names(operations: Iterable[AclOperation] | None) -> set[str]:
    return {each.name for each in operations or ()}
