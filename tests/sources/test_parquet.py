"""Parquet files as sources: what other programs write is what a producer would have sent."""

import random
import re
import tracemalloc
from contextlib import nullcontext
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.schemas import BadRecordError, Observation
from fluxplain.sources import Columns, SourceError, open_source
from fluxplain.sources.parquet_file import BATCH_RECORDS
from fluxplain.stages.intake.validation import ObservationValidator
from tests.kit.sources import config, read, refusal, typed
from tests.kit.support import PROPERTY


def write(folder: Path, columns: dict[str, Any], name: str = "data.parquet") -> str:
    pa.parquet.write_table(pa.table(columns), folder / name)
    return str(folder / name)


def test_reads_the_configured_columns_of_a_file(tmp_path: Path) -> None:
    columns = {"id": [7, 8], "city": ["Graz, AT", ""], "y": [1, 0], "age": [61, 25]}
    path = write(tmp_path, columns)
    source = open_source(path, config(), Columns(label="y", id="id", ts="city"))
    assert (source.name, source.total) == (path, 2)
    expected = [
        b'{"x":{"age":61,"city":"Graz, AT"},"y":1,"id":7,"ts":"Graz, AT"}',
        b'{"x":{"age":25,"city":""},"y":0,"id":8,"ts":""}',
    ]
    assert list(source) == expected
    assert list(source) == expected, "iterating again begins anew"


rows = st.lists(
    st.tuples(
        st.none() | st.floats(-1e9, 1e9),
        st.none() | st.integers(-(2**31), 2**31),
        st.none() | st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1),
        st.none() | st.booleans(),
    ),
    min_size=1,
)


