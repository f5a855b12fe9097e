import gzip
import os
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from fluxplain.config import load_config
from fluxplain.schemas import BadRecordError, Observation
from fluxplain.schemas.late_label import LabelValue
from fluxplain.sources import Columns, SourceError, open_source, with_label_delay
from fluxplain.sources.csv_file import FIRST_LINES
from fluxplain.stages.intake.validation import ObservationValidator
from tests.kit.sources import config, read, refusal, typed

ROOT = Path(__file__).parents[2]


def elec2_file() -> Path:
    path = ROOT.parent / "shared" / "data" / "elec2.csv.gz"
    if not path.is_file():
        # only a clone without the folder beside it goes on without; CI has it
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("the folder with the electricity data set, ../shared/data, is missing")
    return path


def write(folder: Path, text: str | bytes, name: str = "data.csv") -> str:
    content = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(content)
    return str(folder / name)


# labels that come later


@pytest.mark.parametrize("value", [b"null", b"[1]", b'"x and y"', b'{"x": {}}', b'{"y": 1}'])
def test_what_has_no_label_to_delay_is_passed_on_as_it_is(value: bytes) -> None:
    labelled = b'{"x":{},"y":1,"id":"a"}'
    delayed = list(with_label_delay([value, labelled], 1))
    assert delayed == [value, b'{"x":{},"id":"a"}', LabelValue(b'{"id":"a","y":1}')]


# CSV files


def test_reads_the_configured_columns_of_a_csv_file(tmp_path: Path) -> None:
    path = write(tmp_path, 'id,city,y,age\n7,"Graz, AT",1,61\n8,Linz,0,2.5e1\n')
    source = open_source(path, config(), Columns(label="y"))
    assert (source.name, source.total) == (path, 2)
    expected = [
        b'{"x":{"age":61.0,"city":"Graz, AT"},"y":1}',
        b'{"x":{"age":25.0,"city":"Linz"},"y":0}',
    ]
    assert list(source) == expected
    assert list(source) == expected, "iterating again begins anew"


def test_id_and_time_have_columns_too_and_the_time_may_be_a_feature(tmp_path: Path) -> None:
    path = write(tmp_path, "key,age,at,y\n7,61,2026-11-22,1\n007,25,1795,0\n,30,,1\n")
    settings = config(age="numeric", at="categorical")
    assert read(path, settings, columns=Columns(label="y", id="key", ts="at")) == [
        {"x": {"age": 61.0, "at": "2026-11-22"}, "y": 1, "id": 7, "ts": "2026-11-22"},
        {"x": {"age": 25.0, "at": "1795"}, "y": 0, "id": "007", "ts": 1795},
        {"x": {"age": 30.0}, "y": 1},
    ]


def test_reads_gzip_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    content = gzip.compress("\ufeffage,city\r\n1,a\r\n\r\n2,b\r\n".encode())
    path = write(tmp_path, content, "data.csv.gz")
    source = open_source(path, config())
    assert source.total == 2
    assert [orjson.loads(value)["x"]["age"] for value in source] == [1.0, 2.0]


@pytest.mark.parametrize(
    "text",
    [
        "age;city;y\n1,5;Graz;1\n-2;Linz;0\n",
        "\ufeffage\tcity\ty\r\n1.5\tGraz\t1\r\n-2\tLinz\t0\r\n",
        'age|city|y\n"1.5"|"Graz"|1\n-2|Linz|0\n',
        '"age","city","y"\n"1.5","Graz","1"\n"-2","Linz","0"\n',
    ],
    ids=["semicolons and decimal commas", "tabs", "bars", "quoted"],
)
def test_however_a_file_is_written_it_has_the_same_observations(tmp_path: Path, text: str) -> None:
    assert read(write(tmp_path, text), config(), columns=Columns(label="y")) == [
        {"x": {"age": 1.5, "city": "Graz"}, "y": 1},
        {"x": {"age": -2.0, "city": "Linz"}, "y": 0},
    ]


@pytest.mark.parametrize("name", ["U.CSV", "data.tsv", "data.txt", "data.Csv.GZ"])
def test_csv_files_have_several_endings_in_any_case(tmp_path: Path, name: str) -> None:
    content = b"age\tcity\n61\tGraz\n"
    path = write(tmp_path, gzip.compress(content) if name.endswith("GZ") else content, name)
    assert read(path, config()) == [{"x": {"age": 61.0, "city": "Graz"}}]


