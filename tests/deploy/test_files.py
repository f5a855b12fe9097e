"""The files of a Kafka cluster, and what is said when it cannot be made; no broker runs."""

import os
import random
import re
import socket
import ssl
import stat
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

import deploy.kafka.java
from deploy.kafka import Cluster, KafkaError, maven_progress
from deploy.kafka.__main__ import main
from deploy.kafka.broker import Broker
from deploy.kafka.create import make_certificates
from deploy.kafka.files import write_private
from deploy.kafka.java import DOWNLOAD, jars, java, kafka_version
from deploy.kafka.settings import LISTENERS, PORTS, Plan, free_block, server_properties

ONE = Plan("id", 1, secure=False, first_port=10_000)
THREE = Plan("id", 3, secure=True, first_port=10_000)

FAKE_MAVEN = """#!/bin/sh
echo called >> "$0.calls"
for argument; do case $argument in -Djars=*) folder=${argument#*=};; esac; done
mkdir "$folder"; sleep 0.3; touch "$folder/kafka.jar"
"""

SLOW_MAVEN = f"""{FAKE_MAVEN}
echo "[INFO] Downloading from central: https://repo/a.jar"
echo "[INFO] Downloaded from central: https://repo/a.jar (7.4 MB at 17 MB/s)"
echo "[INFO] Downloading from central: https://repo/b.jar"
sleep 1
"""

JAVA = "#!/bin/sh\necho 'openjdk version \"{}\" 2025-04-15' >&2\n"

BROKEN_MAVEN = """#!/bin/sh
echo "[INFO] Scanning for projects"
echo "[ERROR] the artifact is not there -> [Help 1]"
echo "[ERROR] To see more, try -X"
exit 1
"""


def properties(plan: Plan, node: int) -> dict[str, str]:
    text = server_properties(plan, node, "the-password")
    return dict(line.split("=", 1) for line in text.splitlines())


def add_program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def nobody_tells(line: str) -> None:
    pytest.fail(f"told {line!r}")


@pytest.fixture
def bin_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder that comes first in PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, bin_folder: Path) -> None:
    monkeypatch.setenv("PATH", str(bin_folder))


