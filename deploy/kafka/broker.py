"""One broker: a process, identified by the files in its folder."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

import psutil

Process: TypeAlias = "subprocess.Popen[bytes]"

PROPERTIES = "server.properties"

STOP_TIMEOUT_S = 20.0
"""Seconds that a broker may take to stop gracefully before it is killed."""

LOG_LINES = 15
"""Number of lines of a broker's log that an error shows."""

LOGGING = (
    "defaultLogLevel=info",
    "showDateTime=true",
    "dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
    # it would log all 300 settings at each start
    "log.org.apache.kafka.common.config.AbstractConfig=warn",
)

# little memory, a single-threaded collector and only the fast compiler: it runs for minutes
JVM = (
    *("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *(f"-Dorg.slf4j.simpleLogger.{setting}" for setting in LOGGING),
)


@dataclass(frozen=True)
class Kafka:
    """The Kafka installation: Java, and the folder with the jars."""

    java: str
    jars: Path

    def popen(self, folder: Path, *arguments: str, output: IO[bytes] | int) -> Process:
        """Start a Kafka class, named by the arguments, in a folder."""
        return subprocess.Popen(  # noqa: S603  our own command line
            [self.java, *JVM, "-cp", f"{self.jars}/*", *arguments],
            cwd=folder,
            # Java cannot open file names with letters outside the locale's encoding
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # its own session: Ctrl-C reaches only the starting process, which stops it gracefully
            start_new_session=True,
        )


class Broker:
    """The broker of a folder (an absolute path), whichever process started it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "broker.log"
        self._pid_file = folder / "pid"
        self._mark = f"-Dfluxplain.broker={folder}"
        self._child: Process | None = None

    def pid(self) -> int | None:
        """Return the process id, or None if it does not run."""
        if self._child is not None and self._child.poll() is None:
            # a process that is about to run Java may not have its arguments yet
            return self._child.pid
        with suppress(OSError, ValueError, psutil.Error):
            pid = int(self._pid_file.read_text())
            process = psutil.Process(pid)
            # another process may have the id by now
            if self._mark in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                return pid
        return None

    def spawn(self, kafka: Kafka) -> None:
        """Start the process without waiting until it answers."""
        with self._log.open("ab") as log:
            self._child = kafka.popen(
                self.folder, self._mark, "kafka.Kafka", PROPERTIES, output=log
            )
        self._pid_file.write_text(f"{self._child.pid}\n")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process runs."""
        if (pid := self.pid()) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait_until_gone(self, timeout_s: float) -> None:
        """Wait for the end of the process; kill it if that takes too long."""
        deadline = time.monotonic() + timeout_s
        while self.pid() is not None:
            if time.monotonic() >= deadline:
                self.signal(signal.SIGKILL)
            time.sleep(0.02)
        self._pid_file.unlink(missing_ok=True)

    def end_of_log(self) -> str:
        """Return the last lines of the log."""
        with suppress(OSError):
            lines = self._log.read_text(errors="replace").splitlines()
            return "\n".join(lines[-LOG_LINES:])
        return ""
