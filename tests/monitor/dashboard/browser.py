"""A dashboard on a broker, and a browser that looks at it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.client import asking_consumer
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.schemas import Explanation, Record
from tests.kit.settings import SETTINGS, write_config
from tests.kit.support import make_config
from tests.monitor.dashboard.stream import name

WIDE = {"width": 1440, "height": 1000}

PHONE = {"width": 390, "height": 844}

TIMEOUT_MS = 20_000

ELEMENTS = 50
"""Most elements that take the focus besides controls."""

AXE = Path(__file__).parent / "vendor/axe.min.js"

CONTROLS = """() => [...document.querySelectorAll("button, select, input, summary, a[href]")]
  .filter((each) => each.checkVisibility() && !each.disabled && each.tabIndex >= 0)
  .filter((each) => each.type !== "radio" || each.checked)
  .map((each, i) => (each.dataset.tab = `${i} ${each.id || each.textContent.slice(0, 40)}`))"""
"""Marks each visible control; of a group of radio buttons the arrow keys reach the others."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Debian's browser."""
    path = shutil.which("chromium")
    if path is None:
        raise FileNotFoundError("chromium is not installed: `make browser` does it")
    with sync_playwright() as playwright:
        # as root, as in a container, it refuses to run with its sandbox
        no_sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(
            executable_path=path, args=[*no_sandbox, "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One page, with complaints: console messages, errors, and requests to other hosts."""

    def __init__(self, browser: Browser, address: str, **context: Any) -> None:
        self.complaints: list[str] = []
        self._address = address.partition("#")[0]
        self._context = browser.new_context(viewport=context.pop("viewport", WIDE), **context)
        self._context.set_default_timeout(TIMEOUT_MS)
        self.page: Page = self._context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._check(request.url))
        self.page.goto(address)

    def _check(self, url: str) -> None:
        if not url.startswith((self._address, "data:")):
            self.complaints.append(f"request to {url}")

    def live(self) -> None:
        """Wait until the past has been drawn."""
        self.page.locator("#status-text", has_text="Live").wait_for()
        self.page.locator("#feature-list button").first.wait_for()

    def chart(self, name: str) -> str:
        """Return what a chart says of itself."""
        return self.page.locator(f"#{name}-chart").get_attribute("aria-label") or ""

    def changes(self) -> Locator:
        """Return the buttons of the list of changes, with all incidents unfolded."""
        self.page.evaluate(
            "() => document.querySelectorAll('#change-list details').forEach(e => e.open = true)"
        )
        return self.page.locator("#change-list button")

    def barriers(self) -> list[tuple[str, list[str]]]:
        """Return what axe calls serious or critical, and where it is."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("() => axe.run()")
        return [
            (each["id"], [node["html"][:200] for node in each["nodes"]])
            for each in found["violations"]
            if each["impact"] in {"serious", "critical"}
        ]

    def out_of_reach(self) -> list[str]:
        """Return the visible controls that the Tab key does not reach."""
        missed: list[str] = self.page.evaluate(CONTROLS)
        for _ in range(len(missed) + ELEMENTS):
            self.page.keyboard.press("Tab")
            here = self.page.evaluate("() => document.activeElement?.dataset.tab ?? null")
            missed = [each for each in missed if each != here]
            if not missed:
                break
        return missed

    def leave(self) -> None:
        """Close the page, whatever was wrong."""
        self._context.close()

    def close(self) -> None:
        """Leave, and fail if anything was wrong."""
        self.leave()
        assert not self.complaints, self.complaints


class Dashboard:
    """A running ``fluxplain dashboard``, the address of its page, and a producer for its topics."""

    def __init__(self, config: Config, settings_path: Path) -> None:
        self._config = config
        self._settings_path = settings_path
        self._producer = RecordProducer(config)
        self._process: subprocess.Popen[bytes] | None = None
        self.address = self.start()

    def start(self, port: str = "0", **environment: str) -> str:
        """Start the command and return its address."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fluxplain.cli", "dashboard", "-c", str(self._settings_path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "FLUXPLAIN_DASHBOARD__PORT": port, **environment},
        )
        assert self._process.stdout is not None
        told = self._process.stdout.readline().decode()
        found = re.fullmatch(r"Dashboard: (http://\S+)\n", told)
        assert found, told
        return found.group(1)

    def stop(self) -> None:
        """Stop the command."""
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.send_signal(signal.SIGINT)
        status = self._process.wait(20)
        self._process.stdout.close()
        assert status == 0

    def publish(self, *records: Record) -> None:
        """Publish records, and wait until the broker has them."""
        for i, record in enumerate(records):
            self._producer.send(self._config.topic(record.TOPIC), record.encode(), partition=0)
            if i % 1000 == 999:
                self._producer.flush()
        self._producer.flush()
        self._keep_up()

    def _keep_up(self) -> None:
        """Commit what was published, as the drift role does: nobody waits for a worker here."""
        read = TopicPartition(self._config.topic(Explanation.TOPIC), 0)
        consumer = asking_consumer(self._config, self._config.group(Replica("drift")))
        read.offset = consumer.get_watermark_offsets(read)[1]
        consumer.commit(offsets=[read], asynchronous=False)
        consumer.close()


@contextmanager
def dashboard(
    folder: Path, features: int, alpha: float | list[float] = 0.001, **more: Any
) -> Iterator[Dashboard]:
    """Run a broker and the command ``fluxplain dashboard``, with ``more`` tables of settings."""
    tables = {
        **more,
        "features": {name(i): "numeric" for i in range(features)},
        "explain": {"alpha": alpha},
    }
    with EmbeddedBroker() as broker:
        config = make_config(**tables).on_broker(broker.bootstrap_servers)
        create_topics(config)
        settings = {**SETTINGS, **tables, "kafka": {"bootstrap_servers": broker.bootstrap_servers}}
        path = write_config(folder / "fluxplain.toml", settings)
        served = Dashboard(config, path)
        try:
            yield served
        finally:
            served.stop()
