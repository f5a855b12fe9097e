"""What was published equals what is read back from an exported file, exactly."""

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxplain.results import duplicates as seen
from fluxplain.results import export_file as module
from fluxplain.results.columns import columns_of, from_text, restored, restored_ice, schema_of
from fluxplain.results.duplicates import Duplicates
from fluxplain.results.export_file import Tally, export
from fluxplain.results.selection import Selection
from fluxplain.schemas import OUTPUTS, Change, DeadLetter, Explanation, Prediction, Record
from fluxplain.schemas.change import Curve
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.methods import Method
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import Label, Value
from tests.kit.any_records import FLOATS, SEQS, any_record, anything
from tests.kit.records import STREAM, explanation, letter, prediction, reasons
from tests.kit.support import PROPERTY

EVERYTHING = Selection()


@st.composite
def curves(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a curve or surface, with classes or without."""
    classes, second_grid = draw(anything(list[Label] | None)), draw(anything(list[Value] | None))
    effect: Any = st.lists(FLOATS, max_size=3)
    for is_there in (second_grid is not None, classes is not None):
        effect = st.lists(effect, max_size=3) if is_there else effect
    grid = draw(anything(list[Value] | list[float]))
    return {"grid": grid, "effect": draw(effect), "classes": classes, "second_grid": second_grid}


@st.composite
def errors(draw: st.DrawFn, classes: list[Label] | None) -> Any:
    """Standard errors of an effect with these classes, or without."""
    each: Any = st.lists(st.none() | FLOATS, max_size=3)
    return draw(st.none() | (each if classes is None else st.lists(each, max_size=3)))


@st.composite
def explanations(draw: st.DrawFn) -> Explanation:
    record = draw(
        any_record(Explanation, grid=st.none(), effect=st.none(), effect_std_error=st.none())
    )
    increments = [draw(FLOATS) for _ in record.seqs]
    trends = draw(st.none() | st.just([-v for v in increments]))
    fields_of_curve = draw(st.just({"classes": None, "second_grid": None}) | curves())
    found = draw(errors(fields_of_curve["classes"]))
    n = len(increments)
    values = draw(st.none() | st.lists(anything(Value | None), min_size=n, max_size=n))
    ids = draw(st.none() | st.lists(anything(Id | None), min_size=n, max_size=n))
    columns = {"increments": increments, "trends": trends, "values": values, "ids": ids}
    made: Explanation = replace(record, **columns, effect_std_error=found, **fields_of_curve)
    return made


CURVES = st.builds(lambda seq, rest: Curve(seq=seq, **rest), SEQS, curves())

STRATEGIES: dict[str, st.SearchStrategy[Record]] = {
    "predictions": any_record(Prediction),
    "explanations": explanations(),
    "changes": any_record(Change, curve_before=st.none() | CURVES, curve_after=st.none()),
    "dead letters": any_record(DeadLetter),
}


def written(
    records: list[Record],
    path: Path,
    selection: Selection = EVERYTHING,
    kind: type[Record] | None = None,
) -> Tally:
    values = [(0, record.encode()) for record in records]
    return export(values, kind or type(records[0]), path, selection)


def read_rows(path: Path, kind: type[Record]) -> list[dict[str, Any]]:
    """Return the rows as the columns are, of either format."""
    if path.name.endswith(".parquet"):
        table = pa.parquet.read_table(path)
        assert table.schema.remove_metadata().equals(schema_of(kind, nested=True))
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows
    nested = [c.name for c in columns_of(kind) if pa.types.is_nested(c.type)]
    table = pa.csv.read_csv(
        path,
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=schema_of(kind, nested=False),
            null_values=[""],
            true_values=["true"],
            false_values=["false"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    rows = table.to_pylist()
    for row in rows:
        row.update({name: orjson.loads(row[name]) for name in nested if row[name] is not None})
    return rows


def record_of(kind: type[Any], row: dict[str, Any]) -> Any:
    """Return the record that a row was made of."""
    kept = dict(row)
    for name in {"id", "ts", "prediction", "first_prediction", "y", "category"} & kept.keys():
        if not (kind is Change and name == "id"):
            kept[name] = from_text(kept[name])
    if kept.get("ice") is not None:
        ice = [restored_ice(each, has_classes=True) for each in kept["ice"]]
        kept["ice"] = [Ice(**each) for each in ice]
    for name in ("curve_before", "curve_after"):
        if kept.get(name) is not None:
            kept[name] = Curve(**restored(kept[name]))
    return kind(**restored(kept))


def normal(record: Record) -> bytes:
    """Return a record as JSON, with what a file does not tell apart made the same.

    That is 1 and 1.0 among the points of a grid, and [] and [[]] as the curves of an observation.
    """
    fields = orjson.loads(record.encode())
    ice = fields.get("ice") or []
    changed = [fields[name] for name in ("curve_before", "curve_after") if fields.get(name)]
    for curve in (fields, *ice, *changed):
        for grid in {"grid", "second_grid"} & curve.keys():
            points = curve[grid]
            if points is not None and all(
                type(v) in {int, float} and float(v) == v for v in points
            ):
                curve[grid] = [float(point) for point in points]
    for each in ice:
        if not each["effect"] or not isinstance(each["effect"][0], list):
            each["effect"] = [each["effect"]]
    return orjson.dumps(fields)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_what_was_published_is_read_back_exactly(
    strategy: st.SearchStrategy[Record], ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"records{ending}"

    @settings(PROPERTY, max_examples=25)
    @given(st.lists(strategy, min_size=1, max_size=6))
    def check(records: list[Record]) -> None:
        decoded = [type(record).decode(record.encode()) for record in records]
        duplicates = Duplicates()
        expected = [record for record in decoded if duplicates.is_new(record, 0)]
        assert written(records, path).written == len(expected)
        rows = read_rows(path, type(records[0]))
        back = [record_of(type(records[0]), row) for row in rows]
        assert [normal(each) for each in back] == [normal(each) for each in expected]

    check()


def test_every_field_of_a_record_has_a_column() -> None:
    for kind in OUTPUTS.values():
        names = [column.name for column in columns_of(kind)]
        assert {field.name for field in fields(kind)} <= set(names)
        assert len(names) == len(set(names))


def test_pandas_reads_what_is_needed_most(tmp_path: Path) -> None:
    records: list[Record] = [explanation("age", seq, seq / 3) for seq in range(10, 40, 10)]
    for ending in (".parquet", ".csv"):
        written(records, tmp_path / f"e{ending}")
    frame = pd.read_parquet(tmp_path / "e.parquet")
    table = pd.read_csv(tmp_path / "e.csv")
    for each in (frame, table):
        assert each["value"].tolist() == [10 / 3, 20 / 3, 10.0]
        assert each["seq"].tolist() == [10, 20, 30]
        assert set(each["feature"]) == {"age"}
    assert frame["increments"].map(list).tolist() == [[10 / 3], [20 / 3], [10.0]]
    assert table["increments"].map(json.loads).tolist() == [[10 / 3], [20 / 3], [10.0]]


def test_a_compressed_file_is_the_same_and_says_nothing_of_when(tmp_path: Path) -> None:
    records: list[Record] = [prediction(seq) for seq in range(5)]
    for name in ("a.csv", "a.csv.gz", "b.csv.gz"):
        written(records, tmp_path / name)
    plain = (tmp_path / "a.csv").read_bytes()
    zipped = [(tmp_path / f"{name}.csv.gz").read_bytes() for name in "ab"]
    assert gzip.decompress(zipped[0]) == plain
    assert zipped[0] == zipped[1]


def test_only_what_is_chosen_is_written(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    records: list[Record] = [
        explanation(feature, seq, 0.5, method=method, stream=stream)
        for seq in (10, 20, 30)
        for feature in ("a", "b")
        for method in get_args(Method)
        for stream in (STREAM, "features-1")
    ]
    selection = Selection(
        streams=frozenset({STREAM}),
        features=frozenset({"a"}),
        methods=frozenset({"ipfi", "ipdp"}),
        first_seq=20,
        last_seq=30,
    )
    assert written(records, path, selection).written == 4
    rows = read_rows(path, Explanation)
    assert {(row["stream"], row["feature"]) for row in rows} == {(STREAM, "a")}
    assert [(row["seq"], row["method"]) for row in rows] == [
        (20, "ipfi"),
        (20, "ipdp"),
        (30, "ipfi"),
        (30, "ipdp"),
    ]


@pytest.mark.parametrize(("limit", "most", "batches"), [("RECORDS", 3, 4), ("BYTES", 1, 10)])
def test_batches_become_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, batches: int
) -> None:
    monkeypatch.setattr(module, f"BATCH_{limit}", most)
    path = tmp_path / "p.parquet"
    assert written([prediction(seq) for seq in range(10)], path).written == 10
    assert pa.parquet.ParquetFile(path).num_row_groups == batches
    assert [row["seq"] for row in read_rows(path, Prediction)] == list(range(10))


def test_what_is_no_such_record_is_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    good = [explanation("a", seq, 0.5).encode() for seq in (10, 20, 30)]
    too_large = replace(explanation("b", 20, 0.5), seq=2**63).encode()
    no_effect = replace(explanation("c", 20, 0.5), grid=[1.0], effect=[[[1.0]]]).encode()
    messages = [good[0], b"{", None, too_large, good[1], no_effect, prediction(3).encode(), good[2]]
    values = [(0, message) for message in messages]
    tally = export(values, Explanation, path, EVERYTHING)
    assert (tally.written, tally.unusable) == (3, 5)
    assert [row["seq"] for row in read_rows(path, Explanation)] == [10, 20, 30]


@PROPERTY
@given(st.integers(0, 2**32))
def test_each_result_is_taken_once_whatever_was_repeated(seed: int) -> None:
    rng, duplicates = random.Random(seed), Duplicates()
    published: list[tuple[int, int]] = []
    for partition in range(3):
        seqs = [seq for seq in range(60) if seq % 7 % 3 == partition]
        done = 0
        while done < len(seqs):
            # after a crash it goes on from a checkpoint, which is not beyond what was published
            begin = rng.randint(0, done)
            end = rng.randint(begin, len(seqs))
            published += [(partition, seq) for seq in seqs[begin:end]]
            done = max(done, end)
    taken = [place for place in published if duplicates.is_new(prediction(place[1]), place[0])]
    assert sorted(seq for _, seq in taken) == list(range(60))


def test_the_reasons_of_each_label_are_taken_once() -> None:
    duplicates = Duplicates()
    sent = [reasons(seq, label=label) for seq in (3, 5) for label in ("a", "b", "c")]
    # after a crash in the middle of those of an observation
    published = [*sent[:5], *sent[1:], *sent]
    assert [each for each in published if duplicates.is_new(each, 0)] == sent


def test_dead_letters_of_several_workers_are_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MAX_LETTERS", 3)
    duplicates = Duplicates()
    letters = [letter(9), letter(5), replace(letter(5), key="age"), replace(letter(5), key="")]
    assert [duplicates.is_new(each, 0) for each in letters] == [True] * 4
    assert [duplicates.is_new(each, 0) for each in letters[1:]] == [False] * 3
    assert duplicates.is_new(letters[0], 0), "forgotten: rather twice than not at all"


def interrupted(records: list[Record]) -> Iterator[tuple[int, bytes]]:
    yield from ((0, record.encode()) for record in records)
    raise KeyboardInterrupt


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
def test_what_was_interrupted_leaves_what_was_there(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p{ending}"
    written([prediction(0)], path)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        export(interrupted([prediction(seq) for seq in range(9)]), Prediction, path, EVERYTHING)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_without_a_record_there_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    selection = Selection(streams=frozenset({"features-7"}))
    tally = written([prediction(0)], path, selection)
    assert (tally.written, tally.inventory.seqs) == (0, (0, 0))
    assert tally.inventory.names(1) == {"stream": [STREAM]}
    assert not list(tmp_path.iterdir())
