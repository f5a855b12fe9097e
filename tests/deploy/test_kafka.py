"""A real Apache Kafka: what is written survives, who may come in, and who ends whom."""

import json
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from deploy.kafka import Cluster, KafkaError
from deploy.kafka.files import Files
from tests.deploy.processes import COMPOSE, broker_settings
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.kafka

# prints what it started, then waits to be killed
OWNER = """
import json, sys, threading, time
from deploy.kafka import Cluster
with Cluster() as cluster:
    # a broker must outlive the thread that started it
    restart = threading.Thread(target=lambda: (cluster.kill_broker(1), cluster.start_broker(1)))
    restart.start()
    restart.join()
    time.sleep(1.0)
    print(json.dumps([cluster.pids()[1], str(cluster.folder)]), flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("kafka"), brokers=1, secure=True) as cluster:
        yield cluster


def create_topic(cluster: Cluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    # no replication factor: the brokers' own
    admin.create_topics([NewTopic(name, num_partitions=2)])[name].result(30)


def produce(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for number, value in enumerate(values):
        producer.produce(
            topic,
            value,
            partition=number % 2,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert not errors


def consume(cluster: Cluster, topic: str, count: int) -> set[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"readers-of-{topic}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(count, timeout=60)
        return {message.value() for message in messages if not message.error()}
    finally:
        consumer.close()


def command(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "deploy.kafka", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_was_written_survives_a_kill_and_a_restart(one: Cluster) -> None:
    create_topic(one, "survives")
    produce(one, "survives", [b"a", b"b"])
    before = one.pids(), one.bootstrap_servers
    one.kill_broker(1)
    assert one.pids() == {1: None}
    one.start_broker(1)
    assert (one.pids() != before[0], one.bootstrap_servers) == (True, before[1])
    one.stop_broker(1)
    one.start()
    assert consume(one, "survives", 2) == {b"a", b"b"}


def test_topics_are_not_made_on_demand(one: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": one.bootstrap_servers})
    assert admin.list_topics("misspelt", timeout=10).topics["misspelt"].error
    assert "misspelt" not in admin.list_topics(timeout=10).topics


def test_tls_needs_no_certificate_of_the_client_and_is_for_localhost_too(one: Cluster) -> None:
    """Passwords and certificates of clients: ``tests/behaviour/test_security.py``."""
    servers = one.tls_bootstrap_servers.replace("127.0.0.1", "localhost")
    settings = {"security.protocol": "SSL", "ssl.ca.location": str(one.ca_file)}
    assert AdminClient({"bootstrap.servers": servers, **settings}).list_topics(timeout=20).brokers


def test_only_the_owner_can_read_the_secrets(one: Cluster) -> None:
    files = Files(one.folder)
    secret = one.password.encode()
    holders = {path for path in one.folder.rglob("*") if path.is_file() and not path.is_symlink()}
    holders = {path for path in holders if secret in path.read_bytes()}
    assert holders == {files.password, files.broker(1) / "server.properties"}
    for path in (*holders, one.client_key_file):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_cluster_cannot_be_made_otherwise_later(one: Cluster) -> None:
    with pytest.raises(KafkaError, match=r"has other settings \(1 broker, secure\)"):
        Cluster(one.folder, brokers=3, secure=True).start()


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    # as a start that was interrupted leaves it
    (tmp_path / "broker-1").mkdir()
    cluster = Cluster(tmp_path)
    cluster.start()
    try:
        cluster.kill_broker(1)
        settings = tmp_path / "broker-1" / "server.properties"
        settings.write_text(settings.read_text().replace("node.id=1", "node.id=one"))
        with pytest.raises(KafkaError, match=r"(?s)broker 1 ended\. Its log:.*Invalid value one"):
            cluster.start()
    finally:
        cluster.remove()
    assert not tmp_path.exists()


def test_the_broker_of_the_compose_file_starts_and_knows_all_its_settings(tmp_path: Path) -> None:
    settings = broker_settings(COMPOSE["services"]["kafka"]["environment"])
    cluster = Cluster(tmp_path)
    cluster.create()
    listeners = {"9093": "CONTROLLER", "19092": "PLAINTEXT", "9092": "SSL"}
    addresses = {port: cluster.plan.address(1, name) for port, name in listeners.items()}
    here = {
        name: re.sub(r"(kafka|localhost)?:(\d+)", lambda found: addresses[found[2]], value)
        for name, value in {**settings, "log.dirs": "data"}.items()
    }
    (tmp_path / "broker-1" / "server.properties").write_text(
        "".join(f"{name}={value}\n" for name, value in here.items())
    )
    try:
        cluster.start()
        for address in (addresses["19092"], addresses["9092"]):
            admin = AdminClient({"bootstrap.servers": address})
            broker = ConfigResource(ConfigResource.Type.BROKER, "1")
            known = admin.describe_configs([broker])[broker].result(30)
            assert settings.keys() <= known.keys()
    finally:
        cluster.remove()


def test_with_three_brokers_one_may_die() -> None:
    with Cluster(brokers=3) as cluster:
        create_topic(cluster, "survives")
        produce(cluster, "survives", [b"1", b"2"])
        topic = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics()
        assert {len(each.replicas) for each in topic.topics["survives"].partitions.values()} == {3}
        cluster.kill_broker(1)
        produce(cluster, "survives", [b"3", b"4"])
        cluster.start_broker(1)
        cluster.stop_broker(2)
        assert consume(cluster, "survives", 4) == {b"1", b"2", b"3", b"4"}
        cluster.kill_broker(1)
        cluster.kill_broker(3)
        cluster.start()
        produce(cluster, "survives", [b"5", b"6"])
        pids = cluster.pids()
    assert not cluster.folder.exists()
    assert [pid for pid in pids.values() if pid and psutil.pid_exists(pid)] == []


def test_brokers_die_with_who_opened_them() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE) as owner:
        assert owner.stdout
        pid, folder = json.loads(owner.stdout.readline())
        assert psutil.Process(pid).name() == "java"
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid) and not Path(folder).exists())


def test_brokers_that_the_command_started_go_on(tmp_path: Path) -> None:
    # letters that the locale of a server often does not have
    folder = tmp_path / "kafka für alle"
    started = command("start", "--folder", folder)
    assert started.returncode == 0, started.stderr
    cluster = Cluster.attach(folder)
    try:
        assert f'bootstrap_servers = "{cluster.bootstrap_servers}"' in started.stdout
        create_topic(cluster, "kept")
        produce(cluster, "kept", [b"a", b"b"])
        assert command("status", "--folder", folder).returncode == 0
        assert command("kill", "1", "--folder", folder).returncode == 0
        assert command("status", "--folder", folder).returncode == 1
        assert command("start", "1", "--folder", folder).stdout == "Broker 1 answers.\n"
        assert command("stop", "--folder", folder).returncode == 0
        assert cluster.pids() == {1: None}
        assert command("start", "--folder", folder).stdout == started.stdout
        assert consume(cluster, "kept", 2) == {b"a", b"b"}
    finally:
        cleaned = command("clean", "--folder", folder)
    assert cleaned.returncode == 0
    assert not folder.exists()


def test_a_command_beside_brokers() -> None:
    script = """
import os, sys
from deploy.kafka import Cluster
cluster = Cluster.attach(os.environ["TEST_KAFKA_FOLDER"])
assert cluster.bootstrap_servers == os.environ["TEST_KAFKA"]
assert cluster.answering() == {1}
print(cluster.folder)
sys.exit(7)
"""
    ran = command("run", "--", sys.executable, "-c", script)
    assert ran.returncode == 7, ran.stderr
    assert not Path(ran.stdout.strip()).exists()
