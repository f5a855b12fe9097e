"""What CSV and Parquet files have in common."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from fluxplain.sources import Columns, open_source
from fluxplain.sources.parquet_file import BATCH_RECORDS
from tests.kit.sources import config, read, refusal

Write = Callable[[pa.Table], str]

AGE, CITY = pa.array([61]), pa.array(["Graz"])


@pytest.fixture(params=["csv", "parquet"])
def write(tmp_path: Path, request: pytest.FixtureRequest) -> Write:
    path = tmp_path / f"data.{request.param}"
    writer = pa.csv.write_csv if request.param == "csv" else pa.parquet.write_table

    def written(table: pa.Table) -> str:
        writer(table, path)
        return str(path)

    return written


def table(**columns: pa.Array) -> pa.Table:
    return pa.table(columns)


def test_without_a_label_column_there_are_no_labels(write: Write) -> None:
    path = write(table(age=AGE, city=CITY, y=AGE, label=AGE))
    assert read(path, config()) == [{"x": {"age": 61, "city": "Graz"}}]


def test_limit_is_the_most_that_is_read(write: Write) -> None:
    count = BATCH_RECORDS + 5
    path = write(table(age=pa.array(range(count)), city=pa.array(["a"] * count)))
    for limit in (0, 3, BATCH_RECORDS + 1, 9_999):
        source = open_source(path, config(), limit=limit)
        assert source.total == len(list(source)) == min(limit, count)
    assert [record["x"]["age"] for record in read(path, config())] == list(range(count))


TWICE = pa.Table.from_arrays([AGE, CITY, AGE], names=["age", "city", "age"])


@pytest.mark.parametrize(
    ("content", "label", "message"),
    [
        (table(age=AGE[:0], city=CITY[:0]), None, "no records"),
        (table(age=AGE, town=CITY), None, "no column for the feature 'city': .* age, town"),
        (table(age=AGE, city=CITY), "class", "no column 'class' for the label: .* age, city"),
        (table(age=AGE, city=CITY), "city", "both a feature and the label"),
        (TWICE, None, "more than one column 'age'"),
    ],
)
def test_columns_that_do_not_fit_are_named(
    write: Write, content: pa.Table, label: str | None, message: str
) -> None:
    assert re.search(message, refusal(write(content), Columns(label=label)))