@PROPERTY
@given(rows=rows)
def test_what_pandas_writes_is_the_same_as_parquet_and_as_csv(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    frame = pd.DataFrame(rows, columns=["price", "age", "city", "y"])
    frame = frame.astype({"city": "category", "y": "boolean"})
    settings = config("boolean", price="numeric", age="numeric", city="categorical")
    folder = tmp_path_factory.mktemp("frames")
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_parquet(folder / "data.parquet")
    check = ObservationValidator(settings.features, "boolean", required=())
    of_csv, of_parquet = (
        [
            (check.x(each), check.y(each))
            for each in map(
                Observation.decode, open_source(str(folder / name), settings, Columns(label="y"))
            )
        ]
        for name in ("data.csv", "data.parquet")
    )
    assert of_parquet == of_csv
    assert len(of_parquet) == len(rows)


WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


CATEGORIES = [
    (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    (pa.array([3, None]).dictionary_encode(), [3, None]),
    (pa.array([True, False, None]), [True, False, None]),
    (pa.array([2**62, -1], pa.int64()), [2**62, -1]),
    (pa.array([7, 8], pa.uint8()), [7, 8]),
    # with missing values, pandas has whole numbers in columns of this type
    (pa.array([1.0, None, 2.0]), [1, None, 2]),
    (pa.array([Decimal("7.00"), Decimal("-7")], pa.decimal128(5, 2)), [7, -7]),
    (pa.array(["x", "é"], pa.large_string()), ["x", "é"]),
    (pa.nulls(2), [None, None]),
    (pa.array([date(2026, 3, 1)]), ["2026-03-01"]),
    (pa.array([time(12, 30)], pa.time32("s")), ["12:30:00.000"]),
    (pa.array([datetime(2026, 3, 1)], pa.timestamp("ms")), ["2026-03-01T00:00:00.000"]),
    (
        pa.array([WHEN, None], pa.timestamp("s", "Europe/Vienna")),
        ["2026-03-01T12:00:00.000Z", None],
    ),
    (pa.array([WHEN], pa.timestamp("ns", "UTC")), ["2026-03-01T12:00:00.000000000Z"]),
    (pa.array([WHEN.date()]).dictionary_encode(), ["2026-03-01"]),
]

NUMBERS = [
    (pa.array([1, None, -3], pa.int16()), [1, None, -3]),
    (pa.array([0.5, None], pa.float16()), [0.5, None]),
    (pa.array([0.1], pa.float64()), [0.1]),
    (pa.array([Decimal("0.25"), Decimal("4.00")], pa.decimal128(5, 2)), [0.25, 4]),
    (pa.array([Decimal(10**30)], pa.decimal128(38, 0)), [1e30]),
    (pa.array(["1.5", "old", "1e999", ""]), [1.5, "old", "1e999", ""]),
    (pa.array([float("nan"), float("inf")]), [None, "inf"]),
]


@pytest.mark.parametrize(
    ("kind", "column", "expected"),
    [
        *(("categorical", *each) for each in CATEGORIES),
        *(("numeric", *each) for each in NUMBERS),
    ],
)
def test_features_of_every_type(
    tmp_path: Path, kind: str, column: pa.Array, expected: list[Any]
) -> None:
    settings = config(f=kind)
    values = [record["x"].get("f") for record in read(write(tmp_path, {"f": column}), settings)]
    assert typed(values) == typed(expected)
    check = ObservationValidator(settings.features, "integer", required=())
    for value in values:
        is_wrong = kind == "numeric" and isinstance(value, str)
        reason = r"x\.f must be a finite number"
        with pytest.raises(BadRecordError, match=reason) if is_wrong else nullcontext():
            check.x(Observation({"f": value}))


@pytest.mark.parametrize(
    ("kind", "column", "expected"),
    [
        ("boolean", pa.array([True, None, False]), [True, None, False]),
        ("boolean", pa.array([1, 0, 2]), [True, False, 2]),
        ("boolean", pa.array(["yes", "0", "maybe"]), [True, False, "maybe"]),
        ("integer", pa.array([1.0, None, 1.5]), [1, None, 1.5]),
        ("integer", pa.array([True]), [1]),
        ("integer", pa.array([Decimal("3"), Decimal("3.5")]), [3, 3.5]),
        ("string", pa.array([3]), ["3"]),
        ("string", pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        ("string", pa.array([date(2026, 3, 1)]), ["2026-03-01"]),
        ("number", pa.array([3]), [3.0]),
        ("number", pa.array(["-1.5", "red"]), [-1.5, "red"]),
    ],
)
def test_labels_have_the_configured_type_or_stay_as_they_are(
    tmp_path: Path, kind: str, column: pa.Array, expected: list[Any]
) -> None:
    path = write(tmp_path, {"age": [1] * len(column), "y": column})
    records = read(path, config(kind, age="numeric"), columns=Columns(label="y"))
    assert typed([record.get("y") for record in records]) == typed(expected)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """All records are in one row group, as many programs write them."""
    few, many = (_most_bytes(tmp_path / f"{n}.parquet", n) for n in (150_000, 600_000))
    assert many < 1.1 * few


def _most_bytes(path: Path, records: int) -> int:
    rng = random.Random(1)
    table = pa.table({"age": [rng.random() for _ in range(records)]})
    pa.parquet.write_table(table, path, row_group_size=records)
    del table
    before, most = pa.total_allocated_bytes(), 0
    tracemalloc.start()  # Arrow has memory of its own, and reads through Python's files
    for i, _ in enumerate(open_source(str(path), config(age="numeric"), limit=3_000)):
        if i % BATCH_RECORDS == 1:
            most = max(most, pa.total_allocated_bytes() - before)
    _, python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most + python


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"age": [[1]]}, r"'age' holds values of type list<.*must hold numbers"),
        ({"city": [b"a"]}, "'city' holds values of type binary"),
        ({"y": [timedelta(1)]}, "'y' holds values of type duration"),
    ],
)
def test_types_of_no_single_value_are_named(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, {"age": [1], "city": ["a"], "y": [1], **columns})
    assert re.search(message, refusal(path, Columns(label="y")))


@pytest.mark.parametrize("content", [b"", b"age,city\n1,a\n", b"PAR1" + b"\x00" * 100 + b"PAR1"])
def test_what_is_no_parquet_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(content)
    assert "is not a whole Parquet file" in refusal(str(path))


def test_damage_behind_the_beginning_is_an_error_too(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    table = pa.table({"age": [i * 7919 % 10_007 for i in range(50_000)], "city": ["a"] * 50_000})
    pa.parquet.write_table(table, path, row_group_size=10_000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2_000] = b"\xff" * 2_000
    path.write_bytes(content)
    values = iter(open_source(str(path), config()))
    assert all("x" in orjson.loads(value) for value in islice(values, 10_000))
    with pytest.raises(SourceError, match="is not a whole Parquet file") as caught:
        list(values)
    assert "\n" not in str(caught.value)
