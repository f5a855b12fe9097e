"""A worker of Kafka Connect on this machine."""

import subprocess
from pathlib import Path
from typing import Any

import orjson

from deploy.kafka.broker import Kafka
from deploy.kafka.java import java
from tests.kit.free_ports import free_ports

CLASS = "org.apache.kafka.connect.cli.ConnectStandalone"


class Connect:
    """A standalone worker with one connector, started and killed again and again.

    Parameters
    ----------
    jars
        Folder with its jars and those of the connector.
    folder
        For its settings and its log.
    bootstrap_servers
        The broker.
    connector
        Name and settings of the connector, as its REST interface takes them.
    """

    def __init__(
        self, jars: Path, folder: Path, bootstrap_servers: str, connector: dict[str, Any]
    ) -> None:
        self._kafka = Kafka(java(), jars)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        text = "org.apache.kafka.connect.storage.StringConverter"
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "key.converter": text,
            "value.converter": text,
            "offset.storage.file.filename": folder / "offsets",
            "offset.flush.interval.ms": 1000,
            "listeners": f"http://127.0.0.1:{free_ports(1)}",
            "plugin.discovery": "service_load",  # seconds faster than a scan of all classes
        }
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        (folder / "worker.properties").write_text(lines)
        (folder / "connector.json").write_bytes(orjson.dumps(connector))

    @property
    def log(self) -> str:
        """The end of its log."""
        return (self._folder / "connect.log").read_text(errors="replace")[-3000:]

    def start(self) -> None:
        """Start without waiting for it."""
        with (self._folder / "connect.log").open("ab") as log:
            self._process = self._kafka.popen(
                self._folder, CLASS, "worker.properties", "connector.json", output=log
            )

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
