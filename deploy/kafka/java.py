"""Finds Java, and downloads the jars of Apache Kafka."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from deploy.kafka.files import KafkaError, locked
from deploy.kafka.maven_progress import wait_for

POM = Path(__file__).with_name("pom.xml")

JARS = Path(__file__).parents[2] / ".fluxplain" / "kafka-jars"
"""Folder with a subfolder for each version of a pom; 45 MB for Kafka's."""

DOWNLOAD = "65 MB, or less if Maven has some of it"
"""What an empty Maven repository needs: Kafka, and Maven's own plugins."""

OLDEST_JAVA = 17
"""Oldest version of Java for the brokers of Apache Kafka 4."""

REASON_CHARACTERS = 600
"""Longest part of Maven's output in an error, in characters: it names every artifact."""


def java() -> str:
    """Return the path of a recent Java in JAVA_HOME, or else in PATH, or raise ``KafkaError``."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise KafkaError(
            f"Apache Kafka needs Java {OLDEST_JAVA} or newer, and there is no java in {where}: "
            "install one"
        )
    if (version := _java_version(found)) < OLDEST_JAVA:
        raise KafkaError(
            f"Apache Kafka needs Java {OLDEST_JAVA} or newer, and {found} is Java {version}: "
            "install a newer one, or set JAVA_HOME to it"
        )
    return found


@cache
def _java_version(path: str) -> int:
    try:
        ran = subprocess.run(  # noqa: S603  found in PATH
            [path, "-version"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise KafkaError(f"{path} cannot be run: {error.strerror}") from None
    # "1.8.0_402" before Java 9, then "17.0.15" or "24-ea"
    match = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    if match is None:
        raise KafkaError(f"`{path} -version` names no version: {ran.stderr.strip()[:200]}")
    return int(match[1])


def kafka_version() -> str:
    """Return the version of Apache Kafka that the pom names."""
    return "".join(re.findall(r"<kafka\.version>(.+)</kafka\.version>", POM.read_text()))


def jars(tell: Callable[[str], None], more: Path | None = None) -> Path:
    """Return the folder with the jars of Apache Kafka; download them if they are missing.

    ``more`` is a pom with further jars, a child of ours. ``tell`` is called before a download, and
    every few seconds while it lasts. Raises ``KafkaError`` if Maven is missing or fails.
    """
    poms = [POM, more] if more else [POM]
    digest = hashlib.sha256(b"".join(pom.read_bytes() for pom in poms))
    folder = JARS / digest.hexdigest()[:16]
    if folder.is_dir():
        return folder
    JARS.mkdir(parents=True, exist_ok=True)
    with locked(JARS / "lock"):
        # the lock's previous holder may have downloaded them
        if not folder.is_dir():
            _download(folder, poms[-1], tell)
    return folder


def _download(folder: Path, pom: Path, tell: Callable[[str], None]) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaError(
            "Apache Kafka comes from Maven Central, and there is no mvn in PATH: install Maven"
        )
    tell(f"Getting Apache Kafka {kafka_version()} from Maven Central: {DOWNLOAD} …")
    # in a temporary folder, renamed when complete: an existing folder of jars is complete
    with tempfile.TemporaryDirectory(dir=JARS, prefix="getting-") as aside:
        target = Path(aside) / "jars"
        log = JARS / "maven.log"
        with (
            log.open("wb") as output,
            subprocess.Popen(  # noqa: S603  found in PATH
                [
                    *(maven, "--batch-mode", "-Dstyle.color=never"),
                    *("--file", str(pom), "package", f"-Djars={target}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as running,
        ):
            status = wait_for(running, log, tell)
        if status:
            raise KafkaError(
                f"Maven could not get Apache Kafka {kafka_version()}: {_reason(log)} "
                f"(its output is in {log})"
            )
        target.rename(folder)


def _reason(log: Path) -> str:
    """Return Maven's first error, or else its last line."""
    lines = log.read_text(errors="replace").strip().splitlines() or ["there is no output"]
    errors = [line.removeprefix("[ERROR]") for line in lines if line.startswith("[ERROR]")]
    return (errors or lines[-1:])[0].removesuffix("-> [Help 1]").strip()[:REASON_CHARACTERS]
