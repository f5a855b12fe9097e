"""Workers on a broker: where they log and save, and what they say of themselves."""

import json
import re
import time
import urllib.request
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError

from fluxplain.cli.supervisor import Supervisor
from fluxplain.config import load_config
from fluxplain.config.replica import Role
from fluxplain.kafka.topics.create import create_topics
from tests.kit.command import LOG
from tests.kit.waiting import wait_until

_HEALTH = re.compile(r"^\S+ \S+ (\d+) INFO \S+ [\w-]+: health at (\S+)$", re.MULTILINE)

_GOES_ON = re.compile(
    r"^(\S+ \S+) (\d+) INFO \S+ (\w+) \S+-(\d+): resumes at offset (\d+)$",
    re.MULTILINE,
)


class PartitionStart(NamedTuple):
    """A worker's start with a partition: when, in seconds since the epoch, and at which offset."""

    at: float
    pid: int
    role: str
    partition: int
    offset: int


Loaded = Mapping[int, tuple[float, int]]
"""Partition → when its state was loaded, in seconds since the epoch, and where it goes on."""


class Workers(Supervisor):
    """Worker processes, none at first, with the topics that they need; a folder has their files.

    `added` are the variables of all workers: the broker, the checkpoints, and those given.
    """

    def __init__(
        self,
        config_path: Path,
        bootstrap_servers: str,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        environment_of: Callable[[str], Mapping[str, str]] = lambda _name: {},
        report: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.config = load_config(config_path).on_broker(bootstrap_servers)
        create_topics(self.config)
        self.log_path = folder / LOG
        self.checkpoints = folder / "checkpoints"
        self.added = {
            "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": bootstrap_servers,
            "FLUXPLAIN_CHECKPOINT__DIRECTORY": str(self.checkpoints),
            **(environment or {}),
        }
        self._log = self.log_path.open("wb")
        super().__init__(
            config_path,
            self.config.replicas(),
            environment=self.added,
            environment_of=environment_of,
            stderr=self._log,
            report=report,
        )

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._log.close()

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def crash(self, *names: str) -> None:
        """Kill workers, and see that they are gone: else they could be killed twice."""
        for name in names:
            self.kill(name)
        while {*names} & self.running().keys():
            time.sleep(0.01)

    def attend(self) -> None:
        """Start again what died, and wait a moment."""
        self.check()
        time.sleep(0.1)

    def address(self, name: str) -> str:
        """Return where a worker answers of its health, as its log says; wait for that."""
        return wait_until(lambda: self._address(name), what=lambda: name, attend=self.attend)

    def next_offsets(self, name: str) -> dict[int, int]:
        """Return how far a worker is in each of its partitions; nothing unless it is ready."""
        state = self._state(name)
        return _offsets(state) if state["ready"] else {}

    def starts(self, *roles: Role) -> list[PartitionStart]:
        """Return each start of a worker of some roles with a partition, as the log has them."""
        lines = _GOES_ON.findall(self.log)
        return [
            PartitionStart(
                datetime.strptime(time_, "%Y-%m-%d %H:%M:%S,%f").timestamp(),
                *(int(pid), role, int(partition), int(offset)),
            )
            for time_, pid, role, partition, offset in lines
            if role in roles
        ]

    def share(self, *roles: Role) -> bool:
        """Return whether each role's workers own its four partitions, each of them at least one."""
        owned = [[_offsets(self._state(name)) for name in self.running(role)] for role in roles]
        return all(all(each) and sorted(chain(*each)) == [*range(4)] for each in owned)

    def loaded(self, role: Role, pids: Collection[int], since: float) -> Loaded:
        """Return the partitions whose state some workers first loaded after a moment."""
        found: dict[int, tuple[float, int]] = {}
        for start in self.starts(role):
            if start.pid in pids and start.at >= since:
                found.setdefault(start.partition, (start.at, start.offset))
        return found

    def _state(self, name: str) -> dict[str, Any]:
        """Return what a worker says of itself; that it has no partitions if it does not answer."""
        if address := self._address(name):
            with suppress(OSError):  # it has just ended
                return ask(f"{address}/readyz")[1]
        return {"ready": False, "partitions": ()}

    def _address(self, name: str) -> str | None:
        return dict(_HEALTH.findall(self.log)).get(str(self.running().get(name)))


def _offsets(state: Mapping[str, Any]) -> dict[int, int]:
    return {each["partition"]: each["next_offset"] for each in state["partitions"]}


def ask(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def wait_for(url: str, status: int) -> dict[str, Any]:
    """Return the content of the first answer with a status."""

    def answer() -> dict[str, Any] | None:
        found, content = ask(url)
        return content if found == status else None

    return wait_until(answer, 60.0, what=lambda: f"{url} answers {status}: {ask(url)}")
