"""Gets the checkers, in versions that are stated, and runs them."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]

FOLDER = ROOT / ".fluxplain" / "checkers"
"""What was got, by name and version."""

MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


class CheckError(Exception):
    """What a checker complains about, or why there is none."""


def run(
    program: Path | str,
    *arguments: Path | str,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    warns: bool = False,
) -> str:
    """Run a program and return what it says; raise CheckError with all of that if it fails.

    A program that `warns` of mistakes, and ends well, may say nothing.
    """
    found = shutil.which(program)
    if found is None:
        raise CheckError(f"there is no {program} in PATH")
    ran = subprocess.run(
        [found, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode or (warns and ran.stderr):
        raise CheckError(f"{Path(program).name}: {ran.stdout}{ran.stderr}".strip())
    return ran.stdout


def go_program(name: str, package: str, version: str) -> Path:
    """Return a program that is built from a Go package."""
    path = FOLDER / f"{name}-{version}"
    if not path.exists():
        aside = FOLDER / "go"
        run("go", "install", f"{package}@{version}", env={"GOBIN": str(aside)})
        (aside / Path(package).name).rename(path)
    return path


def go_module(module: str, version: str) -> Path:
    told = run("go", "mod", "download", "-json", f"{module}@{version}")
    return Path(json.loads(told)["Dir"])


def maven_jar(group: str, name: str, version: str) -> Path:
    path = FOLDER / f"{name}-{version}.jar"
    if not path.exists():
        artifact = f"-Dartifact={group}:{name}:{version}"
        run("mvn", "--batch-mode", MAVEN_COPY, artifact, f"-DoutputDirectory={FOLDER}")
    return path


def debian_program(name: str, package: str) -> Path:
    """Return a program of a Debian package, without installing that; Debian chooses the version."""
    if installed := shutil.which(name):
        return Path(installed)
    path = FOLDER / name
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a test may want the same meanwhile
        if not path.exists():
            _unpack(name, package, path)
    return path


def _unpack(name: str, package: str, path: Path) -> None:
    """Get a Debian package and move one of its programs."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        aside = Path(folder)
        try:
            run("apt-get", "download", "--quiet", package, cwd=aside)
        except CheckError:  # a machine that has not asked yet what there is
            run(*(["sudo"] if os.geteuid() else []), "apt-get", "update", "--quiet")
            run("apt-get", "download", "--quiet", package, cwd=aside)
        [archive] = aside.glob(f"{package}_*.deb")
        run("dpkg-deb", "--extract", archive, aside / "unpacked")
        (aside / "unpacked" / "usr" / "bin" / name).rename(path)
