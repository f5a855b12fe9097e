"""The files of a Kafka cluster, and what is said when it cannot be made; no broker runs."""

import os
import random
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
from deploy.kafka import Cluster, KafkaError
from deploy.kafka.__main__ import main
from deploy.kafka.broker import Broker
from deploy.kafka.certificates import make_certificates
from deploy.kafka.files import write_private
from deploy.kafka.java import jars, java, kafka_version
from deploy.kafka.settings import LISTENERS, PORTS, Plan, free_block, server_properties

ONE = Plan("id", 1, secure=False, first_port=10_000)
THREE = Plan("id", 3, secure=True, first_port=10_000)

FAKE_MAVEN = """#!/bin/sh
echo called >> "$0.calls"
for argument; do case $argument in -Djars=*) folder=${argument#*=};; esac; done
mkdir "$folder"; sleep 0.3; touch "$folder/kafka.jar"
"""

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


class TestServerProperties:
    @pytest.mark.parametrize("node", [1, 2, 3])
    def test_each_node_is_a_broker_and_a_controller(self, node: int) -> None:
        settings = properties(THREE, node)
        assert settings["node.id"] == str(node)
        assert settings["process.roles"] == "broker,controller"
        assert settings["controller.quorum.voters"] == (
            "1@127.0.0.1:10001,2@127.0.0.1:10005,3@127.0.0.1:10009"
        )

    @pytest.mark.parametrize("plan", [ONE, THREE])
    def test_all_listeners_are_on_this_machine_only(self, plan: Plan) -> None:
        listeners = properties(plan, 1)["listeners"].split(",")
        assert len(listeners) == (4 if plan.secure else 2)
        assert all("://127.0.0.1:" in listener for listener in listeners)

    @pytest.mark.parametrize(("plan", "replicas", "in_sync"), [(ONE, "1", "1"), (THREE, "3", "2")])
    def test_one_of_three_may_die(self, plan: Plan, replicas: str, in_sync: str) -> None:
        settings = properties(plan, 1)
        factors = {value for name, value in settings.items() if "replication.factor" in name}
        minima = {value for name, value in settings.items() if "min.i" in name}
        assert (factors, minima) == ({replicas}, {in_sync})

    def test_no_secrets_where_nothing_is_secret(self) -> None:
        text = server_properties(ONE, 1, "the-password")
        assert "the-password" not in text
        assert "sasl" not in text

    def test_paths_are_relative(self) -> None:
        settings = properties(THREE, 2)
        paths = {settings[name] for name in settings if name.endswith((".location", "log.dirs"))}
        assert paths == {"data", "../tls/broker.pem", "../tls/ca.pem"}