@pytest.fixture
def no_jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder for jars, which is not there."""
    folder = tmp_path / "jars"
    monkeypatch.setattr(deploy.kafka.java, "JARS", folder)
    return folder


class TestPlan:
    def test_every_listener_has_a_port_of_its_own_in_the_block(self) -> None:
        addresses = [THREE.address(node, name) for node, name in product(THREE.nodes, LISTENERS)]
        ports = {int(address.removeprefix("127.0.0.1:")) for address in addresses}
        assert len(ports) == 12
        assert ports <= set(range(10_000, 10_000 + PORTS.step))

    def test_it_is_the_same_when_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "cluster.json"
        THREE.write(path)
        assert Plan.read(path) == THREE
        assert list(tmp_path.iterdir()) == [path]

    def test_ports_are_below_those_of_outgoing_connections(self) -> None:
        assert PORTS[-1] + PORTS.step <= 32_768

    def test_a_block_with_a_taken_port_is_not_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = free_block(), free_block()
        while second == first:
            second = free_block()

        def both(blocks: range, k: int) -> Sequence[int]:
            return [first, second]

        monkeypatch.setattr(random, "sample", both)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", first + 5))
            assert free_block() == second

    def test_no_free_block(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(random, "sample", lambda blocks, k: [])
        with pytest.raises(KafkaError, match="free ports"):
            free_block()


@pytest.mark.parametrize("plan", [ONE, THREE])
def test_settings_of_a_broker(plan: Plan) -> None:
    text = server_properties(plan, plan.brokers, "the-password")
    settings = properties(plan, plan.brokers)
    assert settings["node.id"] == str(plan.brokers)
    assert settings["process.roles"] == "broker,controller"
    voters = ["1@127.0.0.1:10001", "2@127.0.0.1:10005", "3@127.0.0.1:10009"]
    assert settings["controller.quorum.voters"] == ",".join(voters[: plan.brokers])
    listeners = settings["listeners"].split(",")
    assert len(listeners) == (4 if plan.secure else 2)
    assert all("://127.0.0.1:" in listener for listener in listeners), "on this machine only"
    factors = {value for name, value in settings.items() if "replication.factor" in name}
    minima = {value for name, value in settings.items() if "min.i" in name}
    assert (factors, minima) == (({"1"}, {"1"}) if plan is ONE else ({"3"}, {"2"}))
    paths = {settings[name] for name in settings if name.endswith((".location", "log.dirs"))}
    tls = {"../tls/broker.pem", "../tls/ca.pem"} if plan.secure else set()
    assert paths == {"data", *tls}, "relative to the broker's folder"
    assert ("the-password" in text) == ("sasl" in text) == plan.secure


class TestJava:
    @pytest.mark.usefixtures("nothing_installed")
    def test_there_is_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(KafkaError, match="Java 17 or newer, and there is no java in PATH"):
            java()
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(KafkaError, match=f"no java in JAVA_HOME={tmp_path}"):
            java()

    @pytest.mark.parametrize(
        ("program", "reason"),
        [
            (JAVA.format("1.8.0_402"), "Java 17 or newer, and .* is Java 8:"),
            (JAVA.format("16"), "Java 17 or newer, and .* is Java 16:"),
            *((JAVA.format(version), None) for version in ("17.0.15", "21", "24-ea")),
            ("#!/bin/sh\necho what >&2\n", "names no version: what"),
            ("#!/nowhere\n", "cannot be run"),
        ],
    )
    def test_it_is_new_enough_or_refused(
        self, bin_folder: Path, program: str, reason: str | None
    ) -> None:
        path = add_program(bin_folder, "java", program)
        if reason is None:
            assert Path(java()) == path
        else:
            with pytest.raises(KafkaError, match=reason):
                java()

    def test_java_home_comes_first(
        self, bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_program(bin_folder, "java", JAVA.format("21"))
        home = tmp_path / "jdk"
        (home / "bin").mkdir(parents=True)
        wanted = add_program(home / "bin", "java", JAVA.format("21"))
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert Path(java()) == wanted


class TestJars:
    @pytest.mark.usefixtures("nothing_installed", "no_jars")
    def test_there_is_no_maven(self) -> None:
        with pytest.raises(KafkaError, match="no mvn in PATH: install Maven"):
            jars(nobody_tells)

    def test_maven_fails(self, bin_folder: Path, no_jars: Path) -> None:
        add_program(bin_folder, "mvn", BROKEN_MAVEN)
        told: list[str] = []
        with pytest.raises(
            KafkaError, match=r"could not get Apache Kafka .*: the artifact is not there \(its"
        ):
            jars(told.append)
        assert kafka_version().startswith("4.")
        assert told == [f"Getting Apache Kafka {kafka_version()} from Maven Central: {DOWNLOAD} …"]
        assert {each.name for each in no_jars.iterdir()} == {"lock", "maven.log"}

    def test_what_is_downloaded_is_told(
        self, bin_folder: Path, no_jars: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_program(bin_folder, "mvn", SLOW_MAVEN)
        monkeypatch.setattr(maven_progress, "EVERY_S", 0.2)
        told: list[str] = []
        assert jars(told.append).parent == no_jars
        assert "1 file, 7.4 MB; getting b.jar" in told[-1]

    def test_they_are_got_once(
        self, bin_folder: Path, no_jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        maven = add_program(bin_folder, "mvn", FAKE_MAVEN)
        told: list[str] = []
        with ThreadPoolExecutor(4) as pool:
            folders = set(pool.map(jars, [told.append] * 4))
        assert len(folders) == len(told) == 1
        assert [jar.name for jar in folders.pop().iterdir()] == ["kafka.jar"]
        assert Path(f"{maven}.calls").read_text() == "called\n"
        before = jars(nobody_tells)
        newer = tmp_path / "pom.xml"
        newer.write_text("<kafka.version>4.9</kafka.version>")
        monkeypatch.setattr(deploy.kafka.java, "POM", newer)
        assert jars(told.append) != before, "another pom has other jars"


class TestSecrets:
    def test_a_private_file_that_others_could_read_before(self, tmp_path: Path) -> None:
        path = tmp_path / "password"
        path.write_text("old")
        path.chmod(0o644)
        write_private(path, "new")
        assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)

    def test_certificates(self, tmp_path: Path) -> None:
        folder = tmp_path / "tls"
        make_certificates(folder)
        assert {each.name for each in folder.iterdir()} == {
            *("ca.pem", "broker.pem", "client.pem", "client-key.pem")
        }
        assert stat.S_IMODE((folder / "broker.pem").stat().st_mode) == 0o600
        assert stat.S_IMODE((folder / "client-key.pem").stat().st_mode) == 0o600
        for each in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER):
            context = ssl.SSLContext(each)
            context.verify_flags |= ssl.VERIFY_X509_STRICT
            context.load_verify_locations(folder / "ca.pem")
            context.load_cert_chain(folder / "client.pem", folder / "client-key.pem")
            context.load_cert_chain(folder / "broker.pem")

    @pytest.mark.usefixtures("nothing_installed")
    def test_there_is_no_openssl(self, tmp_path: Path) -> None:
        with pytest.raises(KafkaError, match="need openssl"):
            make_certificates(tmp_path / "tls")


@pytest.mark.parametrize(
    "pid", [None, pytest.param(str(os.getpid()), id="this one"), "0", "99999999", "", "?"]
)
def test_a_process_that_is_not_ours_is_no_broker(tmp_path: Path, pid: str | None) -> None:
    if pid is not None:
        (tmp_path / "pid").write_text(pid)
    assert Broker(tmp_path).pid() is None
    assert not Broker(tmp_path).end_of_log()


class TestCluster:
    def test_what_is_there_is_known_before_it_starts(self, tmp_path: Path) -> None:
        with pytest.raises(KafkaError, match="not started yet"):
            _ = Cluster(tmp_path).bootstrap_servers
        THREE.write(tmp_path / "cluster.json")
        cluster = Cluster.attach(tmp_path)
        assert cluster.bootstrap_servers == "127.0.0.1:10000,127.0.0.1:10004,127.0.0.1:10008"
        assert cluster.pids() == {1: None, 2: None, 3: None}
        with pytest.raises(KafkaError, match="no broker 4: this cluster has 1, 2, 3"):
            cluster.kill_broker(4)

    @pytest.mark.parametrize("name", ["sasl_bootstrap_servers", "tls_bootstrap_servers", "ca_file"])
    def test_secure_addresses_of_one_that_is_not(self, tmp_path: Path, name: str) -> None:
        ONE.write(tmp_path / "cluster.json")
        with pytest.raises(KafkaError, match="without secure listeners"):
            getattr(Cluster(tmp_path), name)

    @pytest.mark.usefixtures("nothing_installed")
    def test_a_temporary_folder_that_is_never_used_is_never_made(self) -> None:
        cluster = Cluster()
        with pytest.raises(KafkaError), cluster:
            pass
        assert not cluster.folder.exists()


class TestCommand:
    @pytest.fixture(autouse=True)
    def _use(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def run(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Return the exit status, what is told, and what is complained about."""
        self.monkeypatch.setattr(sys, "argv", ["deploy.kafka", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *self.capsys.readouterr()

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            *(
                (f"{name} --folder .", r"there is no cluster in \.: `start` creates one")
                for name in ("status", "stop", "clean")
            ),
            ("run -- no-such-command", "there is no command no-such-command"),
            *(
                (f"start --folder k --brokers {n}", f"a cluster has 1 or 3 brokers, not {n}")
                for n in (2, 4)
            ),
            ("start --folder k", "Apache Kafka needs Java 17 or newer, .*"),
            ("status --folder precious", ".*"),  # a file
        ],
    )
    @pytest.mark.usefixtures("nothing_installed")
    def test_a_mistake_gives_one_line_and_removes_nothing(
        self, tmp_path: Path, arguments: str, error: str
    ) -> None:
        self.monkeypatch.chdir(tmp_path)
        (tmp_path / "precious").touch()
        status, told, complaint = self.run(*arguments.split())
        assert (status, told) == (2, "")
        assert re.fullmatch(f"Error: {error}\n", complaint)
        assert (tmp_path / "precious").exists()

    @pytest.mark.parametrize("name", ["start", "stop", "kill", "status", "clean", "run"])
    def test_help(self, name: str) -> None:
        status, told, _ = self.run(name, "--help")
        assert status == 0
        assert "--help" in told
