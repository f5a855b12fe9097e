"""Every timeout of Kafka's clients that a promise depends on, with its reason.

They are constants, not settings: they bound each other, and promises hold for these values only.
"""

from typing import Any

# Deliveries: messages that the broker has not acknowledged.

DELIVERY_DEADLINE_S = 300.0
"""Seconds without any acknowledgement after which a worker with waiting outputs ends. Outages of up
to 150 s, such as a rolling restart of brokers or a full disk, are waited out. Messages have no
timeout of their own: librdkafka would drop the oldest and send later ones. Worst case: a longer
outage costs a restart and repeats the work since the last checkpoint."""

COMMAND_DEADLINE_S = 120.0
"""The same for a command (`replay`, `model announce`), whose user waits: longer than a broker takes
to restart. Worst case: the command fails after sending only a prefix."""

PATIENCE_S = 10.0
"""Seconds without an acknowledgement after which log, health and metrics report waiting outputs."""

INTRODUCTION_S = 3_600.0
"""Seconds since the last acknowledgement of a partition after which its next message is sent alone:
brokers forget a producer's sequence after a day (`producer.id.expiration.ms`), and would accept any
batch as the first. Worst case: one extra round trip an hour."""

PRODUCE_REQUEST_S = 30.0
"""Seconds that a broker may wait for its in-sync replicas before it answers: Kafka's default, and
three times as long as a follower may lag before it is removed from them."""

SOCKET_TIMEOUT_S = 40.0
"""Seconds that librdkafka waits for an answer before it closes the connection and asks again:
longer than `PRODUCE_REQUEST_S`. Worst case: a frozen broker delays a batch by this time."""

RETRY_MOST_S = 1.0
"""Longest pause before the next connection attempt, or before a refused request is sent again, in
seconds; librdkafka's default of 10 s between connections would delay each recovery by as much.
Worst case: one attempt a second per missing broker."""

TOPICS_MAX_AGE_S = 30.0
"""Seconds after which a client refreshes topic metadata, and so finds added partitions. A moved
leader is looked up at once."""

# Consumer groups.

SESSION_TIMEOUT_S = 10.0
"""Seconds without a heartbeat after which a worker, or `fluxplain alerts run`, loses its group
membership. Heartbeats come from a separate thread, so slow steps do not need more. Worst case: a
killed worker blocks its partitions for this time."""

STATIC_SESSION_TIMEOUT_S = 45.0
"""The same for a static member, which keeps its partitions if it returns within this time."""

HEARTBEAT_S = 1.0
"""Seconds between heartbeats, and so the delay of a rebalance notice; a tenth of a session, so that
nine may be lost."""

REBALANCE_TIMEOUT_S = 60.0
"""Seconds that a member may take to rejoin during a rebalance: longer than a step and a checkpoint
take. Worst case: a frozen member delays the others until its session ends."""

POLL_INTERVAL_S = 1_000.0
"""Seconds without a poll after which a consumer gives up its partitions: longer than
`DELIVERY_DEADLINE_S`, since a worker with waiting outputs does not poll."""

GROUP_REQUEST_S = 90.0
"""Seconds that the consumer waits for an answer; longer than `REBALANCE_TIMEOUT_S`, since a broker
answers JoinGroup only when all members have joined."""

ALERTS_POLL_S = 1_800.0
"""Seconds that one alert may take before the group reassigns its partitions: twice as long as it is
retried (`fluxplain.alerts.webhook.MAX_AGE_S`)."""

# Requests to the broker.

CLUSTER_S = 5.0
"""Seconds to wait for a cluster's metadata. A command then reports a broker that cannot be reached,
and asks a silent one again."""

CLUSTER_QUESTIONS = 3
"""How often a silent broker is asked for its metadata: a busy one may need longer than
`CLUSTER_S`."""

WATCH_REQUEST_S = 5.0
"""Seconds that the watchdog waits for an answer; it asks again 2 s later."""

REQUEST_S = 10.0
"""Seconds that a command waits for offsets; it asks again during a failover."""

OLDEST_S = 5.0
"""Seconds that the dashboard waits for the oldest unprocessed message of each partition of a group;
it asks again. Worst case: the other groups' metrics are older by this time."""

LOG_RANGE_S = 30.0
"""Seconds that a reader waits for the first and last offset of a log; it asks again."""

TAKEOVER_S = 60.0
"""Seconds that a new cluster may take to create its offsets topic, or a broker to take over groups
and partitions."""

PEEK_S = 30.0
"""Seconds to wait for the first message after a hole in a log. Worst case: the worker ends, and its
next start reads again."""

UNREADABLE_S = 10.0
"""Seconds to wait for the end of a batch that a reader cannot unpack; it asks again."""

CHECKPOINT_READ_S = 30.0
"""Seconds that reading a part of a checkpoint may take before loading fails."""

REGISTER_S = 30.0
"""Seconds that reading the register, or writing a record into it, may take. Worst case: a new owner
that cannot write its claim ends and is restarted."""

CREATE_S = 30.0
"""Seconds that new topics may take until every broker knows them."""

NEW_TOPIC_S = 3.0
"""Seconds until the requested broker must know a new topic."""


def connection_settings() -> dict[str, Any]:
    """Return librdkafka's connection settings, for every client."""
    return {
        "socket.timeout.ms": _ms(SOCKET_TIMEOUT_S),
        "reconnect.backoff.max.ms": _ms(RETRY_MOST_S),
        "retry.backoff.max.ms": _ms(RETRY_MOST_S),
        "topic.metadata.refresh.interval.ms": _ms(TOPICS_MAX_AGE_S),
    }


def producer_settings() -> dict[str, Any]:
    """Return librdkafka's delivery settings; see `DELIVERY_DEADLINE_S`."""
    return {
        "message.timeout.ms": 0,  # none
        "request.timeout.ms": _ms(PRODUCE_REQUEST_S),
    }


def group_settings(*, is_static: bool) -> dict[str, Any]:
    """Return Faust's group settings; static members keep their partitions over a restart."""
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
