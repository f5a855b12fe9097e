"""``acknowledge`` and ``mute``: what others then see, and what is refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from fluxplain.config import Config, load_config
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.producer import DeliveryError, RecordProducer
from fluxplain.results.notes_topic import read_notes, write_notes
from fluxplain.schemas import Note
from tests.cli.commands import refusal
from tests.cli.commands import run_here as run
from tests.kit.faulty_broker import PRODUCE, FaultyBroker
from tests.kit.records import change
from tests.kit.support import make_config

STREAM = "fluxplain.features-0"

FIRST = change("salary", 900, stream=STREAM)

SECOND = change("age", 950, stream=STREAM)


@pytest.fixture
def config(with_topics: Path) -> Config:
    """Settings of a broker with two changes of one incident, below the working directory."""
    config = resolve(load_config(with_topics / "fluxplain.toml", "reader"))
    producer = RecordProducer(config)
    for each in (FIRST, SECOND):
        record = replace(each, incident=f"{STREAM}@900")
        producer.send(config.topic("changes"), record.encode(), partition=0)
    producer.flush()
    return config


def done(*arguments: object) -> str:
    """Return what a command prints that succeeds."""
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_all_see_who_acknowledged_a_change_and_why_until_it_is_undone(config: Config) -> None:
    said = done("acknowledge", FIRST.id[:5], "--note", "a release", "--by", "Ada")
    assert said.startswith(f"acknowledged: {FIRST.id}, ")
    story = done("explain-change", FIRST.id)
    assert "acknowledged  by Ada, 20" in story
    assert " UTC: a release  " in story
    assert "✓ Ada: a release" in done("explain-change")
    assert done("acknowledge").startswith(f"{STREAM} {FIRST.id}  by Ada, ")
    assert "acknowledged" not in done("explain-change", SECOND.id)
    assert done("acknowledge", FIRST.id, "--undo").startswith(f"open again: {FIRST.id}")
    assert "acknowledged" not in done("explain-change", FIRST.id)
    assert done("acknowledge") == "No change is acknowledged.\n"
    assert read_notes(config).all_acknowledged() == []


def test_an_incident_is_acknowledged_with_all_its_changes(config: Config) -> None:
    done("acknowledge", f"{STREAM}@900")
    found = {note.change for note in read_notes(config).all_acknowledged()}
    assert found == {FIRST.id, SECOND.id}


def test_a_muted_feature_is_listed_with_its_reason_until_it_is_unmuted(config: Config) -> None:
    mute = ["mute", "age", "--reason", "follows the season", "--by", "Bob"]
    assert done(*mute, "--stream", STREAM, "--until", "8h") == f"muted: age in {STREAM}\n"
    listed = done("mute")
    assert listed.startswith(f"age in {STREAM}  by Bob, 20")
    in_one_line = " ".join(listed.split())
    assert ", until 20" in in_one_line
    assert ": follows the season 1 note" in in_one_line
    assert re.search("muted +by Bob, 20", done("explain-change", SECOND.id))
    assert "(muted)" in done("explain-change", FIRST.id), "the other change of the incident"
    assert f"not muted: it is with --stream {STREAM}" in refusal("mute", "age", "--undo")
    assert done("mute", "age", "--stream", STREAM, "--undo") == f"unmuted: age in {STREAM}\n"
    assert done("mute") == "No feature is muted.\n"
    done(*mute)
    assert read_notes(config).muted("another-7", "age") is not None


MISTAKES = {
    "acknowledge 0000": "there is no change '0000'; the latest are",
    "acknowledge xyz": "'xyz' is no id of a change",
    f"acknowledge {STREAM}@7": f"there is no incident '{STREAM}@7'; the nearest are {STREAM}@900",
    "acknowledge --note known": "--note needs ID",
    f"acknowledge {FIRST.id} --note {'x' * 1001}": "text: String should have at most 1000",
    "mute aeg --reason noise": "there is no feature, group or pair 'aeg'; did you mean 'age'?",
    "mute age": "--reason is missing",
    "mute --reason noise": "--reason needs FEATURE",
    "mute age --reason noise --until soon": "--until is 'soon', but must be as long from now as 8h",
    "mute age --reason noise --until 0001-01-01": "--until is '0001-01-01', but must be as long",
    "mute age --reason noise --until 2020-01-01": "', but that is no time from now on",
    "mute age --reason noise --stream age": "--stream must be topic-partition",
    "mute age --undo": "age is not muted",
}


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize("command", MISTAKES)
def test_mistakes_are_refused_with_the_remedy(command: str) -> None:
    assert MISTAKES[command] in refusal(*command.split())


def test_without_the_topic_the_command_says_how_to_make_it(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the embedded broker makes each topic that is asked for, so none can be missing there
    missing = [config.topic(Note.TOPIC)]
    monkeypatch.setattr("fluxplain.cli.common.missing_topics", lambda _settings: missing)
    reason = refusal("mute", "age", "--reason", "noise")
    assert reason.startswith("topics are missing: fluxplain.notes. `fluxplain topics create` makes")


def test_without_the_right_to_write_the_refusal_names_it() -> None:
    note = Note("muted", "2026-03-01T12:00:00Z", feature="age", text="noise")
    with FaultyBroker() as broker:
        config = make_config().on_broker(broker.bootstrap_servers)
        broker.refuse(PRODUCE, KafkaError.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(
            DeliveryError, match=r"ACLs do not allow it to this client.*fluxplain\.notes"
        ):
            write_notes(config, [note])
