"""What is published: installed as users do, outside of the repository, it works."""

import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from urllib.request import urlopen

import pytest

from fluxplain import __version__

ROOT = Path(__file__).parents[2]

WHERE = {"pipeline": "fluxplain", "agents": "fluxplain/agents", "schemas": "fluxplain/schemas"}
"""Folder of the repository → where the wheel has it."""

NEIGHBOUR = "openai-agents"
"""A package of others whose import name is that of a folder of ours, ``agents``."""

LOCKED = os.environ.get("DIST", "locked") == "locked"
"""Whether dependencies are those of the lock; else the newest ones, by pip."""

pytestmark = pytest.mark.dist


def built(suffix: str) -> Path:
    [path] = (ROOT / "dist").glob(f"fluxplain-*{suffix}")
    return path


def build(source: Path, folder: Path) -> bytes:
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir"]
    subprocess.run([*command, folder, source], check=True, stdout=subprocess.DEVNULL, timeout=120)
    [wheel] = folder.glob("*.whl")
    return wheel.read_bytes()


def metadata() -> Message:
    with zipfile.ZipFile(built(".whl")) as wheel:
        [name] = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
        return Parser().parsestr(wheel.read(name).decode())


def test_sources_and_repository_give_the_same_wheel_byte_for_byte(tmp_path: Path) -> None:
    with tarfile.open(built(".tar.gz")) as sources:
        sources.extractall(tmp_path / "sources", filter="data")
    [unpacked] = (tmp_path / "sources").iterdir()
    wheel = built(".whl").read_bytes()
    assert build(unpacked, tmp_path / "from-sources") == wheel
    assert build(ROOT, tmp_path / "from-repository") == wheel


def test_all_files_of_the_packages_are_in_the_wheel() -> None:
    with zipfile.ZipFile(built(".whl")) as wheel:
        inside = {each for each in wheel.namelist() if ".dist-info/" not in each}
        names = "\n".join(wheel.namelist())
    files = {
        f"{where}/{path.relative_to(ROOT / folder)}"
        for folder, where in WHERE.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == files
    assert "dist-info/licenses/LICENSE" in names


def test_the_metadata_are_those_of_this_version_and_lead_nowhere_into_the_repository() -> None:
    found = metadata()
    assert found["Version"] == __version__
    assert found["License-Expression"] == "MIT"
    description = str(found.get_payload())
    assert description.startswith("# fluxplain")
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert links
    assert all(link.startswith("https://") for link in links)


class Installed:
    """A fresh environment with the wheel, and a folder to work in.

    Others have packages there that are called as folders of the repository: one installed before,
    and a module of the user's own.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        (self.folder / "pipeline.py").write_text("whose = 'the user'")
        self._bin = folder / "environment" / "bin"
        # nothing of what runs this test: neither its environment nor the repository
        ours = {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"}
        self._variables = {name: v for name, v in os.environ.items() if name not in ours}
        install(folder / "environment")
        if LOCKED:
            keep_kernels(folder / "environment")

    def command(self, *arguments: str) -> list[str]:
        return [str(self._bin / arguments[0]), *arguments[1:]]

    def run(self, *arguments: str, status: int = 0) -> str:
        with self.start(*arguments) as process:
            printed, _ = process.communicate(timeout=300)
        assert process.returncode == status, printed
        return printed

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def install(environment: Path) -> None:
    python, wheel = environment / "bin" / "python", built(".whl")
    if LOCKED:
        uv, lock = Path(sys.executable).with_name("uv"), ROOT / "requirements.lock"
        run(uv, "venv", "--quiet", "--python", sys.executable, environment)
        install = (uv, "pip", "install", "--quiet", "--python", python, "--constraint", lock)
        for package in (NEIGHBOUR, wheel):
            run(*install, package)
    else:
        run(sys.executable, "-m", "venv", environment)
        for package in (NEIGHBOUR, wheel):
            run(python, "-m", "pip", "install", "--quiet", package)


def keep_kernels(environment: Path) -> None:
    """Give the environment the inner loops that this one has compiled, of the same sources.

    Numba takes them if the sources have the same times, too. A file without them is compiled.
    """
    [packages] = environment.glob("lib/python*/site-packages")
    for folder, where in WHERE.items():
        for kept in (ROOT / folder).rglob("*.nb[ci]"):
            caches = packages / where / kept.parent.relative_to(ROOT / folder)
            caches.mkdir(exist_ok=True)
            shutil.copy2(kept, caches)
            source = f"{kept.name.partition('.')[0]}.py"
            times = (kept.parents[1] / source).stat().st_mtime_ns
            os.utime(caches.parent / source, ns=(times, times))


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, timeout=600)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("dist"))


def test_it_is_the_wheel_that_runs(installed: Installed) -> None:
    assert installed.run("fluxplain", "--version").strip() == __version__
    where = installed.run("python", "-c", "import fluxplain; print(fluxplain.__file__)")
    assert "/environment/lib/" in where


def test_packages_of_others_that_are_called_as_our_folders_stay_theirs(
    installed: Installed,
) -> None:
    use = "import agents, pipeline; print(agents.Runner.__module__, pipeline.whose)"
    assert installed.run("python", "-c", use).strip() == "agents.run the user"
    use = "from fluxplain import IncrementalPFI, agents, schemas; print(agents.__name__)"
    assert installed.run("python", "-c", use).strip() == "fluxplain.agents"


def observations() -> Iterator[tuple[float, int, str, bool]]:
    rng = random.Random(1)
    for _ in range(400):
        amount, hour = rng.uniform(0, 1000), rng.randrange(24)
        yield amount, hour, rng.choice(["AT", "DE"]), amount > 500


def test_own_settings_and_data_give_explanations_and_a_report(installed: Installed) -> None:
    installed.run("fluxplain", "init")
    with (installed.folder / "fraud.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("amount", "hour", "country", "fraud"), *observations()])
    # there is no broker; all else is well
    assert "valid" in installed.run("fluxplain", "check", status=2)
    installed.run("fluxplain", "local", "fraud.csv", "--label", "fraud", "--out", "results")
    lines = (installed.folder / "results" / "explanations.jsonl").read_text().splitlines()
    newest = {
        record["feature"]: record["value"]
        for record in map(json.loads, lines)
        if record["method"] == "ipfi"
    }
    assert max(newest, key=newest.__getitem__) == "amount"
    installed.run("fluxplain", "plot", "report", "--local", "results", "--out", "report.html")
    assert (installed.folder / "report.html").stat().st_size > 10_000


def test_the_demo_runs_with_its_dashboard(installed: Installed) -> None:
    printed = ""
    with installed.start("fluxplain", "demo", "--records", "1000") as demo:
        assert demo.stdout
        for line in demo.stdout:
            printed += line
            if found := re.fullmatch(r"Dashboard: (\S+)\n", line):
                for path in ("/", "/vendor/echarts.min.js"):
                    with urlopen(f"{found[1]}{path}", timeout=30) as answer:
                        assert answer.status == 200
    assert demo.returncode == 0, printed
    assert "Dashboard: " in printed
    assert "What the model relied on" in printed
    assert (installed.folder / "demo-output" / "importances.png").stat().st_size > 10_000
