"""The history in PostgreSQL: each record once, as it was published, whatever is killed."""

import json
import platform
import struct
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.kafka import Cluster
from fluxplain.schemas import Record
from tests.deploy.connect import Connect, Database, jars
from tests.docs.documents import snippets
from tests.kit.records import change, explanation, prediction, reasons
from tests.kit.settings import REAL_KAFKA
from tests.kit.waiting import wait_until

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", "x86_64"),
        reason="the PostgreSQL on Maven Central is for other machines",
    ),
]

FOLDER = Path(__file__).parents[2] / "deploy" / "postgresql"
PAGE = "deploy/docs/history.md"
POM = Path(__file__).parent / "connect" / "pom.xml"

STATEMENTS = [each.text for each in snippets("sql") if each.document == PAGE]
"""Of the page: first the rights of Connect, then queries."""

FLOATS = (5e-324, 0.1 + 0.2, 1 / 3, 1e16, -2.5e-7, 1.7976931348623157e308, 0.0, 123456789.123456789)
"""With the smallest and the largest; -0.0 becomes 0.0 in jsonb."""

EXPLANATIONS = [
    explanation(feature, seq, value, stream='it\'s "features"-0')
    for feature in ("amount", "größe|'x'")
    for seq, value in enumerate(FLOATS)
]
NOTICED = [replace(change("amount", seq, before=0.1 + 0.2), status="noticed") for seq in range(3)]
OUTCOMES = [replace(each, status="confirmed", status_seq=each.seq + 9) for each in NOTICED[:2]]
FIRST: list[Record] = [
    *(prediction(seq) for seq in range(3)),
    *(reasons(7, label=label) for label in (True, None)),
    *EXPLANATIONS[::2],
    *NOTICED,
]
"""What comes before the worker is killed."""
SECOND: list[Record] = [
    *FIRST,
    *EXPLANATIONS,
    *(replace(each, incarnation="2") for each in EXPLANATIONS[:2]),
    *(prediction(seq, loss=None) for seq in range(3, 5)),
    *OUTCOMES,
    *NOTICED,  # again after their outcomes
]
LAST: list[Record] = [prediction(99), reasons(99), explanation("age", 99, 1.0), change("age", 99)]
FOREIGN = (b"not JSON", b'{"stream": "without a seq"}', b'{"a": "\\u0000"}')


@pytest.fixture
def broker() -> Iterator[str]:
    if REAL_KAFKA:
        yield REAL_KAFKA
        return
    with Cluster() as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def folder_of_jars() -> Path:
    return jars(print, POM)


@pytest.fixture
def database(folder_of_jars: Path) -> Iterator[Database]:
    with Database(folder_of_jars) as database:
        database.query((FOLDER / "tables.sql").read_text(encoding="utf-8"))
        database.query(STATEMENTS[0])
        yield database


def connector() -> Any:
    return orjson.loads((FOLDER / "connector.json").read_bytes())


@pytest.fixture
def topics(broker: str) -> dict[str, str]:
    """Kind of record → topic."""
    prefix = f"test-{uuid.uuid4().hex[:8]}."
    listed = connector()["config"]["topics"].split(",")
    names = {name.removeprefix("fluxplain."): name.replace("fluxplain.", prefix) for name in listed}
    admin = AdminClient({"bootstrap.servers": broker})
    for made in admin.create_topics([NewTopic(name, 1) for name in names.values()]).values():
        made.result(30)
    return names


@pytest.fixture
def connect(
    folder_of_jars: Path,
    tmp_path: Path,
    broker: str,
    database: Database,
    topics: dict[str, str],
) -> Iterator[Connect]:
    """The documented connector, for the test's topics and database."""
    settings = connector()
    settings["config"] |= {
        "topics": ",".join(topics.values()),
        "connection.url": f"jdbc:postgresql://127.0.0.1:{database.port}/postgres",
        # otherwise a new worker waits 45 s until the group misses the killed one
        "consumer.override.group.instance.id": "only",
    }
    settings["name"] = topics["changes"]
    worker = Connect(folder_of_jars, tmp_path, broker, settings)
    yield worker
    worker.kill()


def send(broker: str, topics: dict[str, str], records: list[Record]) -> None:
    """Send records, and what is none, to the topics of their kinds."""
    producer = Producer({"bootstrap.servers": broker, "acks": "all"})
    for record in records:
        producer.produce(topics[record.TOPIC], record.encode(), key=b"\xff any bytes")
    for value in FOREIGN:
        producer.produce(topics["explanations"], value)
    assert producer.flush(60) == 0


