"""``fluxplain export``: from topics and from files, and what it says of mistakes."""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest

from pipeline.cli.main import main
from pipeline.config import Config, load_config
from pipeline.kafka.embedded import EmbeddedBroker
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.reader import TopicReader
from pipeline.kafka.topics import create_topics
from pipeline.outputs import LocalFiles
from schemas import Record
from tests.behaviour.conftest import NOT_INSTALLED, SETTINGS, write_config
from tests.monitor.records import STREAM, change, explanation, letter, loss_change, prediction

Said = tuple[int, str, str]

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command where there are settings, but not their model; returns what it said."""
    write_config(tmp_path / "fluxplain.toml", {**SETTINGS, "model": NOT_INSTALLED})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")

    def run_it(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["fluxplain", "export", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run_it


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """What ``fluxplain local`` writes."""
    folder = tmp_path / "results"
    records: list[Record] = [prediction(seq) for seq in range(5)]
    records += [explanation("age", seq, 0.5) for seq in (10, 20)]
    records += [change("age", 20), loss_change(30)]
    with LocalFiles(folder) as files:
        for record in records:
            files.write(record)
    return folder


def seqs(path: Path) -> list[int]:
    found: list[int] = pyarrow.parquet.read_table(path)["seq"].to_pylist()
    return found


def send(config: Config, topic: str, records: list[tuple[int, bytes]]) -> None:
    producer = RecordProducer(config)
    for place, value in records:
        producer.send(config.topic(topic), value, place=place)
    producer.flush()


def test_a_topic_is_read_to_its_end_and_each_result_is_written_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        config = load_config(tmp_path / "fluxplain.toml", "drift")
        create_topics(config)
        # over partitions as keys spread them, and repeated from a checkpoint on
        order = [*range(40), *range(25, 60)]
        messages = [(seq % 3, prediction(seq).encode()) for seq in order]
        send(config, "predictions", [*messages[:30], (1, b"what is this"), *messages[30:]])
        status, out, err = run("predictions", "--out", "p.parquet")
        assert (status, out) == (
            0,
            "1 message was left out: it holds no such record\np.parquet: 60 predictions\n",
        ), err
        assert sorted(seqs(tmp_path / "p.parquet")) == list(range(60))

        status, out, _ = run("predictions", "--out", "q.parquet", "--from-seq", "50")
        assert (status, sorted(seqs(tmp_path / "q.parquet"))) == (0, list(range(50, 60)))

        status, _, err = run("changes", "--out", "c.csv")
        assert status == 2
        assert "there is nothing to export: the topic changes holds no changes" in err

        with TopicReader(config, ["predictions"], from_beginning=True) as reader:
            extent = reader.extent()
            send(config, "predictions", [(0, prediction(60).encode())])
            read = list(reader.until(extent))
        assert len(read) == len(messages) + 1, "what comes meanwhile is for the next time"


def test_what_local_wrote_needs_neither_broker_nor_settings(
    run: Run, results: Path, tmp_path: Path
) -> None:
    (tmp_path / "fluxplain.toml").unlink()
    status, out, err = run("predictions", "--local", str(results), "--out", "p.csv.gz")
    assert (status, out) == (0, "p.csv.gz: 5 predictions\n")
    assert "predictions" in err, "how far it is"
    options = ["--method", "loss", "--from-seq", "25", "--stream", STREAM]
    assert run("changes", "--local", str(results), "--out", "c.parquet", *options)[0] == 0
    assert seqs(tmp_path / "c.parquet") == [30]
    first = ["--from-seq", "2", "--to-seq", "2", "-o", "first.csv"]
    assert run("predictions", "--local", str(results), *first)[1] == "first.csv: 1 prediction\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("predictions --out p.xlsx", "--out is 'p.xlsx', but must end in one of .parquet, .csv"),
        ("predictions --out no/p.csv", "--out is 'no/p.csv', but there is no folder no"),
        ("predictions --out p.csv --local no", "--local is 'no', but there is no such folder"),
        ("predictions --out p.csv --local .", "has no predictions.jsonl, which `fluxplain local`"),
        ("predictions --out p.csv --feature age", "--feature is for explanations and changes"),
        ("dead-letters --out p.csv --method ipfi", "--method is for explanations and changes"),
        (
            "explanations --out e.csv --method loss",
            "--method is 'loss', but must be one of ipfi, isage, ipdp",
        ),
        ("models --out m.csv", "there is no topic 'models' to export: use one of predictions, "),
        (
            "changes --out c.csv --from-seq 9 --to-seq 8 --local results",
            "--to-seq is 8, but must be at least --from-seq, 9",
        ),
        (
            "predictions --out p.csv --from-seq 7 --to-seq 900 --local results",
            "no predictions fit the options (--from-seq 7, --to-seq 900). In "
            f"results/predictions.jsonl, stream is {STREAM} (the first that there are); "
            "seq is 0 to 4",
        ),
        (
            "dead-letters --out d.csv --local results",
            "nothing to export: results/dead-letters.jsonl holds no dead-letters",
        ),
        (
            "explanations --out e.csv --local results --feature agee",
            f"no explanations fit the options. In results/explanations.jsonl, stream is {STREAM}; "
            "feature is age; method is ipfi",
        ),
    ],
)
@pytest.mark.usefixtures("results")
def test_a_mistake_gives_one_clear_sentence(
    run: Run, arguments: str, message: str, tmp_path: Path
) -> None:
    before = set(tmp_path.iterdir())
    status, out, err = run(*arguments.split())
    assert status == 2
    assert message in err
    assert not out
    assert "Traceback" not in err
    assert set(tmp_path.iterdir()) == before


def test_dead_letters_of_a_folder_are_exported(run: Run, tmp_path: Path) -> None:
    with LocalFiles(tmp_path / "bad") as files:
        files.write(letter(7))
    assert run("dead-letters", "--local", "bad", "--out", "d.parquet")[0] == 0
    table = pyarrow.parquet.read_table(tmp_path / "d.parquet")
    assert table["reason"].to_pylist() == ["x.age is missing"]
