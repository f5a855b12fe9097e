"""The process that sends alerts, to a receiver that is ill or hangs."""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fluxplain.config import load_config
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.results.notes_topic import write_notes
from fluxplain.schemas import Change, Note
from tests.kit.preloaded import Forked, Preloaded
from tests.kit.receiver import Receiver, receiver
from tests.kit.records import change
from tests.kit.settings import SETTINGS, topics, write_config
from tests.kit.waiting import wait_until

__all__ = ["receiver"]  # a fixture


class Alerts:
    """Topics of the pipeline, and the process that sends alerts, when started."""

    def __init__(
        self,
        preloaded: Preloaded,
        bootstrap_servers: str,
        prefix: str,
        receiver: Receiver,
        folder: Path,
    ) -> None:
        self._preloaded = preloaded
        alerts = {"url": receiver.url, "quiet_s": 0.0}
        settings = {**SETTINGS, "topics": topics(prefix), "alerts": alerts}
        self._path = write_config(folder / "fluxplain.toml", settings)
        self._config = load_config(self._path).on_broker(bootstrap_servers)
        create_topics(self._config)
        self._log = folder / "alerts.log"
        self._producer = RecordProducer(self._config)
        self.process: Forked | None = None

    def publish(self, *values: Change | bytes) -> None:
        topic = self._config.topic("changes")
        for value in values:
            content = value if isinstance(value, bytes) else value.encode()
            self._producer.send(topic, content, partition=0)
        self._producer.flush()

    def note(self, note: Note) -> None:
        write_notes(self._config, [note])

    def start(self) -> None:
        """Start, and wait until partitions are assigned."""
        before = self._starts()
        with self._log.open("ab") as log:
            self.process = self._preloaded.start(
                [sys.executable, "-m", "fluxplain.cli", "alerts", "run", "-c", str(self._path)],
                {
                    **os.environ,
                    "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": self._config.kafka.bootstrap_servers,
                },
                log,
            )
        wait_until(lambda: self._starts() > before, timeout_s=120)

    def end(self, with_signal: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(with_signal)
        return self.process.wait(30)

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def _starts(self) -> int:
        return len(re.findall("alerts begin with new changes|resuming at the committed", self.log))


@pytest.fixture
def alerts(
    preloaded: Preloaded,
    bootstrap_servers: str,
    prefix: str,
    receiver: Receiver,
    tmp_path: Path,
) -> Iterator[Alerts]:
    alerts = Alerts(preloaded, bootstrap_servers, prefix, receiver, tmp_path)
    yield alerts
    if alerts.process is not None:
        alerts.process.kill()
        alerts.process.wait()


def test_each_new_change_is_delivered_once(alerts: Alerts, receiver: Receiver) -> None:
    old, one, refused, ill, last = (change("a", seq) for seq in range(5))
    alerts.publish(old)
    alerts.start()
    receiver.respond = lambda n: {1: 400, 2: 500}.get(n, 200)
    alerts.publish(b"no change", one, one, refused, ill, last)
    wait_until(lambda: receiver.ids[-1:] == [last.id], timeout_s=60)
    assert receiver.ids == [one.id, refused.id, ill.id, ill.id, last.id]
    assert alerts.end() == 0
    log = alerts.log
    assert "offset 1 is no change: not JSON" in log
    assert f"change {refused.id}: given up" in log
    assert "answered 500 (Internal Server Error); retrying in" in log
    for n, what in ((1, "unreadable"), (3, "delivered"), (1, "held back by repeated")):
        assert f"{n} {what}" in log
    assert "secret-token" not in log
    assert "Traceback" not in log


def test_a_mute_holds_from_when_it_is_noted_also_if_that_was_before_the_start(
    alerts: Alerts, receiver: Receiver
) -> None:
    muted = Note("muted", "2026-03-01T12:00:00Z", feature="a", text="noise")
    alerts.note(muted)
    alerts.start()
    alerts.publish(change("a", 1), change("b", 2))
    wait_until(lambda: len(receiver.ids) == 1, timeout_s=60)
    alerts.note(replace(muted, feature="b"))
    alerts.note(replace(muted, state="unmuted"))
    time.sleep(2.0)  # another topic: nothing orders its messages and these
    alerts.publish(change("b", 3), change("a", 4))
    wait_until(lambda: len(receiver.ids) == 2, timeout_s=60)
    assert receiver.ids == [change("b", 2).id, change("a", 4).id]
    assert alerts.end() == 0
    assert "2 held back by mute" in alerts.log


def test_what_was_not_committed_comes_again_and_a_receiver_that_hangs_does_not_keep_it(
    alerts: Alerts, receiver: Receiver
) -> None:
    end_of_test = threading.Event()

    def killing(_n: int) -> int:
        assert alerts.process is not None
        alerts.process.kill()
        return 200

    def hanging(_n: int) -> int:
        end_of_test.wait(60)
        return 200

    one, missed, other = (change("a", seq) for seq in range(3))
    alerts.start()
    receiver.respond = killing
    alerts.publish(one)
    wait_until(
        lambda: alerts.process is not None and alerts.process.poll() is not None, timeout_s=60
    )
    assert receiver.ids == [one.id]

    receiver.respond = lambda _n: 200
    alerts.publish(missed)  # while nobody reads
    alerts.start()
    wait_until(lambda: f"change {missed.id}: http" in alerts.log, timeout_s=60)
    assert receiver.ids == [one.id, one.id, missed.id]

    receiver.respond = hanging
    alerts.publish(other)
    wait_until(lambda: receiver.ids[-1] == other.id, timeout_s=60)
    assert alerts.end(signal.SIGINT) == 0
    end_of_test.set()
    assert f"change {other.id}: not delivered before shutdown" in alerts.log
