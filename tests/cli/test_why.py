"""``why``: published reasons, from files and from topics, reasons by a replay, and mistakes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from fluxplain.config import Config, load_config
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, Slot
from fluxplain.kafka.checkpoints.configured import open_store
from fluxplain.kafka.client import TopicPartition, cluster
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.ownership.lives import FIRST, Life
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.results.published import LocalFiles
from fluxplain.schemas import Prediction, Reasons, Record
from fluxplain.schemas.control import NewModel
from fluxplain.stages import Message, ModelStage
from fluxplain.stages.active_model import AwaitedModel
from tests.cli.commands import one_line, refusal
from tests.cli.commands import run_here as run
from tests.kit import records as made
from tests.kit import support as kit
from tests.kit.in_process import run as run_in
from tests.kit.settings import SETTINGS, write_config
from tests.kit.stages import local

VALUES = [
    orjson.dumps({"x": x, "y": y, "id": f"loan-{i}"}) for i, (x, y) in enumerate(kit.agrawal(120))
]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    path = write_config(tmp_path_factory.mktemp("settings") / "fluxplain.toml", SETTINGS)
    return load_config(path)


@pytest.fixture(scope="module")
def records(config: Config) -> list[Record]:
    return local(config, VALUES)


@pytest.fixture(scope="module")
def published(records: list[Record]) -> list[Reasons]:
    return kit.of_kind(records, Reasons)


@pytest.fixture(scope="module")
def unexplained(published: list[Reasons]) -> int:
    """The last observation without reasons."""
    explained = {each.seq for each in published}
    return max(seq for seq in range(100, 120) if seq not in explained)


@pytest.fixture
def files(records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with LocalFiles(tmp_path / "results") as files:
        for record in records:
            if record.TOPIC in files.counts:
                files.write(record)
    return tmp_path / "results"


@pytest.fixture
def topics(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RecordProducer]:
    """What the pipeline has published on a broker; another one of each topic is the newest."""
    monkeypatch.chdir(tmp_path)
    write_config(tmp_path / "fluxplain.toml", SETTINGS)
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        config = load_config(tmp_path / "fluxplain.toml", "reader")
        create_topics(config)
        producer = RecordProducer(config)
        for value in VALUES:
            producer.send(config.topic("features"), value, partition=0)
        for record in records:
            if isinstance(record, Prediction | Reasons):
                producer.send(config.topic(record.TOPIC), record.encode(), partition=0)
        producer.flush()
        yield producer


def test_published_reasons_are_shown_in_order_and_in_words(
    files: Path, published: list[Reasons]
) -> None:
    reasons = published[-1]
    shown = run("why", reasons.id, "--local", files).stdout
    assert f"{reasons.stream} seq {reasons.seq}, id {reasons.id}" in shown
    assert f"Probability of {reasons.label}: {reasons.output:.3f}" in shown
    at = [shown.index(f"{name} = ") for name in reasons.names]
    assert at == sorted(at)
    verb = "raised" if reasons.contributions[0] > 0.0 else "lowered"
    words = one_line(shown).partition("In words: ")[2]
    assert words.startswith(f"{reasons.names[0]} = ")
    assert verb in words.split(",")[0]
    assert "They were published when the output was." in one_line(shown)


def test_the_records_are_printed_as_json_by_id_and_by_seq(
    files: Path, published: list[Reasons]
) -> None:
    for reasons in published[-2:]:
        for asked in ([reasons.id], ["--seq", reasons.seq]):
            output = run("why", *asked, "--json", "--local", files).stdout
            assert Reasons.decode(output.encode()) == reasons


def test_a_missing_value_is_said_to_be_replaced(tmp_path: Path) -> None:
    with LocalFiles(tmp_path) as files:
        files.write(made.prediction(7))
        files.write(replace(made.reasons(7), missing=["amount", "tenor"]))
    shown = run("why", "--seq", 7, "--local", tmp_path).stdout
    assert "Missing in groups, and replaced: tenor." in one_line(shown)
    for text in ("amount (missing, replaced by 950.5) +0.750", "hour = 3"):
        assert text in " ".join(shown.split())
    assert "In words: amount (missing, replaced by 950.5) raised it" in one_line(shown)
    found = run("why", "--seq", 7, "--json", "--local", tmp_path).stdout
    assert orjson.loads(found)["missing"] == ["amount", "tenor"]


def test_files_without_reasons_say_how_to_get_them(files: Path, unexplained: int) -> None:
    reason = refusal("why", f"loan-{unexplained}", "--local", files)
    assert f"has no reasons for id 'loan-{unexplained}'" in reason
    assert "[reasons]" in reason
    assert "no prediction with id 'loan-999'" in refusal("why", "loan-999", "--local", files)


def test_reasons_of_an_earlier_observation_with_the_id_are_not_those_of_the_newest(
    tmp_path: Path,
) -> None:
    first, last = (replace(made.prediction(seq), id="tx") for seq in (10, 500))
    again = replace(first, incarnation="2")
    with LocalFiles(tmp_path / "results") as files:
        for record in (first, replace(made.reasons(10), id="tx"), last, again):
            files.write(record)
    asked = "--local", tmp_path / "results"
    reason = refusal("why", "--seq", 500, *asked)
    assert "has no reasons for seq 500: run" in reason
    for wanted in (["tx"], ["--seq", 10]):
        assert "in incarnation 2, the newest" in refusal("why", *wanted, *asked)
    with LocalFiles(tmp_path / "results") as files:
        for record in (first, replace(made.reasons(10), id="tx"), last):
            files.write(record)
    reason = refusal("why", "tx", *asked)
    assert "id 'tx', the newest of which is seq 500 of features-0" in reason
    assert "--seq 10 --stream features-0" in reason
    shown = run("why", "--seq", 10, "--stream", "features-0", *asked).stdout
    assert "features-0 seq 10, id tx" in shown


def test_one_observation_must_be_named(files: Path) -> None:
    assert "name one observation" in refusal("why", "--local", files)
    assert "name one observation" in refusal("why", "a", "--seq", "1", "--local", files)


@pytest.mark.slow
def test_reasons_of_topics_are_read_or_replayed(
    topics: RecordProducer, published: list[Reasons], unexplained: int, config: Config
) -> None:
    output = run("why", published[-1].id, "--json").stdout
    assert Reasons.decode(output.encode()) == published[-1]
    newer = replace(published[-1], incarnation="2", output=0.25)
    topics.send(config.topic("reasons"), newer.encode(), partition=1)
    topics.flush()
    output = run("why", published[-1].id, "--json").stdout
    assert Reasons.decode(output.encode()) == newer, "of the newest incarnation"

    shown = one_line(run("why", f"loan-{unexplained}").stdout)
    assert f"rebuilt from the log's first {unexplained} records" in shown
    assert "predicts the same as then" in shown
    by_seq = run("why", "--seq", unexplained, "--json").stdout
    assert Reasons.decode(by_seq.encode()).id == f"loan-{unexplained}"
    assert "reasons.warm_up" in refusal("why", "loan-3"), "too early"
    assert "no prediction with seq 999" in refusal("why", "--seq", 999)


def save_models(*offsets: int, life: Life = FIRST) -> None:
    """Write checkpoints of the model role, as a worker would here."""
    config = load_config(Path("fluxplain.toml"))
    store, stream = open_store(config, cluster(config)), f"{config.topic('features')}-0"
    messages = kit.messages_of(VALUES)
    for offset in offsets:
        stage = ModelStage(config, stream)
        kit.run(stage, messages[:offset])
        store.save(Slot("model", config.topic("features"), 0), Checkpoint(offset, stage, life))


@pytest.fixture
def log_begins(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let logs begin at an offset: the embedded broker cannot delete records."""
    extent = TopicReader.extent

    def begin_at(first: int) -> None:
        def later(reader: TopicReader) -> dict[TopicPartition, range]:
            return {
                tp: range(first, log.stop) if tp.topic.endswith("features") else log
                for tp, log in extent(reader).items()
            }

        monkeypatch.setattr(TopicReader, "extent", later)

    return begin_at


