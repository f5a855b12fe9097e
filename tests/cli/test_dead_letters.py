"""``dead-letters``: listed by reason, shown in full, and sent again, each once."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka
import orjson
import pytest

from fluxplain.config import Config, RegistrySettings, load_config
from fluxplain.kafka.client import client_settings
from fluxplain.kafka.embedded import PARTITION_BYTES, EmbeddedBroker
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import Fingerprint
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.registry.codec import framed
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.replay import FIRST_WINDOW
from fluxplain.kafka.topics.topic_reader import read_to_end
from fluxplain.schemas import DeadLetter
from fluxplain.stages import Message
from tests.cli.commands import one_line, refusal
from tests.cli.commands import run_here as run
from tests.kit.registry import RegistryServer
from tests.kit.settings import FEATURES, NOT_INSTALLED, SETTINGS, write_config
from tests.kit.streams import observations

GOOD = observations(8)

HEADER = "fluxplain-requeued-from"

TYPE_OF = {"numeric": 1.0, "categorical": "a"}


def observation(**more: Any) -> bytes:
    """A whole observation, with an id or a label of its own."""
    return orjson.dumps({"x": {name: TYPE_OF[kind] for name, kind in FEATURES.items()}, **more})


class Topics:
    """The topics of a pipeline without workers: what producers and workers would have written."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._producer = RecordProducer(config)
        self._written: Counter[tuple[str, int]] = Counter()
        self.features = config.topic("features")

    def write(
        self,
        value: bytes | None,
        *,
        topic: str = "features",
        partition: int = 0,
        key: bytes | None = None,
        headers: Mapping[str, bytes] | None = None,
    ) -> Message:
        """Write a message, and return it as a stage would take it."""
        name = self.config.topic(topic)
        self._producer.send(name, value, key, partition, headers=headers)
        self._producer.flush()
        self._written[name, partition] += 1
        return Message(name, partition, self._written[name, partition] - 1, key, value)

    def forget(self, partition: int = 0) -> None:
        """Let the broker delete what a partition of features holds, as retention does."""
        for _ in range(PARTITION_BYTES // 500_000 + 1):
            self.write(random.Random(5).randbytes(500_000), partition=partition)

    def bury(self, message: Message, reason: str = "the model failed: ValueError: x") -> DeadLetter:
        """Publish the dead letter of a message."""
        return self.publish(message.dead_letter(reason))

    def publish(self, letter: DeadLetter) -> DeadLetter:
        name = self.config.topic(DeadLetter.TOPIC)
        self._producer.send(name, letter.encode(), partition=0)
        self._producer.flush()
        return letter

    def read(self, topic: str = "features", partition: int = 0) -> list[confluent_kafka.Message]:
        return [m for m in read_to_end(self.config, topic) if m.partition() == partition]

    def copies(self, topic: str = "features", partition: int = 0) -> list[tuple[Any, ...]]:
        """Return key, value and headers of what was sent again."""
        found = [(m.key(), m.value(), dict(m.headers() or ())) for m in self.read(topic, partition)]
        return [each for each in found if HEADER in each[2]]


Make = Callable[..., Topics]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes the topics of settings with other tables; the working directory has the settings."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "fluxplain.toml"
    with EmbeddedBroker() as broker:
        broker.publish_address()

        def made(**tables: Any) -> Topics:
            # the commands need no model
            settings = {**SETTINGS, "model": NOT_INSTALLED, **tables}
            write_config(path, {**settings, "kafka": {"bootstrap_servers": "embedded"}})
            config = load_config(path, "reader").on_broker(broker.bootstrap_servers)
            create_topics(config)
            return Topics(config)

        yield made


@pytest.fixture
def topics(make: Make) -> Topics:
    return make()


def requeue(*options: object) -> str:
    """Send again, without a question; return the output as one line."""
    result = run("dead-letters", "requeue", "--yes", *options)
    assert result.returncode == 0, result
    return one_line(result.stdout)


def listed(*options: object) -> str:
    result = run("dead-letters", *options)
    assert result.returncode == 0, result
    return result.stdout


def test_similar_reasons_are_one_group_with_their_partitions_and_offsets(topics: Topics) -> None:
    for partition, offset, said in ((0, 7, '"old"'), (0, 102, '"young"'), (1, 3, '"x"')):
        reason = f"x.age must be a finite number, not a string {said}"
        topics.bury(Message(topics.features, partition, offset, None, b"{}"), reason)
    other = topics.bury(Message(topics.features, 0, 8, None, b"{}"), "x.car is missing")
    topics.publish(other)  # as after a crash
    output = listed()
    rows = [line.split() for line in output.splitlines()]
    group = rows[1][0]
    assert re.fullmatch("[0-9a-f]{6}", group)
    assert rows[1][1:5] == ["2", "fluxplain.features-0", "7", "102"]
    newest = 'x.age must be a finite number, not a string "x"'
    assert one_line(output).count("x.age must be a finite number") == 1
    assert newest in one_line(output), "the newest is the title, without the signs of its pattern"
    assert "#" not in output
    assert ["1", "fluxplain.features-1", "3", "3"] in [row[:4] for row in rows]
    assert "4 dead letters in 2 groups" in output
    for options, count in {
        ("--group", group): 3,
        ("--reason", "YOUNG"): 1,
        ("--stream", "fluxplain.features-1"): 1,
        ("--from-offset", 8): 2,
        ("--from-offset", 8, "--to-offset", 9, "--topic", "features"): 1,
    }.items():
        assert f"{count} dead letter" in listed(*options), options
    assert listed("--topic", "labels") == "There are no such dead letters.\n"


def test_one_is_shown_in_full_by_id_or_by_place(topics: Topics) -> None:
    value = b'{"x": {"age": 61}, "note": "\\u001b[31m"}'
    letter = topics.bury(Message(topics.features, 2, 9, b"card-7", value), "x.salary is missing")
    by_id = run("dead-letters", "show", letter.id[:5]).stdout
    assert by_id == run("dead-letters", "show", "features/2/9").stdout
    assert by_id == run("dead-letters", "show", "fluxplain.features/2/9").stdout
    for part in (letter.id, "x.salary is missing", "card-7", "fluxplain.features-2 offset 9"):
        assert part in by_id
    assert '"age": 61' in by_id
    assert "\x1b" not in by_id
    as_json = run("dead-letters", "show", letter.id, "--json").stdout
    assert DeadLetter.decode(as_json.encode()) == letter
    assert "there is no dead letter 0000" in refusal("dead-letters", "show", "0000")
    assert "names no dead letter" in refusal("dead-letters", "show", "features-2@9")


def test_bytes_without_text_are_shown(topics: Topics) -> None:
    topics.bury(Message(topics.features, 0, 0, None, b"\xff\x00"), "not JSON")
    assert "/wA=" in run("dead-letters", "show", "features/0/0").stdout


def test_a_message_is_sent_again_as_it_was_and_once(topics: Topics) -> None:
    headers = {"traceparent": b"00-1", HEADER: b"forged"}
    before = topics.write(GOOD[0], partition=3, key=b"card-7", headers=headers)
    topics.bury(before)
    topics.write(GOOD[1], partition=3)
    output = requeue()
    assert "1 message can be sent:" in output
    assert "Sent 1 message. fluxplain.features-3: 1, at offsets 2 to 2" in output
    copy = {"traceparent": b"00-1", HEADER: b"fluxplain.features-3@0"}
    assert topics.copies(partition=3)[1:] == [(b"card-7", GOOD[0], copy)]
    again = requeue()
    assert "it was sent again before, to offset 2" in again
    assert "There is nothing to send." in again
    assert len(topics.read(partition=3)) == 3


@pytest.mark.slow
def test_a_copy_that_fails_again_has_a_dead_letter_of_its_own_to_send(topics: Topics) -> None:
    topics.bury(topics.write(GOOD[0], key=b"k"))
    requeue()
    topics.bury(Message(topics.features, 0, 1, b"k", GOOD[0]))  # the copy
    assert "Sent 1 message." in requeue()
    origins = [headers[HEADER] for _, _, headers in topics.copies()]
    assert origins == [b"fluxplain.features-0@0", b"fluxplain.features-0@1"]


@pytest.mark.slow
def test_what_an_interrupted_run_has_sent_is_not_sent_twice(topics: Topics) -> None:
    messages = [topics.write(value) for value in GOOD[:3]]
    for each in messages:
        topics.bury(each)
    # its process died before it could report anything
    topics.write(GOOD[1], headers={HEADER: b"fluxplain.features-0@1"})
    topics.write(GOOD[2], headers={HEADER: b"fluxplain.features-1@2"})  # of another partition
    assert "Sent 2 messages." in requeue()
    assert [value for _, value, _ in topics.copies()[2:]] == [GOOD[0], GOOD[2]]


@pytest.mark.slow
def test_nothing_is_sent_without_consent(topics: Topics) -> None:
    topics.bury(topics.write(GOOD[0]))
    assert "1 message can be sent:" in run("dead-letters", "requeue", "--dry-run").stdout
    result = run("dead-letters", "requeue")  # nobody answers
    assert result.returncode == 1
    assert "Send 1 message again?" in result.stdout + result.stderr
    assert not topics.copies()


@pytest.mark.slow
def test_chosen_ones_are_sent_in_the_order_of_their_partition(topics: Topics) -> None:
    messages = [topics.write(value) for value in GOOD[:5]]
    letters = [topics.bury(each) for each in reversed(messages)]
    requeue("features/0/4", letters[-1].id)
    assert [value for _, value, _ in topics.copies()] == [GOOD[0], GOOD[4]]
    requeue("--from-offset", 1, "--to-offset", 2)
    assert [value for _, value, _ in topics.copies()[2:]] == GOOD[1:3]


@pytest.mark.slow
def test_a_long_value_is_read_from_its_topic_else_refused(topics: Topics) -> None:
    long = observation(note="a" * 300_000)
    topics.bury(topics.write(long))
    other = topics.write(long, partition=1)
    topics.forget(partition=1)
    topics.bury(other)
    output = requeue()
    assert "the original was deleted, and the dead letter holds only a part of it" in output
    assert [value for _, value, _ in topics.copies()] == [long]
    assert not topics.copies(partition=1)


@pytest.mark.slow
def test_a_message_of_a_deleted_topic_is_not_sent_to_its_successor(topics: Topics) -> None:
    topics.write(GOOD[1])
    for offset in (0, 7):
        topics.bury(Message(topics.features, 0, offset, None, GOOD[0]))
    output = requeue()
    assert "2 dead letters will not be sent" in output
    assert "its topic was deleted and created again" in output
    assert not topics.copies()


@pytest.mark.slow
def test_a_deleted_message_is_taken_from_its_dead_letter(topics: Topics) -> None:
    whole = topics.write(GOOD[0], key=b"\xfe", headers={"traceparent": b"00-1"})
    others = [topics.write(value).dead_letter("x") for value in GOOD[1:3]]
    topics.forget()
    topics.bury(whole)
    topics.publish(forged(others[0], value="{}"))
    topics.publish(forged(others[1], encoding="base64"))
    output = requeue()
    assert "does not have the digest that it names" in output
    assert "its copy is not base64" in output
    assert topics.copies() == [(b"\xfe", GOOD[0], {HEADER: b"fluxplain.features-0@0"})]


def test_what_was_sent_is_not_sent_again_once_it_is_deleted(topics: Topics) -> None:
    topics.bury(topics.write(GOOD[0]))
    assert "Sent 1 message" in requeue()
    topics.forget()
    assert "messages that came after it were deleted" in requeue()
    assert not topics.copies()


def forged(letter: DeadLetter, **fields: Any) -> DeadLetter:
    return DeadLetter(**{**orjson.loads(letter.encode()), **fields})


REFUSED: Sequence[tuple[str, bytes | None, str, str]] = (
    ("evaluations", b"{}", "it was not written by a worker", "about a message between the roles"),
    ("observations", b"{}", "it was not written by a worker", "about a message between the roles"),
    ("labels", b"{}", "no id", "no worker reads fluxplain.labels"),
    ("features", b"{}", "cannot explain age: it came after later ones", "has a prediction"),
    ("features", GOOD[0], "no reasons: the model failed", "has a prediction"),
    ("features", GOOD[0], 'no label with id "a" came in time (label.wait)', "has a prediction"),
    ("features", b'{"id":1,"y":0}', "the observation with id 1 was labelled 1 before", "the first"),
    ("features", b'{"id":1,"y":0}', "no observation with id 1 waits", "no observation would wait"),
    ("features", b'{"id":2,"y":0}', "the model failed: ValueError: bad", "waits for none any more"),
    ("features", None, "the message has no value (a tombstone)", "there is no value to send"),
    ("features", b'{"x": {}}', "x.age is missing", "x.salary is missing"),
    ("features", b"{", "not JSON", "not JSON"),
)


def test_what_would_fail_again_or_count_twice_is_not_sent(topics: Topics) -> None:
    for topic, value, reason, _ in REFUSED:
        topics.bury(topics.write(value, topic=topic), reason)
    for partition, offset in ((99, 0), (0, -1)):
        topics.bury(Message(topics.features, partition, offset, None, GOOD[0]))
    output = requeue()
    assert output.startswith(f"{len(REFUSED) + 2} dead letters will not be sent:")
    assert "fluxplain.features has no partition" in output
    assert "fluxplain.features has no offset" in output
    for *_, expected in REFUSED:
        assert expected in output
    assert "There is nothing to send." in output


@pytest.mark.slow
def test_validation_follows_the_settings_of_the_stream(make: Make) -> None:
    topics = make(streams={"1": {"missing": {"policy": "skip"}}})
    for partition in (0, 1):
        topics.bury(topics.write(b'{"x": {}}', partition=partition))
    assert "Sent 1 message. fluxplain.features-1" in requeue()


@pytest.mark.slow
def test_an_old_one_is_not_sent_since_its_copy_may_be_deleted(make: Make) -> None:
    topics = make(topics={"retention_hours": 1.0})
    letter = topics.write(GOOD[0]).dead_letter("the model failed")
    producer = confluent_kafka.Producer(client_settings(topics.config))
    an_hour_ago = int((time.time() - 3601) * 1000)
    name = topics.config.topic(DeadLetter.TOPIC)
    producer.produce(name, letter.encode(), partition=0, timestamp=an_hour_ago)
    producer.flush()
    assert "it is older than topics.retention_hours" in requeue()
    assert not topics.copies()


@pytest.mark.slow
def test_the_wire_format_is_validated_and_sent_as_it_is(make: Make) -> None:
    with RegistryServer() as server:
        topics = make(registry={"url": server.url})
        topics.bury(topics.write(framed(999, GOOD[0])))
        known = framed(server.add("features", "{}", "JSON"), GOOD[1])
        topics.bury(topics.write(known))
        assert "the schema registry has no schema 999" in requeue()
    topics.config = topics.config.model_copy(update={"registry": RegistrySettings()})
    assert [value for _, value, _ in topics.copies()] == [known]


@pytest.mark.slow
class TestLateLabels:
    """A label and its observation come back together, or the label does not."""

    @pytest.fixture
    def topics(self, make: Make) -> Topics:
        return make(label={"type": "integer", "topic": True})

    def bury_label(self, topics: Topics, id_: str) -> None:
        label = topics.write(orjson.dumps({"id": id_, "y": 1}), topic="labels")
        topics.bury(label, f'no observation with id "{id_}" waits for this label: none came')

    def test_with_its_observation(self, topics: Topics) -> None:
        self.bury_label(topics, "a")
        self.bury_label(topics, "b")
        topics.bury(topics.write(observation(id="a")))
        output = requeue()
        assert "no observation would wait for this label" in output
        assert "Sent 2 messages." in output
        assert len(topics.copies()) == 1
        assert [value for _, value, _ in topics.copies("labels")] == [b'{"id":"a","y":1}']

    def test_after_its_observation(self, topics: Topics) -> None:
        topics.bury(topics.write(observation(id="a")))
        assert "Sent 1 message." in requeue()
        self.bury_label(topics, "a")
        assert "Sent 1 message. fluxplain.labels-0" in requeue("--topic", "labels")

    def test_controls_are_announced_instead(self, make: Make) -> None:
        topics = make(control={"topic": True})
        topics.bury(Message(topics.config.topic("control"), 0, 0, None, b"{}"), "every must be")
        assert "`fluxplain model announce`" in requeue()


@pytest.mark.slow
class TestFormerStates:
    """A state that began again reads the message by itself."""

    @pytest.fixture
    def register(self, topics: Topics) -> Iterator[Register]:
        with closing(Register(topics.config)) as register:
            yield register

    def test_with_replaced_settings(self, topics: Topics, register: Register) -> None:
        here = topics.config.fingerprint()
        register.enter(Fingerprint({**here, "seed": "0"}, {}))
        topics.bury(topics.write(GOOD[0]))
        differ = refusal("dead-letters", "requeue", "--yes")
        assert "registered with other settings: they differ in seed" in differ
        register.replace(Fingerprint(here, {}))
        assert "the state has begun again at offset " in requeue()
        assert not topics.copies()

    def test_unless_it_began_behind_the_message(self, topics: Topics, register: Register) -> None:
        here = topics.config.fingerprint()
        register.enter(Fingerprint({**here, "seed": "0"}, {}))
        number = register.replace(Fingerprint(here, {}))
        messages = [topics.write(value) for value in GOOD[:2]]
        for each in messages:
            topics.bury(each)
        register.cold_start(f"model {topics.features}-0", 1, number, number)
        assert "Sent 1 message." in requeue()
        assert [value for _, value, _ in topics.copies()] == [GOOD[0]]


@pytest.mark.slow
def test_the_embedded_broker_gets_no_more_than_it_keeps(topics: Topics) -> None:
    for _ in range(FIRST_WINDOW + 1):
        topics.bury(topics.write(GOOD[0]))
    assert "1 dead letter must wait for another run" in requeue()
    assert len(topics.copies()) == FIRST_WINDOW
    assert "Sent 1 message." in requeue()


def test_mistakes_name_the_remedy(topics: Topics) -> None:
    words = ("--from-offset", "9", "--to-offset", "8")
    assert "--to-offset is 8, but must be at least" in refusal("dead-letters", *words)
    assert "write the options after `requeue`" in refusal(
        "dead-letters", "--reason", "x", "requeue"
    )
