"""Settings that are proposed for a file run without an edit."""

import random
import re
import resource
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from fluxplain.cli import try_file
from fluxplain.cli.commands import app
from fluxplain.cli.init import settings_of
from fluxplain.config import Config, load_config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import DeadLetter, Explanation
from fluxplain.sources import Columns, SourceError, open_source
from fluxplain.sources.first_rows import sample_of
from fluxplain.sources.proposal import Named, Proposal, label_among, proposal_of
from tests.kit.in_process import run

N = 250


def rows() -> list[dict[str, Any]]:
    rng = random.Random(1)
    made = []
    for i in range(N):
        amount, shop = round(rng.uniform(0.0, 99.0), 2), rng.choice(["north", "south"])
        made.append({"key": f"k{i}", "amount": amount, "shop": shop, "big": amount > 50.0})
    return made


def lines(separator: str, *cells: Callable[[dict[str, Any]], Any]) -> str:
    return "".join(separator.join(str(cell(row)) for cell in cells) + "\n" for row in rows())


def amount(row: dict[str, Any]) -> Any:
    return row["amount"]


def comma(row: dict[str, Any]) -> str:
    return str(row["amount"]).replace(".", ",")


def shop(row: dict[str, Any]) -> Any:
    return row["shop"]


def big(row: dict[str, Any]) -> int:
    return int(row["big"])


def truth(row: dict[str, Any]) -> str:
    return "NA" if row["key"].endswith("7") else str(row["big"]).upper()


