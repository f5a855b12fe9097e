"""What ``fluxplain watch`` takes for news."""

from pathlib import Path
from typing import Any, Self

import pytest

from fluxplain.cli import live
from fluxplain.config import load_config
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.monitor.terminal.watch import WatchView
from tests.kit.records import prediction
from tests.kit.settings import SETTINGS, topics, write_config


def test_results_of_the_past_are_no_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    views: list[WatchView] = []

    class Screen:
        def __init__(self, **_: Any) -> None:
            pass

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def update(self, view: WatchView, *, refresh: bool) -> None:
            assert refresh
            views.append(view)
            if view.store.streams:
                raise KeyboardInterrupt

    monkeypatch.setattr(live, "Live", Screen)
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        path = write_config(tmp_path / "fluxplain.toml", {**SETTINGS, "topics": topics("past.")})
        config = load_config(path)
        create_topics(config)
        producer = RecordProducer(config)
        producer.send(config.topic("predictions"), prediction(7).encode(), partition=0)
        producer.flush()
        live.watch(path)
    freshness = views[-1].store.status.freshness
    assert freshness.published_at > 0
    assert freshness.arrived_at is None
