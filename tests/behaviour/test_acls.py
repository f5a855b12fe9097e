"""The pipeline on a real broker with a user for each process, as ``deploy/strimzi.py`` has them."""

import pickle
import re
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from river.tree import HoeffdingTreeClassifier

from deploy.kafka import Cluster
from deploy.strimzi import Manifest, users
from fluxplain.config import Config, load_config
from fluxplain.kafka.client import client_settings
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics, topic_specs
from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.kafka.worker.budget import WINDOW
from tests.kit.kafka_pipeline import KafkaPipeline, assert_same, reference_of
from tests.kit.kafka_topics import set_password
from tests.kit.preloaded import Command, Preloaded
from tests.kit.receiver import Receiver, receiver
from tests.kit.records import change
from tests.kit.settings import SETTINGS, topic_store, write_config
from tests.kit.support import agrawal
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.kafka

__all__ = ["receiver"]  # a fixture, which is known by its name

AUTHORIZER = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
"""Who comes without a password may do all: the broker itself, and this test."""

AUDIT = "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=debug"
"""Has the broker log also what it allows."""

AUDITED = re.compile(
    r"Principal = User:(\S+) is (Allowed|Denied) operation = (\w+) .* "
    r"on resource = (\w+):LITERAL:(\S+) for"
)

EMERGENCIES = {"changes", "dead-letters"}
"""Every role may write them, but not each has a gap or a bad record to tell of here."""

EVERY_ROLE = {*EMERGENCIES, "register", "checkpoints"}

MAY_WRITE = {
    "join": {"observations", *EVERY_ROLE},
    "model": {"predictions", "reasons", "evaluations", "control", *EVERY_ROLE},
    "explainer": {"explanations", *EVERY_ROLE},
    "drift": EVERY_ROLE,
    "dashboard": {"notes"},
    "alerts": set[str](),
    "keda": set[str](),
    "producer": {"features", "labels"},
    "operator": {"notes", "control"},
}

ONLY_IF_JOINED = {"join"}
"""Users that there are only if something is joined."""


