"""Every timeout of Kafka's clients that a promise depends on, with its reason.

Three are settings: `kafka.session_timeout_s`, `kafka.rebalance_timeout_s` and
`kafka.delivery_timeout_s`. Those that they bound follow from them here. The others are constants:
they bound each other, and promises hold for these values only.
"""

from typing import Any

from fluxplain.config import KafkaSettings

# Deliveries: messages that the broker has not acknowledged.

COMMAND_DEADLINE_S = 120.0
"""Seconds without any acknowledgement after which a command (`replay`, `model announce`) fails: its
user waits, and a broker restarts sooner. Worst case: it has sent only a prefix. A worker waits for
`kafka.delivery_timeout_s` instead: by default long enough for outages of 150 s, such as a rolling
restart of brokers or a full disk. Worst case: a longer outage costs a restart and repeats the work
since the last checkpoint. Messages have no timeout of their own: librdkafka would drop the oldest
and send later ones."""

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

MOST_HEARTBEAT_S = 1.0
"""Longest time between two heartbeats in seconds, and so the delay of a rebalance notice. At most a
tenth of a session, so that nine may be lost."""

POLL_BEYOND_DELIVERY_S = 700.0
"""Seconds after `kafka.delivery_timeout_s` without a poll after which a consumer gives up its
partitions: a worker with waiting outputs does not poll. Worst case: a worker whose step never ends
keeps its partitions for this time and the delivery's, unless its watchdog ends it sooner."""

GROUP_REQUEST_BEYOND_S = 30.0
"""Seconds that the consumer waits for an answer after a rebalance or a session has timed out: a
broker answers JoinGroup only when all members have joined."""

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
    """Return librdkafka's delivery settings; see `COMMAND_DEADLINE_S`."""
    return {
        "message.timeout.ms": 0,  # none
        "request.timeout.ms": _ms(PRODUCE_REQUEST_S),
    }


def heartbeat_s(kafka: KafkaSettings) -> float:
    """Return the seconds between two heartbeats."""
    return min(MOST_HEARTBEAT_S, kafka.session_s / 10)


def group_settings(kafka: KafkaSettings) -> dict[str, Any]:
    """Return Faust's group settings; static members keep their partitions over a restart."""
    slowest_s = max(kafka.rebalance_timeout_s, kafka.session_s)
    return {
        "consumer_metadata_max_age_ms": _ms(TOPICS_MAX_AGE_S),
        "broker_session_timeout": kafka.session_s,
        "broker_heartbeat_interval": heartbeat_s(kafka),
        "broker_rebalance_timeout": kafka.rebalance_timeout_s,
        "broker_max_poll_interval": kafka.delivery_timeout_s + POLL_BEYOND_DELIVERY_S,
        "broker_request_timeout": slowest_s + GROUP_REQUEST_BEYOND_S,
    }


def subscriber_settings(kafka: KafkaSettings, poll_s: float) -> dict[str, int]:
    """Return the group settings of a librdkafka consumer that polls at least every ``poll_s``."""
    return {
        "session.timeout.ms": _ms(kafka.session_s),
        "heartbeat.interval.ms": _ms(heartbeat_s(kafka)),
        "max.poll.interval.ms": _ms(max(poll_s, kafka.session_s)),
    }


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