def test_blanks_around_names_are_removed_but_not_those_of_labels(tmp_path: Path) -> None:
    path = write(tmp_path, " age ,city , y\n61,Graz, ja \n25,Linz,ja\n")
    records = read(path, config("string"), columns=Columns(label="y"))
    assert [each["y"] for each in records] == [" ja ", "ja"]


@pytest.mark.parametrize("names", [("age", " age"), ("age", " city"), (" age", " city")])
def test_blanks_around_names_stay_where_they_tell(tmp_path: Path, names: tuple[str, str]) -> None:
    path = write(tmp_path, ",".join(names) + ",y\n61,25,1\n")
    settings = config(**dict.fromkeys(names, "numeric"))
    assert read(path, settings) == [{"x": dict(zip(names, [61.0, 25.0], strict=True))}]


@pytest.mark.parametrize(
    ("text", "ages"),
    [
        ('age,city\n"1,288",a\n"8,637.75",b\n-7,c\n', [1288.0, 8637.75, -7.0]),
        ('age,city\n"1,288",a\n"1,234,567",b\n"old, new",c\n', [1288.0, 1234567.0, "old, new"]),
        # here a comma may separate decimals, or codes
        ('age,city\n"1,288",a\n"8,637.75",b\n"2,5",c\n', ["1,288", "8,637.75", "2,5"]),
        ('age,city\n"1,288",a\n"8,637.75",b\n"0,512",c\n', ["1,288", "8,637.75", "0,512"]),
        ('age,city\n"45,196",2.5\n', ["45,196"]),
        ("age;city\n1,288;12.30\n", ["1,288"]),
        ("age;city\n1,288;8,637.75\n", ["1,288"]),
        ("age;city\n1,288;a\n2.5;b\n", ["1,288", 2.5]),
    ],
)
def test_commas_separate_thousands_in_a_column_where_this_is_certain(
    tmp_path: Path, text: str, ages: list[Any]
) -> None:
    assert [each["x"]["age"] for each in read(write(tmp_path, text), config())] == ages


def test_a_later_comma_that_separates_no_thousands_leaves_a_text(tmp_path: Path) -> None:
    rows = '"8,637.75",a\n' * FIRST_LINES + '"0,5",b\n'
    path = write(tmp_path, f"age,city\n{rows}")
    ages = [each["x"]["age"] for each in read(path, config())]
    assert [ages[0], ages[-1]] == [8637.75, "0,5"]


def test_commas_in_texts_stay_and_points_among_decimal_commas_are_thousands(tmp_path: Path) -> None:
    path = write(tmp_path, "age;city;y\n1,5;2,5;1\n1.000,5;a,b;0\n")
    assert [each["x"] for each in read(path, config())] == [
        {"age": 1.5, "city": "2,5"},
        {"age": 1000.5, "city": "a,b"},
    ]


@pytest.mark.parametrize("cell", ["old", "NAN", "inf", "1e999", "1_000", " "])
def test_what_is_no_finite_number_stays_text_so_that_validation_rejects_it(
    tmp_path: Path, cell: str
) -> None:
    path = write(tmp_path, f"age,city\n{cell},Graz\n")
    [value] = open_source(path, config())
    observation = Observation.decode(value)
    assert observation.x["age"] == cell
    with pytest.raises(BadRecordError, match=r"x\.age must be a finite number"):
        ObservationValidator({"age": "numeric"}, "integer").x(observation)


@pytest.mark.parametrize("missing", ["", "NA", "nan", "NULL"])
def test_a_missing_value_is_left_out(tmp_path: Path, missing: str) -> None:
    path = write(tmp_path, f"age,city,y\n{missing},NA,\n61,,1\n")
    assert read(path, config(), columns=Columns(label="y")) == [
        {"x": {"city": "NA"}},  # Namibia is a country
        {"x": {"age": 61.0}, "y": 1},
    ]


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        (
            "boolean",
            {"true": True, "FALSE": False, "1": True, "0": False, "Yes": True, "no": False}
            | {"1.0": True, "maybe": "maybe", "2": "2"},
        ),
        ("integer", {"3": 3, "-1": -1, "1.0": 1, "1.5": "1.5", "red": "red", "1e30": "1e30"}),
        ("string", {"3": "3", "true": "true"}),
        ("number", {"3": 3.0, "-1.5": -1.5, "inf": "inf", "red": "red"}),
    ],
)
def test_labels_have_the_configured_type_or_stay_text(
    tmp_path: Path, kind: str, cells: dict[str, Any]
) -> None:
    path = write(tmp_path, "age,y\n" + "".join(f"1,{cell}\n" for cell in cells))
    records = read(path, config(kind, age="numeric"), columns=Columns(label="y"))
    assert typed([record["y"] for record in records]) == typed(list(cells.values()))


