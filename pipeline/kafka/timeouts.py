"""Every timeout of Kafka's clients that a promise depends on, with its reason.

They are constants, not settings: they bound each other, and a promise holds for these values.
"""

from typing import Any

# Deliveries: what a producer was given, and the broker has not acknowledged.

DELIVERY_DEADLINE_S = 300.0
"""Seconds without any acknowledgement after which a worker ends itself, while outputs wait. Outages
of up to 150 s, such as a rolling restart of brokers or a full disk, are waited out. No message has
a timeout of its own: librdkafka would drop the oldest and send the later ones. Worst case: an
outage that is longer costs a new start, and repeats what was done since the last checkpoint."""

COMMAND_DEADLINE_S = 120.0
"""The same for a command (`replay`, `model announce`), whose user waits for an answer: longer than
a broker takes to restart. Worst case: the command fails, and has sent no more than a prefix."""

PATIENCE_S = 10.0
"""Seconds without an acknowledgement after which log, health and metrics say that outputs wait."""

INTRODUCTION_S = 3_600.0
"""Seconds since the last acknowledgement of a partition after which the next message is sent to it
alone: brokers forget a producer's sequence after a day (`producer.id.expiration.ms`), and would
accept any batch as the first. Worst case: one round trip more in an hour."""

PRODUCE_REQUEST_S = 30.0
"""Seconds that a broker may wait for its in-sync replicas before it answers: Kafka's default, three
times as long as a follower may take to leave them."""

SOCKET_TIMEOUT_S = 40.0
"""Seconds that librdkafka waits for an answer before it closes the connection and asks again:
longer than `PRODUCE_REQUEST_S`. Worst case: a frozen broker holds a batch for so long."""

RECONNECT_MOST_S = 1.0
"""Longest pause between two attempts to reach a broker, in seconds; librdkafka's default of 10 s
would delay each recovery by as much. Worst case: a connection attempt a second for each broker that
is away."""

RETRY_MOST_S = 1.0
"""Longest pause before a refused request is sent again, in seconds."""

TOPICS_MAX_AGE_S = 30.0
"""Age of what a client knows of topics before it asks again, in seconds: so soon are partitions
found that were added. A leader that has moved is asked for at once."""

# Consumer groups.

SESSION_TIMEOUT_S = 10.0
"""Seconds without a heartbeat after which a worker is out of its group. Heartbeats come from a
thread of their own, so slow steps do not need more. Worst case: a worker that was killed blocks its
partitions for so long."""

STATIC_SESSION_TIMEOUT_S = 45.0
"""The same for a static member: so long may it take to come back to its partitions."""

HEARTBEAT_S = 1.0
"""Seconds between heartbeats, and so the time in which a worker learns of a rebalance; a tenth of a
session, so that nine may be lost."""

REBALANCE_TIMEOUT_S = 60.0
"""Seconds that a member may take to join again during a rebalance: longer than a step and a
checkpoint take. Worst case: a frozen member delays the others until its session ends."""

POLL_INTERVAL_S = 1_000.0
"""Seconds without a poll after which a consumer gives up its partitions: longer than
`DELIVERY_DEADLINE_S`, since a worker whose outputs wait reads nothing."""

GROUP_REQUEST_S = 90.0
"""Seconds that the consumer waits for an answer; longer than `REBALANCE_TIMEOUT_S`, since a broker
answers JoinGroup only when all members have joined."""

ALERTS_SESSION_S = 10.0
"""Session of the consumer group of alerts, in seconds, as `SESSION_TIMEOUT_S`."""

ALERTS_POLL_S = 1_800.0
"""Seconds that one alert may take before the group gives the partitions to another member: twice as
long as it is tried (`fluxplain.alerts.webhook.MAX_AGE_S`)."""

# Questions to the broker.

CLUSTER_S = 5.0
"""Seconds to wait for a cluster's metadata: so soon does a command say that no broker answers."""

WATCH_REQUEST_S = 5.0
"""Seconds that the watchdog waits for an answer; it looks again 2 s later."""

REQUEST_S = 10.0
"""Seconds that a command waits for offsets; it asks again while brokers take over."""

LOG_RANGE_S = 30.0
"""Seconds that a reader of a log waits to hear where it begins and ends; it asks again."""

TAKEOVER_S = 60.0
"""Seconds that a new cluster may take to make its topic of offsets, or a broker to take over groups
and partitions."""

PEEK_S = 30.0
"""Seconds to wait for the first message behind a hole in a log; a worker that gets no answer ends
and reads again."""

UNREADABLE_S = 10.0
"""Seconds to wait for the end of a batch that a reader cannot unpack; it asks again."""

CHECKPOINT_READ_S = 30.0
"""Seconds that reading a part of a checkpoint may take, before loading fails."""

REGISTER_S = 30.0
"""Seconds that reading the register may take, and a record in it may wait to be written. Worst
case: a new owner that cannot write its claim ends, and is started again."""

CREATE_S = 30.0
"""Seconds that new topics may take until every broker knows them."""

NEW_TOPIC_S = 3.0
"""Seconds that a new topic may take to be known to the broker that is asked."""


def connection_settings() -> dict[str, Any]:
    """Return librdkafka's settings for connections, of every client."""
    return {
        "socket.timeout.ms": _ms(SOCKET_TIMEOUT_S),
        "reconnect.backoff.max.ms": _ms(RECONNECT_MOST_S),
        "retry.backoff.max.ms": _ms(RETRY_MOST_S),
        "topic.metadata.refresh.interval.ms": _ms(TOPICS_MAX_AGE_S),
    }


def producer_settings() -> dict[str, Any]:
    """Return librdkafka's settings for deliveries; see `DELIVERY_DEADLINE_S`."""
    return {
        "message.timeout.ms": 0,  # none
        "request.timeout.ms": _ms(PRODUCE_REQUEST_S),
    }


def group_settings(*, is_static: bool) -> dict[str, Any]:
    """Return Faust's settings for a group whose static members keep partitions over a restart."""
    return {
        "consumer_metadata_max_age_ms": _ms(TOPICS_MAX_AGE_S),
        "broker_session_timeout": STATIC_SESSION_TIMEOUT_S if is_static else SESSION_TIMEOUT_S,
        "broker_heartbeat_interval": HEARTBEAT_S,
        "broker_rebalance_timeout": REBALANCE_TIMEOUT_S,
        "broker_max_poll_interval": POLL_INTERVAL_S,
        "broker_request_timeout": GROUP_REQUEST_S,
    }


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