FILES: dict[str, tuple[str, dict[str, str], str]] = {
    "plain": ("amount,shop,label\n" + lines(",", amount, shop, big), {}, "boolean"),
    "semicolons, decimal commas": (
        "Betrag;Laden;label\n" + lines(";", comma, shop, big),
        {"Betrag": "numeric", "Laden": "categorical"},
        "boolean",
    ),
    "tabs, a byte order mark": (
        "\ufeffamount\tshop\tlabel\n" + lines("\t", amount, shop, big),
        {},
        "boolean",
    ),
    "bars, quoted": (
        "amount|shop|label\n"
        + lines("|", lambda r: f'"{r["amount"]}"', lambda r: f'"{r["shop"]}"', big),
        {},
        "boolean",
    ),
    "missing values": (
        "amount,shop,label\n"
        + lines(",", lambda r: "NA" if r["amount"] < 9.0 else r["amount"], shop, big),
        {},
        "boolean",
    ),
    "ids, dates, constants": (
        "id,date,amount,shop,currency,label\n"
        + lines(
            *(",", lambda r: r["key"], lambda r: f"2026-01-01T{int(r['key'][1:]) // 60:02}:00"),
            *(amount, shop, lambda _: "EUR", big),
        ),
        {},
        "boolean",
    ),
    "codes with a zero in front": (
        "amount,shop,label\n"
        + lines(",", amount, lambda r: "0123" if r["shop"] == "north" else "456", big),
        {},
        "boolean",
    ),
    "words as classes": (
        "amount,shop,class\n" + lines(",", amount, shop, lambda r: "high" if big(r) else "low"),
        {},
        "string",
    ),
    "three classes": (
        "amount,shop,y\n" + lines(",", amount, shop, lambda r: int(r["amount"] // 40)),
        {},
        "integer",
    ),
    "decimal commas, thousands with points": (
        "amount;shop;label\n"
        + lines(";", lambda r: f"1.{100 + int(r['amount'])},5{r['key'][-1]}", shop, big),
        {},
        "boolean",
    ),
    "commas that may mean thousands": (
        "amount;visits;shop;label\n"
        + lines(";", amount, lambda r: f"1,{100 + int(r['key'][1:])}", shop, big),
        {},
        "boolean",
    ),
    "commas between thousands": (
        "amount;visits;shop;label\n"
        + lines(";", amount, lambda r: f"1,{100 + int(r['key'][1:])}.5", shop, big),
        {"amount": "numeric", "visits": "numeric", "shop": "categorical"},
        "boolean",
    ),
    "spaces after commas": (
        "amount, shop, label\n" + lines(", ", amount, lambda r: f'"{r["shop"]}"', big),
        {},
        "boolean",
    ),
    "semicolons in texts": (
        "amount,shop,label\n" + lines(",", amount, lambda r: r["shop"] + "; a; b", big),
        {},
        "boolean",
    ),
    "NA is a category, and no label": (
        "amount,shop,label\n"
        + lines(",", amount, lambda r: "NA" if shop(r) == "north" else "DE", truth),
        {},
        "boolean",
    ),
    "labels as floats": (
        "amount,shop,label\n" + lines(",", amount, shop, lambda r: float(big(r))),
        {},
        "boolean",
    ),
    "numbers of many digits": (
        "amount,shop,label\n"
        + lines(",", amount, lambda r: "1234567890123456789" + str(len(r["key"])), big),
        {},
        "boolean",
    ),
    "control characters in names, and none": (
        "a\x7f,,label\n" + lines(",", amount, shop, big),
        {"a\x7f": "numeric"},
        "boolean",
    ),
    "regression": (
        "amount,shop,target\n" + lines(",", amount, shop, lambda r: 2.5 * r["amount"]),
        {},
        "number",
    ),
    "names with spaces and quotes": (
        'the amount,"a ""shop""",label\n' + lines(",", amount, shop, big),
        {"the amount": "numeric", 'a "shop"': "categorical"},
        "boolean",
    ),
}
"""Text, features, and type of the label."""


def proposed(path: Path, named: Named | None = None) -> Proposal:
    columns = sample_of(str(path))
    return proposal_of(columns, named or Named(label_among(columns)))


def loaded(folder: Path, proposal: Proposal) -> Config:
    settings = folder / "fluxplain.toml"
    settings.write_text(settings_of(proposal), encoding="utf-8")
    return load_config(settings)


def explained(config: Config, path: Path, proposal: Proposal) -> set[str]:
    """Return the explained features; assert that no record was lost on the way."""
    source = open_source(str(path), config, Columns(None, proposal.id, proposal.ts))
    records = [*LocalPipeline(config).run(source)]
    assert not [each for each in records if isinstance(each, DeadLetter)]
    return {each.feature for each in records if isinstance(each, Explanation)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("text", "features", "label"), FILES.values(), ids=FILES)
def test_a_file_runs_with_what_is_proposed_for_it(
    text: str, features: dict[str, str], label: str, tmp_path: Path
) -> None:
    features = features or {"amount": "numeric", "shop": "categorical"}
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    proposal = proposed(path)
    assert (proposal.features, proposal.label_type) == (features, label)
    assert explained(loaded(tmp_path, proposal), path, proposal) == {*features}


def test_a_parquet_file_too(tmp_path: Path) -> None:
    path, made = tmp_path / "data.parquet", rows()
    table = {name: [row[name] for row in made] for name in made[0]}
    pyarrow.parquet.write_table(pa.table({**table, "many": [[1]] * N}), path)
    proposal = proposed(path, Named("big"))
    assert proposal.features == {"amount": "numeric", "shop": "categorical"}
    assert proposal.left_out["many"] == "lists or objects, but a feature has single values"
    assert proposal.id == "key"
    with pytest.raises(SourceError, match="the label 'many' has lists or objects"):
        proposed(path, Named("many"))
    assert explained(loaded(tmp_path, proposal), path, proposal) == {"amount", "shop"}


def test_ids_and_times_are_found_and_what_is_of_no_use_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(FILES["ids, dates, constants"][0])
    proposal = proposed(path)
    assert (proposal.id, proposal.ts, proposal.label) == ("id", "date", "label")
    assert proposal.left_out == {"currency": "always 'EUR'"}
    assert not proposal.has_missing


def test_a_column_that_is_left_out_shows_a_text_of_it(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    some = (lambda r: f"{amount(r)} EUR", lambda r: "-" if r["key"] > "k95" else r["key"][1:])
    path.write_text("price,age,b,label\n" + lines(",", *some, amount, big))
    left_out = proposed(path).left_out
    assert re.fullmatch(
        r"numbers with EUR, such as '[\d.]+ EUR': write them as plain numbers", left_out["price"]
    )
    assert left_out["age"] == "numbers, but also '-'"


def test_a_cell_of_many_blanks_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    long = " " * 60_000  # a search in quadratic time would take minutes
    text = "price,amount,label\n" + lines(",", lambda r: f"{long}x{r['key']}", amount, big)
    path.write_text(text)
    assert "price" in proposed(path).left_out


@pytest.mark.parametrize(
    ("written", "signs"),
    [("{:.1f}%", "%"), ("$ {:.2f}", "$"), ("€{:.2f}", "€"), ('"0,{:.0f}"', "commas")],
)
def test_numbers_with_signs_are_left_out_with_the_remedy(
    tmp_path: Path, written: str, signs: str
) -> None:
    path = tmp_path / "data.csv"
    text = "price,amount,label\n" + lines(
        ",", lambda r: written.format(100 * amount(r)), amount, big
    )
    path.write_text(text)
    proposal = proposed(path)
    told = proposal.left_out | dict(proposal.doubts)
    assert told["price"].startswith(f"numbers with {signs}, such as ")


def test_a_wrong_cell_does_not_cost_a_numeric_feature(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(
        "age,amount,label\n"
        + lines(",", lambda r: "oops" if r["key"] == "k9" else r["key"][1:], amount, big)
    )
    proposal = proposed(path)
    assert proposal.features == {"age": "numeric", "amount": "numeric"}
    doubt = "1 of 250 values is no number, such as 'oops': it becomes a dead letter"
    assert proposal.doubts == {"age": doubt}


@pytest.mark.parametrize(
    "form", ["%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%m/%d/%Y", "%d/%m/%Y %H:%M:%S", "%Y/%m/%d"]
)
def test_dates_of_spreadsheets_are_times(tmp_path: Path, form: str) -> None:
    path = tmp_path / "data.csv"
    start = datetime(2025, 1, 1, tzinfo=UTC)

    def day(r: dict[str, Any]) -> str:
        return (start + timedelta(hours=int(r["key"][1:]))).strftime(form)

    path.write_text("when,amount,label\n" + lines(",", day, amount, big))
    assert proposed(path).ts == "when"
    order = lambda r: day({"key": f"k{int(r['key'][1:]) * 7 % N}"})  # noqa: E731
    path.write_text("when,amount,label\n" + lines(",", order, amount, big))
    assert "which can be the observations' (--ts when)" in proposed(path).left_out["when"]


@pytest.mark.parametrize(
    ("labels", "kind", "doubt"),
    [
        ("ja,Ja ,no, NO", "string", "'Ja ', 'ja' and ' NO', 'no' differ by case or blanks"),
        ("ja, ja", "string", "' ja', 'ja' differ by case or blanks"),
        ("yes,no,1,0", "string", "true and false are written in several ways"),
        ("ja,nein", "string", None),
        (" yes,no ", "boolean", None),
        ("1,2,3", "integer", None),
    ],
)
def test_classes_that_are_written_in_several_ways_are_named(
    tmp_path: Path, labels: str, kind: str, doubt: str | None
) -> None:
    each = labels.split(",")
    path = tmp_path / "data.csv"
    path.write_text(
        "amount,label\n" + lines(",", amount, lambda r: each[int(r["key"][1:]) % len(each)])
    )
    proposal = proposed(path)
    assert proposal.label_type == kind
    assert proposal.doubts.get("label", "").startswith(doubt or "")
    assert bool(proposal.doubts) == (doubt is not None)


def test_nan_is_missing_in_parquet_and_names_are_unique(tmp_path: Path) -> None:
    path, nan = tmp_path / "data.parquet", float("nan")
    columns = [[1.5, nan, *map(float, range(N))], [nan, 1.0, *[0.0, 1.0] * (N // 2)]]
    pyarrow.parquet.write_table(pa.table(columns, names=["a", "label"]), path)
    proposal = proposed(path)
    assert (proposal.features, proposal.label_type) == ({"a": "numeric"}, "boolean")
    assert proposal.has_missing
    assert explained(loaded(tmp_path, proposal), path, proposal) == {"a"}
    pyarrow.parquet.write_table(pa.table(columns, names=["a", "a"]), path)
    with pytest.raises(SourceError, match="more than one column 'a'"):
        proposed(path)


def test_without_a_label_anomalies_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n" + lines(",", amount, lambda r: r["amount"] % 7, shop))
    proposal = proposed(path, Named())
    assert proposal.left_out == {"c": "the anomaly detector takes numbers"}
    config = loaded(tmp_path, proposal)
    assert (config.label.type, config.model.factory) == ("none", "fluxplain.models:from_river")
    assert explained(config, path, proposal) == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "named", "reason"),
    [
        ("a,y\n1,2\n", Named("z"), "no column 'z' for the label; the columns: a, y"),
        ("a,y\n1,2\n2,2\n", Named("y"), "the label 'y' is always '2'"),
        ("a,y\n1,\n2,\n", Named("y"), "the label 'y' is always empty"),
        ("a,y\n1,2\n1,3\n", Named("y"), "no column is of use as a feature (a: always '1')"),
        ("a,y\n", Named("y"), "has no records; its only row is taken as the header"),
        ("a,a\n1,2\n", Named("a"), "more than one column 'a'"),
        ("exported\na,y\n1,2\n2,3\n", Named("y"), "the first row has 1 cell, but most others"),
        ("a,y\n1,2026-01-01\n2,2026-01-02\n", Named("y"), "the label 'y' is a date or time"),
        (
            "a,y\n" + "".join(f"{i},t{i}\n" for i in range(200)),
            Named("y"),
            "'y' has 200 different texts: at most 100",
        ),
    ],
)
def test_what_cannot_be_proposed_is_told_in_one_line(
    text: str, named: Named, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=re.escape(reason)):
        proposed(path, named)


def test_the_command_says_what_it_found_and_what_to_run_next(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(FILES["ids, dates, constants"][0].replace("label", "big"))
    unnamed = run(tmp_path, "init", "data.csv")
    assert unnamed.returncode == 2
    assert (
        "name the label with --label, or give --no-label; the columns: id, date" in unnamed.stderr
    )
    found = run(tmp_path, "init", "data.csv", "--label", "big")
    assert found.returncode == 0
    for line in (
        "1 numeric and 1 categorical features",
        "without currency: always 'EUR'",
        "label: big (boolean)",
        "fluxplain local data.csv --id id --ts date --out results",
    ):
        assert line in found.stdout


def test_a_file_is_explained_at_once_by_a_model_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(FILES["three classes"][0])
    (tmp_path / "own.py").write_text("from river.tree import HoeffdingTreeClassifier as Model\n")
    tried = run(tmp_path, "try", "data.csv", "--model", "own:Model", "--out", "found")
    assert tried.returncode == 0, tried.stderr
    assert "250 records · 0 dead letters" in tried.stdout
    assert {each.name for each in (tmp_path / "found").iterdir()} >= {"explanations.jsonl"}
    again = run(tmp_path, "try", "data.csv", "--limit", "5", "--out", "found")
    assert "Replacing the results of an earlier run in found." in again.stdout
    refused = run(tmp_path, "try", "data.csv", "--model", "own:Absent")
    assert refused.returncode == 2
    assert "Absent" in refused.stderr


def test_an_interrupted_try_says_that_the_results_are_not_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(FILES["plain"][0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(try_file, "_run", lambda *_: signal.raise_signal(signal.SIGINT))
    ended = CliRunner().invoke(app, ["try", str(path), "--out", "found"])
    assert ended.exit_code == 128 + signal.SIGINT
    assert "Interrupted: found holds the results so far" in ended.output


def test_settings_that_cannot_be_written_whole_leave_no_part(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(FILES["plain"][0])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # as on a full disk
    try:
        ended = run(tmp_path, "init", "data.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ended.returncode == 2
    assert "--out is 'fluxplain.toml', but cannot be written: File too large" in ended.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["data.csv"]
