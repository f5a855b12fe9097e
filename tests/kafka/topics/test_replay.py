"""Replay holds back: the embedded broker's short memory loses nothing."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError
from fluxplain.kafka.embedded import PARTITION_BYTES, EmbeddedBroker
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from tests.kit.settings import SETTINGS


@pytest.fixture
def config() -> Iterator[Config]:
    with EmbeddedBroker() as broker:
        config = Config(**SETTINGS).on_broker(broker.bootstrap_servers)
        create_topics(config)
        yield config


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (100_000, ReplayOptions()),
        (2_000, ReplayOptions(max_lag=20)),
        (30, ReplayOptions(partition=3)),
    ],
)
def test_waits_for_a_pipeline_that_does_not_move(
    config: Config, size: int, options: ReplayOptions
) -> None:
    stop = threading.Event()
    values = (b"x" * size for _ in range(1_000_000))
    thread = threading.Thread(
        target=replay, args=(config, values, options), kwargs={"stop": stop}, daemon=True
    )
    offsets = GroupOffsets(config, "model", "features")
    thread.start()
    sent = _settled(lambda: offsets.ends()[options.partition])
    low = offsets.starts()[options.partition]
    stop.set()
    thread.join(30)
    offsets.close()
    assert not thread.is_alive()
    assert 0 < sent * size < PARTITION_BYTES
    assert sent <= (options.max_lag or sent)
    assert low == 0, "the broker has dropped records that nobody has read"


def test_a_partition_that_does_not_exist_is_told(config: Config) -> None:
    with pytest.raises(BrokerError, match=r"partition 9 does not exist: .* 0 to 3"):
        replay(config, [b"{}"], ReplayOptions(partition=9))


def test_missing_topics_are_told() -> None:
    with EmbeddedBroker() as broker:
        config = Config(**SETTINGS).on_broker(broker.bootstrap_servers)
        with pytest.raises(BrokerError, match="topics create"):
            replay(config, [b"{}"], ReplayOptions())


def _settled(read: Callable[[], int]) -> int:
    """Return a value once it has been above 0 and the same for two seconds."""
    last, since = 0, time.monotonic()
    while not last or time.monotonic() - since < 2.0:
        value = read()
        if value != last:
            last, since = value, time.monotonic()
        time.sleep(0.1)
    return last