def test_a_stream_that_needs_no_label_has_none(tmp_path: Path) -> None:
    settings = config("none", age="numeric")
    path = write(tmp_path, "age,y\n61,1\n")
    assert read(path, settings) == [{"x": {"age": 61.0}}]
    assert "the label is 'y', but label.type is 'none'" in refusal(path, Columns("y"), settings)
    [record] = open_source("river:Agrawal", settings, limit=1)
    assert set(orjson.loads(record)) == {"x"}


@pytest.mark.parametrize("row", ["61", "61,Graz,1,extra"])
def test_a_row_with_shifted_cells_is_no_observation(tmp_path: Path, row: str) -> None:
    path = write(tmp_path, f"age,city,y\n{row}\n62,Linz,0\n")
    bad, good = open_source(path, config(), Columns(label="y"))
    cells = row.split(",")
    problem = f"line 2 has {len(cells)} cells, the header 3"
    problem = problem.replace("1 cells", "1 cell")
    assert orjson.loads(bad) == {"flaw": problem, "cells": cells}
    with pytest.raises(BadRecordError, match=f"^{problem}$"):
        Observation.decode(bad)
    assert Observation.decode(good).y == 0


def test_a_large_file_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxplain.sources.csv_file.COUNTED_BYTES", 10)
    source = open_source(write(tmp_path, "age,city\n1,a\n2,b\n"), config())
    assert source.total is None
    assert len(list(source)) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("age:city\n1:a\n", "no column for the feature 'age': .*by commas, are age:city"),
        (b"age,city\n1,\xff\n", r"not UTF-8 text: .*`iconv -f WINDOWS-1252 -t UTF-8 \S+\.csv > "),
        ("age,city\n1,\u00e4\n".encode("utf-16"), "not UTF-8 text: .*`iconv -f UTF-16 -t UTF-8 "),
        ("age,city\n1," + "a" * 200_000, "line 2: a cell has more than 131,072 characters"),
        ('age,city\n1,"a\nb",\n2,"c\n', "line 4: a cell begins with a quote that nothing closes"),
    ],
)
def test_errors_of_a_csv_file_are_one_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    assert re.search(message, refusal(write(tmp_path, content)))


def test_errors_of_a_path(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    write(tmp_path, "age,city\n1,a\n", "plain.csv.gz")
    for name, message in {
        "none.csv": "cannot read .*No such file",
        "folder.csv": "cannot read .*directory",
        "data.xlsx": r"is not a source: give a \.csv, \.tsv, \.txt, \.csv\.gz or \.parquet file",
        "data.parquet": "cannot read .*No such file",
        "data.gz": "is not a source",
        "plain.csv.gz": "not a whole gzip file",
    }.items():
        assert re.search(message, refusal(str(tmp_path / name)))


def test_damage_behind_the_beginning_is_an_error_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("COUNTED_BYTES", "COUNTED_GZIP_BYTES"):
        monkeypatch.setattr(f"fluxplain.sources.csv_file.{limit}", 0)
    text = b"age,city\n" + b"".join(b"%d,a\n" % (i * 7919 % 10_007) for i in range(50_000))
    path = write(tmp_path, gzip.compress(text)[:-1000], "cut.csv.gz")
    source = open_source(path, config())
    with pytest.raises(SourceError, match=r"not a whole gzip file.*after line [1-9]\d+"):
        list(source)


@pytest.mark.slow
def test_reads_the_electricity_data_set() -> None:
    path = elec2_file()
    settings = load_config(ROOT / "deploy" / "examples" / "elec2.toml")
    source = open_source(str(path), settings)
    check = ObservationValidator(settings.features, settings.label.type)
    observations = [Observation.decode(value) for value in source]
    assert len(observations) == source.total == 45_312
    assert all(list(check.x(each)) == list(settings.features) for each in observations)
    assert {check.y(each) for each in observations} == {0, 1}
    assert observations[1].x["period"] == 0.021277


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    for use in ("label", "id", "ts"):
        reason = refusal("river:Agrawal", Columns(**{use: "class"}))
        assert f"the column 'class' is for the {use}, but a River" in reason
    path = write(tmp_path, "age,city\n1,a\n")
    assert "no column 'key' for the id: its columns" in refusal(path, Columns(id="key"))
    with pytest.raises(SourceError, match="limit is -1"):
        open_source("river:Agrawal", config(age="numeric"), limit=-1)
