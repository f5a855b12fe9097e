"""A cluster of brokers on this machine."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.kafka.broker import STOP_TIMEOUT_S, Broker, Kafka
from deploy.kafka.create import create
from deploy.kafka.files import Files, KafkaError, locked
from deploy.kafka.java import jars, java
from deploy.kafka.settings import USERNAME, Plan
from fluxplain.schemas.wording import plural

START_TIMEOUT_S = 90.0
"""Seconds until brokers must answer; three need 5 s on two idle cores."""


REPOSITORY = Path(__file__).parents[2]


def say(line: str) -> None:
    """Print a line to the terminal at once."""
    print(line, file=sys.stderr, flush=True)


class Cluster:
    """Brokers on 127.0.0.1, each of them a process.

    As a context manager it starts them, and they end with it or with this process. A caller of
    :meth:`start` must stop them. There are 1 or 3 brokers; if they are `secure`, they listen for
    SASL_SSL and SSL too. The files in `folder` remain, and an existing cluster is used again;
    without `folder` a temporary one is removed at the end of the context. `tell` is called with a
    sentence before something that takes long. All methods raise KafkaError for problems that a user
    must fix.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        brokers: int = 1,
        secure: bool = False,
        *,
        tell: Callable[[str], None] = say,
    ) -> None:
        if brokers not in {1, 3}:
            raise KafkaError(f"a cluster has 1 or 3 brokers, not {brokers}")
        self._temporary = folder is None
        self.folder = Path(folder).resolve() if folder else _temporary_name()
        self._files = Files(self.folder)
        self._wanted = brokers, secure
        self._tell = tell
        self._reaper: subprocess.Popen[bytes] | None = None
        self._use(Plan.read(self._files.plan))

    @classmethod
    def attach(cls, folder: Path | str, *, tell: Callable[[str], None] = say) -> Self:
        """Return the existing cluster in a folder, whether it runs or not."""
        plan = Plan.read(Files(Path(folder)).plan)
        if plan is None:
            raise KafkaError(f"there is no cluster in {folder}: `start` creates one")
        return cls(folder, plan.brokers, plan.secure, tell=tell)

    @property
    def plan(self) -> Plan:
        """The cluster's fixed settings."""
        if self._plan is None:
            raise KafkaError("this cluster was not started yet")
        return self._plan

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers for PLAINTEXT."""
        return self.plan.addresses("PLAINTEXT")

    @property
    def sasl_bootstrap_servers(self) -> str:
        """Addresses for SASL_SSL with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""
        return self.plan.addresses("SASL_SSL")

    @property
    def tls_bootstrap_servers(self) -> str:
        """Addresses for SSL, where a client's certificate is optional."""
        return self.plan.addresses("SSL")

    @property
    def ca_file(self) -> Path:
        """Certificate of the authority that signed all others."""
        return self._secure.tls / "ca.pem"

    @property
    def client_cert_file(self) -> Path:
        """Certificate for a client."""
        return self._secure.tls / "client.pem"

    @property
    def client_key_file(self) -> Path:
        """Key of the client's certificate, without a password."""
        return self._secure.tls / "client-key.pem"

    @property
    def username(self) -> str:
        """The user of SASL_SSL."""
        return USERNAME

    @property
    def password_file(self) -> Path:
        """File with the user's password."""
        return self._secure.password

    @property
    def password(self) -> str:
        """The user's password."""
        return self.password_file.read_text(encoding="utf-8").strip()

    def create(self) -> None:
        """Create the folder, whose files may be changed before the first start."""
        kafka = Kafka(java(), jars(self._tell))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._files.lock):
            self._make(kafka)

    def start(self) -> None:
        """Start all brokers that do not run, and wait until they answer and know each other."""
        self.create()
        kafka = Kafka(java(), jars(self._tell))
        with locked(self._files.lock):
            started = [broker for broker in self._brokers.values() if broker.pid() is None]
            if started:
                self._tell(f"Starting {plural(len(started), 'broker')} …")
            for broker in started:
                broker.spawn(kafka)
        try:
            for node in self._brokers:
                self._wait_for(node, len(self._brokers))
        except BaseException:
            _kill(started)
            raise

    def start_broker(self, node: int) -> None:
        """Start a broker with its former ports and data, and wait until it answers.

        One of three brokers does not answer alone: at least two must run.
        """
        broker = self._broker(node)
        kafka = Kafka(java(), jars(self._tell))
        with locked(self._files.lock):
            if broker.pid() is None:
                broker.spawn(kafka)
        self._wait_for(node, 1)

    def stop(self) -> None:
        """Stop all brokers gracefully; kill those that do not stop in time."""
        for broker in self._brokers.values():
            broker.signal(signal.SIGTERM)
        for broker in self._brokers.values():
            broker.wait_until_gone(STOP_TIMEOUT_S)

    def stop_broker(self, node: int) -> None:
        """Stop a broker gracefully: its partitions move first."""
        self._broker(node).signal(signal.SIGTERM)
        self._broker(node).wait_until_gone(STOP_TIMEOUT_S)

    def kill_broker(self, node: int) -> None:
        """Kill a broker without a shutdown."""
        _kill([self._broker(node)])

    def remove(self) -> None:
        """Kill all brokers, and remove the folder."""
        _kill(list(self._brokers.values()))
        shutil.rmtree(self.folder, ignore_errors=True)

    def pids(self) -> dict[int, int | None]:
        """Return node id → process id, or None for a broker that does not run."""
        return {node: broker.pid() for node, broker in self._brokers.items()}

    def answering(self) -> set[int]:
        """Return the ids of the brokers that take requests, according to one of them."""
        return _listed(self.bootstrap_servers, 2.0)

    @property
    def _secure(self) -> Files:
        """The files, if they are those of secure listeners too."""
        self.plan.require("SSL")
        return self._files

    def _broker(self, node: int) -> Broker:
        if node not in self._brokers:
            known = ", ".join(map(str, self.plan.nodes))
            raise KafkaError(f"there is no broker {node}: this cluster has {known}")
        return self._brokers[node]

    def _use(self, plan: Plan | None) -> None:
        self._plan = plan
        nodes = plan.nodes if plan else ()
        self._brokers = {node: Broker(self._files.broker(node)) for node in nodes}

    def _make(self, kafka: Kafka) -> None:
        """Create the folder, or check that the existing cluster has the wanted settings."""
        brokers, secure = self._wanted
        plan = Plan.read(self._files.plan)
        plan = plan or create(self._files, kafka, brokers=brokers, secure=secure)
        if (plan.brokers, plan.secure) != self._wanted:
            has = f"{_count(plan.brokers)}, {'' if plan.secure else 'not '}secure"
            raise KafkaError(
                f"the cluster in {self.folder} has other settings ({has}), which cannot be "
                "changed: `clean` removes it and its data"
            )
        if plan != self._plan:
            self._use(plan)

    def _wait_for(self, node: int, brokers: int) -> None:
        """Wait until a broker answers and knows so many brokers, including itself."""
        broker = self._broker(node)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if broker.pid() is None:
                raise KafkaError(f"broker {node} ended. Its log:\n{broker.end_of_log()}")
            known = _listed(self.plan.address(node, "PLAINTEXT"), timeout_s=1.0)
            if node in known and len(known) >= brokers:
                return
            time.sleep(0.1)
        raise KafkaError(
            f"broker {node} did not answer within {START_TIMEOUT_S:.0f} s. Its log:\n"
            + broker.end_of_log()
        )

    def __enter__(self) -> Self:
        self._reaper = _spawn_reaper(self.folder, temporary=self._temporary)
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        if self._temporary:
            self.remove()
        else:
            self.stop()
        if self._reaper:
            self._reaper.kill()
            self._reaper.wait()


def _spawn_reaper(folder: Path, *, temporary: bool) -> "subprocess.Popen[bytes]":
    """Start a process that ends the brokers after the end of this one.

    PR_SET_PDEATHSIG would signal at the end of the thread that started a broker, and only on Linux.
    """
    return subprocess.Popen(  # noqa: S603  our own command line
        [
            *(sys.executable, "-m", "deploy.kafka.reaper", str(folder), str(os.getpid())),
            *(["--temporary"] if temporary else []),
        ],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def _temporary_name() -> Path:
    return Path(tempfile.gettempdir()).resolve() / f"fluxplain-kafka-{secrets.token_hex(8)}"


def _count(brokers: int) -> str:
    return "1 broker" if brokers == 1 else f"{brokers} brokers"


def _kill(brokers: list[Broker]) -> None:
    for broker in brokers:
        broker.signal(signal.SIGKILL)
    for broker in brokers:
        broker.wait_until_gone(0.0)


def _listed(bootstrap_servers: str, timeout_s: float) -> set[int]:
    """Return the ids of the brokers in the metadata; none if no broker answers."""
    # no answer is normal during a start: log nothing
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    try:
        return set(admin.list_topics(timeout=timeout_s).brokers)
    except KafkaException:
        return set()