class TestJava:
    @pytest.mark.usefixtures("nothing_installed")
    def test_there_is_none(self) -> None:
        with pytest.raises(KafkaError, match="Java 17 or newer, and there is no java in PATH"):
            java()

    def test_there_is_none_in_java_home(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(KafkaError, match=f"no java in JAVA_HOME={tmp_path}"):
            java()

    @pytest.mark.parametrize(
        ("version", "number"), [("1.8.0_402", "8"), ("11.0.22", "11"), ("16", "16")]
    )
    def test_it_is_too_old(self, bin_folder: Path, version: str, number: str) -> None:
        add_program(bin_folder, "java", f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        with pytest.raises(KafkaError, match=f"Java 17 or newer, and .* is Java {number}:"):
            java()

    @pytest.mark.parametrize("version", ["17.0.15", "21", "24-ea"])
    def test_it_is_new_enough(self, bin_folder: Path, version: str) -> None:
        text = f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n"
        assert add_program(bin_folder, "java", text) == Path(java())

    def test_java_home_comes_first(
        self, bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "#!/bin/sh\necho 'openjdk version \"21\"' >&2\n"
        add_program(bin_folder, "java", text)
        home = tmp_path / "jdk"
        (home / "bin").mkdir(parents=True)
        wanted = add_program(home / "bin", "java", text)
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert Path(java()) == wanted

    @pytest.mark.parametrize("text", ["#!/bin/sh\necho what >&2\n", "#!/nowhere\n"])
    def test_it_is_something_else(self, bin_folder: Path, text: str) -> None:
        add_program(bin_folder, "java", text)
        with pytest.raises(KafkaError, match=r"names no version: what|cannot be run"):
            java()


class TestJars:
    def test_the_pom_pins_a_kafka_4(self) -> None:
        assert kafka_version().startswith("4.")

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
        assert told == [f"Getting Apache Kafka {kafka_version()} from Maven Central …"]
        assert {each.name for each in no_jars.iterdir()} == {"lock", "maven.log"}

    def test_they_are_got_once(self, bin_folder: Path, no_jars: Path) -> None:
        maven = add_program(bin_folder, "mvn", FAKE_MAVEN)
        told: list[str] = []
        with ThreadPoolExecutor(4) as pool:
            folders = set(pool.map(jars, [told.append] * 4))
        assert len(folders) == len(told) == 1
        assert [jar.name for jar in folders.pop().iterdir()] == ["kafka.jar"]
        assert Path(f"{maven}.calls").read_text() == "called\n"
        jars(nobody_tells)

    def test_another_pom_has_other_jars(
        self, bin_folder: Path, no_jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_program(bin_folder, "mvn", FAKE_MAVEN)
        before = jars(lambda line: None)
        newer = tmp_path / "pom.xml"
        newer.write_text("<kafka.version>4.9</kafka.version>")
        monkeypatch.setattr(deploy.kafka.java, "POM", newer)
        assert jars(lambda line: None) != before


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


class TestBroker:
    def test_it_never_ran(self, tmp_path: Path) -> None:
        assert Broker(tmp_path).pid() is None
        assert not Broker(tmp_path).end_of_log()

    @pytest.mark.parametrize(
        "pid",
        [str(os.getpid()), "0", "99999999", "", "?"],
        ids=["another", "all", "nobody", "empty", "text"],
    )
    def test_the_process_is_none_of_ours(self, tmp_path: Path, pid: str) -> None:
        (tmp_path / "pid").write_text(pid)
        assert Broker(tmp_path).pid() is None


class TestCluster:
    @pytest.mark.parametrize("brokers", [0, 2, 4])
    def test_it_has_one_or_three_brokers(self, brokers: int) -> None:
        with pytest.raises(KafkaError, match=f"1 or 3 brokers, not {brokers}"):
            Cluster(brokers=brokers)

    def test_there_is_none_to_attach_to(self, tmp_path: Path) -> None:
        with pytest.raises(KafkaError, match="no cluster in"):
            Cluster.attach(tmp_path)

    def test_what_is_there_is_known_before_it_starts(self, tmp_path: Path) -> None:
        THREE.write(tmp_path / "cluster.json")
        cluster = Cluster.attach(tmp_path)
        assert cluster.bootstrap_servers == "127.0.0.1:10000,127.0.0.1:10004,127.0.0.1:10008"
        assert cluster.pids() == {1: None, 2: None, 3: None}
        with pytest.raises(KafkaError, match="no broker 4: this cluster has 1, 2, 3"):
            cluster.kill_broker(4)

    def test_addresses_before_there_are_any(self, tmp_path: Path) -> None:
        with pytest.raises(KafkaError, match="not started yet"):
            _ = Cluster(tmp_path).bootstrap_servers

    def test_secure_addresses_of_one_that_is_not(self, tmp_path: Path) -> None:
        ONE.write(tmp_path / "cluster.json")
        with pytest.raises(KafkaError, match="without secure listeners"):
            _ = Cluster(tmp_path).sasl_bootstrap_servers

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

    @pytest.mark.parametrize("name", ["status", "stop", "clean"])
    def test_there_is_no_cluster(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "precious").touch()
        assert self.run(name, "--folder", tmp_path) == (
            2,
            "",
            f"Error: there is no cluster in {tmp_path}: `start` creates one\n",
        )
        assert (tmp_path / "precious").exists()

    @pytest.mark.usefixtures("nothing_installed")
    def test_there_is_no_java(self, tmp_path: Path) -> None:
        status, _, error = self.run("start", "--folder", tmp_path / "kafka")
        assert status == 2
        assert error.startswith("Error: Apache Kafka needs Java 17 or newer")
        assert error.count("\n") == 1

    def test_there_is_no_such_command(self) -> None:
        assert self.run("run", "--", "no-such-command") == (
            2,
            "",
            "Error: there is no command no-such-command\n",
        )

    def test_two_brokers(self, tmp_path: Path) -> None:
        status, _, error = self.run("start", "--brokers", "2", "--folder", tmp_path / "kafka")
        assert (status, error) == (2, "Error: a cluster has 1 or 3 brokers, not 2\n")

    def test_a_file_is_where_the_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        status, _, error = self.run("status", "--folder", tmp_path / "file")
        assert (status, error.count("\n")) == (2, 1)

    @pytest.mark.parametrize("name", ["start", "stop", "kill", "status", "clean", "run"])
    def test_help(self, name: str) -> None:
        status, told, _ = self.run(name, "--help")
        assert status == 0
        assert "--help" in told
