"""The workers, and what they say of themselves: in their log, and on their health endpoint."""

import re
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import orjson

from fluxplain.cli.supervisor import Supervisor
from fluxplain.config import Config
from fluxplain.config.replica import Replica, Role
from tests.kit.command import LOG

_HEALTH = re.compile(r"^\S+ \S+ (\d+) INFO \S+ [\w-]+: health at (\S+)$", re.MULTILINE)

_GOES_ON = re.compile(
    r"^(?P<time>\S+ \S+) (?P<pid>\d+) INFO \S+ (?P<role>\w+) "
    r"\S+-(?P<partition>\d+): resumes at offset (?P<offset>\d+)$",
    re.MULTILINE,
)

Loaded = Mapping[int, tuple[float, int]]
"""Partition → when its state was loaded, in seconds since the epoch, and where it goes on."""


class Workers:
    """Worker processes that nobody starts again by himself.

    Attributes
    ----------
    static
        Whether workers that are started now are static members of their groups.
    """

    def __init__(self, config_path: Path, config: Config, folder: Path) -> None:
        self.static = False
        self._log_path = folder / LOG
        self._log = self._log_path.open("wb")
        self._supervisor = Supervisor(
            config_path,
            environment={
                "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": config.kafka.bootstrap_servers,
                "FLUXPLAIN_CHECKPOINT__DIRECTORY": str(folder / "checkpoints"),
            },
            environment_of=self._environment_of,
            stderr=self._log,
        )

    def add(self, replica: Replica | Role) -> str:
        """Start one more worker and return its name."""
        return self._supervisor.add(replica)

    def kill(self, name: str) -> None:
        """Kill a worker as a crash would, and see that it is gone."""
        self._supervisor.kill(name, signal.SIGKILL)
        while name in self.running():
            pass

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a worker, and wait for nothing."""
        self._supervisor.kill(name, number)

    def check(self) -> None:
        """Start again what died, as ``fluxplain up`` does."""
        self._supervisor.check()

    @property
    def deaths(self) -> Sequence[tuple[str, int]]:
        """(name, exit status) of each worker that died and was to be started again."""
        return self._supervisor.deaths

    def stop(self, name: str) -> int:
        """Stop a worker in good order, or bury one that was killed; return its exit status."""
        return self._supervisor.remove(name)

    def running(self, role: Role | None = None) -> dict[str, int]:
        """Return name → process id of a role's workers."""
        return self._supervisor.running(role)

    def close(self) -> None:
        """Stop all."""
        self._supervisor.stop()
        self._log.close()

    def partitions(self, name: str) -> set[int]:
        """Return the partitions that a worker has; none unless it is ready."""
        return set(self.next_offsets(name))

    def next_offsets(self, name: str) -> dict[int, int]:
        """Return how far a worker is in each of its partitions; nothing unless it is ready."""
        address = dict(_HEALTH.findall(self._text())).get(str(self.running().get(name)))
        if address is None:
            return {}
        state: dict[str, Any] = {"ready": False}
        with (
            suppress(HTTPError, URLError, TimeoutError),
            urlopen(f"{address}/readyz", timeout=2) as answer,
        ):
            state = orjson.loads(answer.read())
        if not state["ready"]:
            return {}
        return {each["partition"]: each["next_offset"] for each in state["partitions"]}

    def loaded(self, role: Role, pids: Collection[int], since: float) -> Loaded:
        """Return the partitions whose state some workers first loaded after a moment."""
        found: dict[int, tuple[float, int]] = {}
        for line in _GOES_ON.finditer(self._text()):
            at = datetime.strptime(line["time"], "%Y-%m-%d %H:%M:%S,%f").timestamp()
            if line["role"] == role and int(line["pid"]) in pids and at >= since:
                found.setdefault(int(line["partition"]), (at, int(line["offset"])))
        return found

    def _text(self) -> str:
        return self._log_path.read_text(errors="replace")

    def _environment_of(self, name: str) -> dict[str, str]:
        return {"FLUXPLAIN_KAFKA__GROUP_INSTANCE_ID": name} if self.static else {}