@pytest.mark.slow
def test_a_replay_begins_at_the_nearest_checkpoint_also_without_the_logs_beginning(
    topics: RecordProducer,
    published: list[Reasons],
    unexplained: int,
    log_begins: Callable[[int], None],
) -> None:
    assert topics
    explained = {each.seq for each in published}
    asked = "why", f"loan-{unexplained}"
    expected = run(*asked, "--json").stdout
    save_models(20, 40, 60, 80)
    shown = one_line(run(*asked).stdout)
    assert f"from the checkpoint at seq 80 and the {unexplained - 80} records after it" in shown
    assert "predicts the same as then" in shown
    log_begins(50)
    assert run(*asked, "--json").stdout == expected
    reason = refusal("why", "--seq", 40)
    assert "begins at seq 50" in reason
    assert "also the observation itself" in reason
    reason = refusal("why", "--seq", next(s for s in range(50, 60) if s not in explained))
    assert "the last usable checkpoint before seq 5" in reason
    assert "is at seq 40" in reason


@pytest.mark.slow
def test_checkpoints_that_cannot_be_used_are_named(
    topics: RecordProducer, unexplained: int, log_begins: Callable[[int], None]
) -> None:
    assert topics
    save_models(60, life=Life(1, 7))
    result = run_in(Path(), "why", f"loan-{unexplained}")
    assert "its incarnation is '7'" in one_line(result.stderr)
    assert f"the log's first {unexplained} records" in one_line(result.stdout)
    log_begins(50)
    reason = refusal("why", f"loan-{unexplained}")
    assert "no usable checkpoint" in reason
    assert "its incarnation is '7'" in reason


def test_an_announced_model_that_is_not_there_is_named(
    topics: RecordProducer, unexplained: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert topics
    awaited = AwaitedModel(NewModel("v2", "0" * 64), Message("control", 0, 0, None, None))
    made = ModelStage.__init__

    def awaiting(stage: ModelStage, *given: Any) -> None:
        made(stage, *given)
        stage.active.awaited = awaited

    monkeypatch.setattr(ModelStage, "__init__", awaiting)
    assert "fluxplain model withdraw v2" in refusal("why", f"loan-{unexplained}")


@pytest.mark.slow
def test_other_settings_are_noticed(topics: RecordProducer, unexplained: int) -> None:
    assert topics
    result = run_in(Path(), "why", f"loan-{unexplained}", FLUXPLAIN_SEED="8")
    assert result.returncode == 0
    assert "does not predict what was published" in one_line(result.stderr)
    assert "predicts the same" not in result.stdout