class Right(NamedTuple):
    """What a user may do, or has done; the resource without the prefix."""

    user: str
    operation: str
    kind: str
    name: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker on which users may do nothing but what they are allowed."""
    cluster = Cluster(tmp_path_factory.mktemp("kafka"), brokers=1, secure=True)
    cluster.create()
    with (cluster.folder / "broker-1" / "server.properties").open("a") as properties:
        properties.write(AUTHORIZER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", AUDIT)
        cluster.start()
    with cluster:
        yield cluster


class Setup:
    """A pipeline's settings, and the users that may run it."""

    def __init__(
        self, cluster: Cluster, folder: Path, prefix: str, alerts_to: str, *, is_joined: bool
    ) -> None:
        self.cluster = cluster
        self.prefix = prefix
        settings = {
            **SETTINGS,
            "model": SETTINGS["model"] | {"directory": str(folder / "models")},
            "label": {"type": "integer", "topic": is_joined},
            "control": {"topic": is_joined},
            # one that nothing can keep, so that the model role says so
            "explain": SETTINGS["explain"] | ({"budget_ms": 0.001} if is_joined else {}),
            "topics": {"prefix": prefix, "partitions": 2},
            "checkpoint": topic_store(folder),
            "alerts": {"url": alerts_to},
            "dashboard": {"port": 0, "metrics_port": 0},
        }
        self.path = write_config(folder / "fluxplain.toml", settings)
        self.config = load_config(self.path).on_broker(cluster.bootstrap_servers)
        self.users = users(self.config)
        self._let_in()

    def _let_in(self) -> None:
        """Do what Strimzi's operator does with users."""
        for user in self.users:
            name = user["metadata"]["name"]
            set_password(self.cluster.bootstrap_servers, name, password(name))
        bindings = [
            AclBinding(
                ResourceType[right.kind.upper()],
                self.prefix + right.name,
                ResourcePatternType.LITERAL,
                f"User:{self.prefix}{right.user}",
                "*",
                AclOperation[right.operation.upper()],
                AclPermissionType.ALLOW,
            )
            for right in self.granted()
        ]
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        for call in admin.create_acls(bindings).values():
            call.result(30)

    def granted(self) -> set[Right]:
        """Return what the manifests allow."""
        return {
            Right(self._own(user["metadata"]["name"]), operation.upper(), kind, self._own(name))
            for user in self.users
            for rule in user["spec"]["authorization"]["acls"]
            for kind, name in [_literal(rule["resource"])]
            for operation in rule["operations"]
        }

    def audited(self, decision: str) -> set[Right]:
        """Return what the broker allowed to this pipeline's users, or denied."""
        log = (self.cluster.folder / "broker-1" / "broker.log").read_text()
        return {
            Right(self._own(user), operation, kind.lower(), self._own(name))
            for user, decided, operation, kind, name in AUDITED.findall(log)
            if user.startswith(self.prefix) and decided == decision
        }

    def environment(self, user: str) -> dict[str, str]:
        """Return what makes a process one of a user."""
        return {
            "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": self.cluster.sasl_bootstrap_servers,
            "FLUXPLAIN_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
            "FLUXPLAIN_KAFKA__CA_FILE": str(self.cluster.ca_file),
            "FLUXPLAIN_KAFKA__USERNAME": self.prefix + user,
            "FLUXPLAIN_KAFKA__PASSWORD": password(self.prefix + user),
        }

    def config_of(self, user: str) -> Config:
        """Return the settings of a user, in this process."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment(user).items():
                patch.setenv(name, value)
            return load_config(self.path)

    def _own(self, name: str) -> str:
        return name.removeprefix(self.prefix)


def password(user: str) -> str:
    return f"of-{user}"


def _literal(resource: Manifest) -> tuple[str, str]:
    assert resource["patternType"] == "literal"
    return resource["type"], resource["name"]


@pytest.fixture(params=[False, True], ids=["one input", "joined"])
def setup(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    tmp_path: Path,
    prefix: str,
    receiver: Receiver,
) -> Setup:
    return Setup(cluster, tmp_path, prefix, receiver.url, is_joined=request.param)


def environment(setup: Setup, user: str) -> dict[str, str]:
    """Return what a command of a user has; it needs no checkpoints."""
    return {**setup.environment(user), "FLUXPLAIN_CHECKPOINT__STORE": "directory"}


def announce(setup: Setup, folder: Path, fluxplain: Command) -> None:
    """Let another model take over, as the operator may."""
    model = HoeffdingTreeClassifier()
    for x, y in agrawal(50, seed=1):
        model.learn_one(x, y)
    file = folder / "new.pickle"
    file.write_bytes(pickle.dumps(model))
    # there is nothing of the last to withdraw, which is a dead letter
    for words in ("announce", str(file), "--version", "2"), ("withdraw", "3"):
        told = fluxplain(setup.path, "model", *words, **environment(setup, "operator"))
        assert (told.returncode, told.stderr) == (0, "")


def test_each_user_may_do_what_its_process_does_and_nothing_else(
    setup: Setup, tmp_path: Path, receiver: Receiver, preloaded: Preloaded
) -> None:
    config = setup.config
    roles = [replica.role for replica in config.replicas()]
    pipeline = KafkaPipeline(
        setup.path,
        setup.cluster.bootstrap_servers,
        tmp_path,
        roles=roles,
        environment_of=lambda name: setup.environment(name.partition("-")[0]),
    )
    with (
        pipeline,
        preloaded.running(setup.path, "dashboard", **environment(setup, "dashboard")) as dashboard,
        preloaded.running(setup.path, "alerts", "run", **environment(setup, "alerts")),
    ):
        producer = RecordProducer(setup.config_of("producer"))
        for n in WINDOW + 20, 20:
            for topic, value in stream(config, n):
                producer.send(config.topic(topic), value, partition=0)
            producer.flush()
            pipeline.wait_until_idle()
            if n == 20 and config.control.topic:
                announce(setup, tmp_path, preloaded.run)
                pipeline.wait_until_idle()
            for role in roles:  # the next worker reads the checkpoint
                pipeline.workers.remove(f"{role}-1")
                pipeline.workers.add(role)
        taken = pipeline.joined(0)
        assert len(taken) > (2 if config.is_joined else 1) * WINDOW
        assert_same(pipeline.published, reference_of(config, taken))
        for replica in config.replicas():
            for topic in config.inputs(replica.role):
                with closing(GroupOffsets(setup.config_of("keda"), replica, topic)) as offsets:
                    assert offsets.lag() == 0
        url = dashboard.readline().split()[-1]
        wait_until(
            lambda: [role["lag"] for role in overview(url)["roles"]] == [0] * len(roles),
            timeout_s=60,
        )
        mute(setup, url, preloaded.run)
        one = change("a", 7)
        with_all_rights = RecordProducer(config)
        with_all_rights.send(config.topic("changes"), one.encode(), partition=0)
        wait_until(lambda: receiver.ids[-1:] == [one.id], timeout_s=60)
        for role in roles:
            pipeline.workers.remove(f"{role}-1")
        inputs = {topic for role in roles for topic in config.inputs(role)}
        for topic in inputs:  # for the dashboard, which reads how old it is
            with_all_rights.send(config.topic(topic), b"?", partition=0)
        with_all_rights.flush()
        wait_until(lambda: inputs <= read_by(setup, "dashboard"), timeout_s=60)
    assert setup.audited("Denied") == set()
    unused = setup.granted() - setup.audited("Allowed")
    assert {right for right in unused if right.name not in EMERGENCIES} == set()


def mute(setup: Setup, url: str, fluxplain: Command) -> None:
    """Mute a feature by the page, and unmute it as the operator."""
    body = orjson.dumps({"state": "muted", "feature": "age", "text": "noise"})
    headers = {"Content-Type": "application/json", "Origin": url}
    asked = urllib.request.Request(f"{url}/api/notes", body, headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert answer.status == 204
    told = fluxplain(setup.path, "mute", "age", "--undo", **environment(setup, "operator"))
    assert (told.returncode, told.stderr) == (0, "")
    one = fluxplain(setup.path, "acknowledge", "0000", **environment(setup, "operator"))
    assert "there is no change '0000'" in one.stderr


def stream(config: Config, n: int) -> Iterator[tuple[str, bytes]]:
    """Yield topic and value of observations, with labels in the records or behind them."""
    for i, (x, y) in enumerate(agrawal(n, seed=n)):
        identity = {"id": f"{n}-{i}"}
        if config.label.topic:
            yield "features", orjson.dumps({**identity, "x": x})
            yield "labels", orjson.dumps({**identity, "y": y})
        else:
            yield "features", orjson.dumps({**identity, "x": x, "y": y})


def read_by(setup: Setup, user: str) -> set[str]:
    """Return the topics that a user has read."""
    allowed = setup.audited("Allowed")
    return {right.name for right in allowed if (right.user, right.operation) == (user, "READ")}


def overview(url: str) -> Any:
    with urllib.request.urlopen(f"{url}/api/overview", timeout=10) as answer:
        return orjson.loads(answer.read())


def test_nobody_else_can_write_a_topic(setup: Setup) -> None:
    expected = MAY_WRITE.keys() - (set() if setup.config.is_joined else ONLY_IF_JOINED)
    users = {each["metadata"]["name"].removeprefix(setup.prefix) for each in setup.users}
    assert users == expected
    create_topics(setup.config)
    topics = {spec.name.removeprefix(setup.prefix) for spec in topic_specs(setup.config)}
    written = {user: writable(setup, user) for user in users}
    assert written == {user: MAY_WRITE[user] & topics for user in users}


def writable(setup: Setup, user: str) -> set[str]:
    """Return the topics that a user can write; only its lack of rights keeps it from the others."""
    outcomes: dict[str, int | None] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        outcomes[str(message.topic()).removeprefix(setup.prefix)] = error and error.code()

    producer = Producer({**client_settings(setup.config_of(user)), "message.timeout.ms": 20_000})
    for spec in topic_specs(setup.config):
        producer.produce(spec.name, b"?", b"key", on_delivery=delivered)
    assert producer.flush(30) == 0
    refused = {error for error in outcomes.values() if error is not None}
    assert refused == {KafkaError.TOPIC_AUTHORIZATION_FAILED}
    return {topic for topic, error in outcomes.items() if error is None}
