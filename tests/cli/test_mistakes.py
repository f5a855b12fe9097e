"""Usual mistakes, each tried with the commands: one clear line that names the remedy."""

import random
from pathlib import Path

import pytest

from fluxplain.kafka.embedded import EmbeddedBroker
from tests.cli.commands import NOWHERE, SERVERS
from tests.kit.in_process import Ended, run

N = 60

SETTINGS = """
[features]
amount = "numeric"
visits = "numeric"
[label]
type = "boolean"
column = "fraud"
[model]
factory = "river.naive_bayes:GaussianNB"
"""


def cells(**columns: str) -> str:
    """Return a file of payments; a column's cells may be replaced by a single text."""
    rng = random.Random(1)
    lines = ["amount,visits,fraud"]
    for _ in range(N):
        amount = round(rng.uniform(0, 99), 2)
        row = {"amount": amount, "visits": rng.randrange(9), "fraud": int(amount > 50), **columns}
        lines.append(",".join(map(str, row.values())))
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fluxplain.toml").write_text(SETTINGS)
    (tmp_path / "data.csv").write_text(cells())
    return tmp_path


def local(folder: Path, out: str = "results") -> Ended:
    return run(folder, "local", "data.csv", "--out", out)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"boolean"', '"bool"', "label.type is 'bool': must be 'boolean', 'integer', 'string', "),
        ('"boolean"', '"bool"', "or 'none'; did you mean 'boolean'?"),
        ('"numeric"', '"number"', "features.amount is 'number': must be 'numeric' or 'categorical"),
        ("[label]", "[lable]", "lable is not a setting; did you mean label?"),
        ("column =", "colum =", "label.colum is not a setting; did you mean column?"),
        ("GaussianNB", "GausianNB", "has no GausianNB; did you mean GaussianNB?"),
        ("amount =", "amuont =", "visits, fraud; did you mean 'amount'?"),
        ('"fraud"', '"fruad"', "visits, fraud; did you mean 'fraud'?"),
        (
            'amount = "numeric"',
            "amount = numeric",
            '(at line 3, column 10): amount = numeric: texts need quotes, as in "numeric"',
        ),
        ("[label]", "[label", "(at line 5, column 7): [label"),
        ('"boolean"', '"number"', "gives a classifier, but label.type is 'number'"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_meant(
    folder: Path, old: str, new: str, reason: str
) -> None:
    (folder / "fluxplain.toml").write_text(SETTINGS.replace(old, new, 1))
    refused = local(folder)
    assert refused.returncode == 2
    [line] = [line for line in refused.stderr.splitlines() if reason in line]
    assert line.startswith(("Error: ", reason))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"amount": '"1,5"'}, '"1,5"; decimals need a point'),
        ({"amount": "2026-03-01"}, "; a time is no feature, but ts beside x"),
        ({"amount": "red"}, '"red"; "categorical" features take it'),
        ({"fraud": "low"}, "\"low\"; label.type is 'boolean', and 'string' takes it"),
        ({"fraud": "2"}, "\"2\"; label.type is 'boolean', and 'integer' takes it"),
        ({"fraud": "0,1"}, ": line 61 has 4 cells, the header 3"),
    ],
)
def test_what_cannot_be_read_ends_with_the_remedy(
    folder: Path, columns: dict[str, str], reason: str
) -> None:
    (folder / "data.csv").write_text(cells(**columns))
    refused = local(folder)
    assert refused.returncode == 2
    assert f"{N} records were not used; the last one: " in refused.stderr
    assert reason in refused.stderr
    assert "Error: all records of data.csv went to dead-letters" in refused.stderr


@pytest.mark.parametrize(
    ("policy", "what"),
    [("dead-letter", "went to dead-letters"), ("skip", "got skipped")],
)
def test_records_without_a_value_are_counted_with_the_setting_that_decides(
    folder: Path, policy: str, what: str
) -> None:
    (folder / "fluxplain.toml").write_text(f'{SETTINGS}[missing]\npolicy = "{policy}"\n')
    header, *lines = cells().splitlines()
    lacking = ["," + line.split(",", 1)[1] for line in lines[:7]]
    (folder / "data.csv").write_text("\n".join([header, *lacking, *lines[7:]]))
    ended = local(folder)
    assert ended.returncode == 0, ended.stderr
    told = f"7 records lacked a value of amount (7), and {what}; [missing] in the settings"
    assert told in ended.stderr
    (folder / "data.csv").write_text("\n".join([header, *lacking]))
    refused = local(folder)
    assert refused.returncode == 2
    assert told in refused.stderr
    assert "Error: all records of data.csv" in refused.stderr


def test_a_constant_label_is_told(folder: Path) -> None:
    assert "labels are" not in local(folder).stderr
    (folder / "data.csv").write_text(cells(fraud="1"))
    ended = local(folder)
    assert ended.returncode == 0
    assert "All 60 labels are true: there is nothing to learn" in ended.stderr


def test_a_folder_that_cannot_be_written_is_told_with_the_option(folder: Path) -> None:
    refused = local(folder, "data.csv")
    assert refused.returncode == 2
    assert "--out is 'data.csv', but no results can be written there (File exists)" in (
        refused.stderr
    )
    again = run(folder, "init", "-o", "absent/own.toml")
    assert "--out is 'absent/own.toml', but cannot be written: No such file" in again.stderr


@pytest.mark.parametrize("name", ["x.csv", "x.png", "x.html"])
def test_results_that_cannot_be_written_are_told_with_the_option(folder: Path, name: str) -> None:
    # enough for explanations
    (folder / "data.csv").write_text(cells() + "".join(cells().splitlines(keepends=True)[1:] * 3))
    local(folder)
    out = "/proc/" + name  # where nobody can
    command = {
        "x.csv": ("export", "predictions"),
        "x.png": ("plot", "importance"),
        "x.html": ("plot", "report"),
    }[name]
    refused = run(folder, *command, "--local", "results", "--out", out)
    assert refused.returncode == 2
    reason = f"Error: --out is '{out}', but cannot be written: No such file or directory"
    assert refused.stderr.splitlines()[-1] == reason


def test_a_web_address_is_no_broker(folder: Path) -> None:
    servers = {name: f"http://{value}" for name, value in NOWHERE.items()}
    refused = run(folder, "check", **servers)
    assert refused.returncode == 2
    assert "kafka.bootstrap_servers is 'http://127.0.0.1:1': must be host:port" in refused.stderr


def test_a_folder_for_checkpoints_that_cannot_be_made_is_told_with_its_key(folder: Path) -> None:
    with EmbeddedBroker() as broker:
        own = {SERVERS: broker.bootstrap_servers, "FLUXPLAIN_CHECKPOINT__DIRECTORY": "/proc/own"}
        assert run(folder, "topics", "create", **own).returncode == 0
        refused = run(folder, "worker", "--role", "model", **own)
    assert refused.returncode == 70
    assert refused.stderr.splitlines()[-1] == (
        "Error: checkpoint.directory is '/proc/own', but no folder can be made there: No such file "
        "or directory"
    )