def counts(database: Database) -> dict[str, int]:
    """Return table → rows."""
    names = ("predictions", "reasons", "explanations", "changes", "incoming")
    counted = ", ".join(f"(SELECT count(*) FROM fluxplain.{name})" for name in names)
    return dict(zip(names, database.query(f"SELECT {counted}")[0], strict=True))


def bits(number: float) -> bytes:
    return struct.pack(">d", number)


def read(text: str | bytes) -> Any:
    """Read JSON; jsonb writes large floats as integers."""
    return json.loads(text, parse_int=float)


def published(record: Record) -> Any:
    return read(record.encode())


def fill(database: Database, connect: Connect, broker: str, topics: dict[str, str]) -> None:
    """Let Connect fill the database, with duplicates and a kill."""
    connect.start()
    send(broker, topics, FIRST)
    wait_until(lambda: counts(database)["explanations"] > 0, what=lambda: connect.log)
    send(broker, topics, FIRST)
    connect.kill()
    send(broker, topics, SECOND)
    # the last ones of their topics: when they are there, all others were written
    send(broker, topics, LAST)
    connect.start()
    last = "SELECT count(*) FROM fluxplain.{} WHERE seq = 99".format
    wait_until(
        lambda: all(database.query(last(each.TOPIC)) == [(1,)] for each in LAST),
        what=lambda: f"{counts(database)}, {connect.log}",
    )


def test_each_record_is_there_once_as_it_was_published(
    database: Database, connect: Connect, broker: str, topics: dict[str, str]
) -> None:
    """One test: other processes of pytest would start all of it again for theirs."""
    fill(database, connect, broker, topics)
    check_rows(database)
    check_explanations(database)
    check_changes(database)
    check_nulls(database)
    check_rejected(database)
    for statement in STATEMENTS[1:]:
        assert database.query(statement), f"the page's query finds nothing: {statement}"
    check_rights(database)


def check_rows(history: Database) -> None:
    assert counts(history) == {
        "predictions": 6,
        "reasons": 3,
        "explanations": 19,
        "changes": 4,
        "incoming": 0,
    }


def check_explanations(history: Database) -> None:
    """Check that they are what was published, bit for bit."""
    again = [replace(each, incarnation="2") for each in EXPLANATIONS[:2]]
    records = {(each.feature, each.seq, each.incarnation): each for each in [*EXPLANATIONS, *again]}
    rows = history.query(
        "SELECT feature, seq, incarnation, stream, method, alpha, value, std_error, "
        "(record->>'value')::float8, record::text FROM fluxplain.explanations WHERE seq <> 99"
    )
    assert len(rows) == len(records)
    for *key, stream, method, alpha, value, error, in_record, record in rows:
        sent = records[tuple(key)]
        assert (stream, method, alpha) == (sent.stream, sent.method, sent.alpha)
        assert [bits(each) for each in (value, in_record)] == [bits(sent.value)] * 2
        assert error == sent.std_error
        assert read(record) == published(sent)


def check_changes(history: Database) -> None:
    """Check that each has its outcome, also if its first record came again later."""
    found = dict(history.query("SELECT seq, record::text FROM fluxplain.changes WHERE seq <> 99"))
    latest = {each.seq: published(each) for each in [*NOTICED, *OUTCOMES]}
    assert {seq: read(text) for seq, text in found.items()} == latest


def check_nulls(history: Database) -> None:
    losses = history.query("SELECT loss FROM fluxplain.predictions ORDER BY seq")
    assert losses == [*[(0.5,)] * 3, *[(None,)] * 2, (0.5,)]
    labels = history.query("SELECT label FROM fluxplain.reasons ORDER BY seq, label")
    assert labels == [("true",), (None,), ("true",)]


def check_rejected(history: Database) -> None:
    """Check that what is no record was put aside, and nothing else."""
    rejected = history.query("SELECT DISTINCT record FROM fluxplain.rejected")
    assert {text.encode() for (text,) in rejected} == set(FOREIGN)


def check_rights(history: Database) -> None:
    """Check that Connect's password gives no access to what is there."""
    for denied in ("SELECT * FROM fluxplain.changes", "DELETE FROM fluxplain.incoming"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            history.query(denied, role="connect")
