"""Runs give what their observations give one by one, bit for bit."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.config import Config
from fluxplain.evaluate import Output
from fluxplain.explain.losses import Target, brier, squared_error
from fluxplain.schemas import BadRecordError, Evaluation
from fluxplain.stages import ExplainerStage, ModelStage, process
from fluxplain.stages.evaluated import Evaluated, evaluations
from tests.fuzz.strategies import FUZZ, SEEDS, strained
from tests.kit.stages import as_arrays, continues, merged
from tests.kit.support import (
    STREAM,
    encoded,
    linear_config,
    make_config,
    messages_of,
    passed_on,
    run_copies,
)

CLASSES: dict[str, list[Any] | None] = {
    "number": None,
    "string": ["x", "y", "z"],
    "boolean": [False, True],
    "integer": [1, 0],
}
LOSSES = {
    "number": ["squared_error", "absolute_error", "zero_one", f"{__name__}:own_loss"],
    "classes": ["cross_entropy", "brier", "zero_one", f"{__name__}:own_loss"],
}


def own_loss(y: Target, output: Output) -> float:
    """A user's, which has no compiled form."""
    return brier(y, output) if isinstance(output, dict) else squared_error(y, output)


def config_of(label: str, loss: str, emit_every: int) -> Config:
    return linear_config(
        label={"type": label},
        explain={"loss": loss, "emit_every": emit_every, "alpha": [0.1, 0.02], "ipdp": {"ice": 2}},
    )


def number(rng: random.Random) -> float:
    return rng.choice([rng.random(), rng.random(), rng.gauss(0.0, 1e3), 0.0, 1.0, -0.0, 1e-16])


def observations(
    rng: random.Random, label: str, feature: str, n: int, odd: str = ""
) -> list[Evaluation]:
    """Return runs of one as a model writes them: warm-up, labels missing or unseen, new classes.

    ``odd`` is what it would never write, from the middle on, in each alike.
    """
    known, before = CLASSES[label], None
    classes = known and known[:1]
    grown = rng.randint(0, n // 2)
    m, points = rng.randint(1, 3), rng.randint(1, 4)
    warm = {method: rng.randint(0, n // 2) for method in ("ipfi", "isage", "ipdp")}

    def row() -> Any:
        return number(rng) if classes is None else [number(rng) for _ in classes]

    made = []
    for seq in range(n):
        classes = known if seq >= grown else classes
        is_odd = odd if seq >= n // 2 else ""
        if is_odd == "kind":
            classes = ["x", "y"] if known is None else None
        if is_odd == "twice" and known:
            classes = [known[0], *known]
        if seq == n // 2 and odd == "size":
            points += 1
        y = number(rng) if classes is None else rng.choice([*classes, classes[0]])
        if label in {"string", "integer"} and rng.random() < 0.05:
            y = "unseen" if label == "string" else 7
        if rng.random() < 0.1:
            y = None
        is_asked = {method: seq >= first for method, first in warm.items()}
        is_known = y is not None or is_odd == "label"
        grid: list[Any] = [number(rng) for _ in range(points)]
        if is_odd == "point":
            grid = [point > 0.5 for point in grid]
        if is_odd == "far":
            grid[-1] = 1e151
        made.append(
            Evaluation(
                stream=STREAM,
                feature=feature,
                previous_seq=before,
                seqs=[seq],
                ts=[rng.choice([None, seq])],
                y=[y],
                loss=[None if y is None else rng.random()],
                classes=classes,
                prediction=[row()],
                coverage=[rng.random()],
                skipped=[rng.randrange(9)],
                outputs={
                    "ipfi": [[row() for _ in range(m)] if is_known and is_asked["ipfi"] else None],
                    "isage": [[row(), row()] if is_known and is_asked["isage"] else None],
                    "ipdp": [[row() for _ in range(points)] if is_asked["ipdp"] else None],
                },
                points={"ipdp": [grid if is_asked["ipdp"] else None]},
            )
        )
        before = seq
    return made


def hostile(rng: random.Random, singles: list[Evaluation], share: float) -> list[Evaluation]:
    """Spoil some observations, in ways that decode, and lose some."""
    spoiled = []
    for each in singles:
        if rng.random() >= share:
            spoiled.append(each)
        elif rng.random() < 0.9:
            try:
                bad = Evaluation.decode(spoil(rng, each))
            except BadRecordError:
                continue
            # not another stream, and not in another order
            same: dict[str, Any] = {"seqs": each.seqs, "previous_seq": each.previous_seq}
            spoiled.append(replace(bad, stream=STREAM, feature=each.feature, ts=each.ts, **same))
    return spoiled


def spoil(rng: random.Random, each: Evaluation) -> bytes:
    """Return an observation with strange values, or with lists of another length."""
    if rng.random() < 0.5:
        return strained(rng, [orjson.loads(each.encode())])
    fields = orjson.loads(each.encode())
    holder, key = fields, rng.choice(["outputs", "points", "prediction"])
    while isinstance(holder[key], dict) or (
        isinstance(holder[key], list) and holder[key] and rng.random() < 0.8
    ):
        holder = holder[key]
        key = rng.choice([*holder] if isinstance(holder, dict) else range(len(holder)))
    if isinstance(holder[key], list):
        holder[key] = rng.choice([[], holder[key][1:], holder[key] * 2, [None], 0.5])
    else:
        holder[key] = rng.choice([None, [], [0.5], 1, True, "a", 1e200, 2**63])
    return orjson.dumps(fields)


def cut(rng: random.Random, singles: Sequence[Evaluation], mean: int) -> list[Evaluation]:
    """Return runs of these, some of which come again, or overlap with the one before."""
    made: list[Evaluation] = []
    start = 0
    while start < len(singles):
        end = start + 1
        while (
            end < len(singles)
            and continues(singles[end], singles[end - 1])
            and rng.random() > 1 / mean
        ):
            end += 1
        made.append(merged(singles[start:end]))
        again = rng.randint(1, 5) if rng.random() < 0.2 else 0
        start = max(start + 1, end - again)
        while start < end and not continues(singles[start], singles[start - 1]):
            start += 1
    return made


@pytest.mark.slow
@FUZZ
@given(
    SEEDS,
    st.sampled_from(sorted(CLASSES)),
    st.integers(0, 3),
    st.sampled_from(["a", "a", "c"]),  # the third is categorical
    st.sampled_from([0.0, 0.0, 0.02, 0.2]),
    st.integers(1, 12) | st.just(17_304),  # which leaves hardly any room for a curve
    st.sampled_from(["", "", "kind", "twice", "size", "label", "point", "far"]),
)
def test_the_bytes_are_the_same_wherever_the_stream_is_cut(
    seed: int, label: str, loss: int, feature: str, share: float, emit_every: int, odd: str
) -> None:
    rng = random.Random(seed)
    names = LOSSES["number" if label == "number" else "classes"]
    config = config_of(label, names[loss], emit_every)
    singles = hostile(rng, observations(rng, label, feature, 60, odd), share)
    cuts = passed_on(cut(rng, singles, mean=rng.choice([3, 20, 60])))
    runs = [ExplainerStage(config).decode(each)[1] for each in cuts]
    alone = passed_on([each.single(i) for each in runs for i in range(len(each.seqs))])
    expected = encoded(run_copies(ExplainerStage(config), alone))
    assert encoded(run_copies(ExplainerStage(config), cuts)) == expected
    packed = [replace(m, value=as_arrays(r).packed()) for m, r in zip(cuts, runs, strict=True)]
    assert encoded(run_copies(ExplainerStage(config), packed)) == expected


def test_a_model_that_knows_no_class_yet_is_no_error() -> None:
    """Its outputs have no numbers: its first observations come after a new model took over."""
    explain = {"methods": ["ipfi", "isage", "ipdp"]}
    config = linear_config(label={"type": "integer"}, explain={**explain, "loss": "brier"})
    outputs: dict[Any, Any] = {"ipfi": [[[]]], "isage": [[[], []]], "ipdp": [[[], []]]}
    columns: dict[str, Any] = {"seqs": [0], "ts": [None], "y": [1], "loss": [1.0]}
    run = Evaluation(
        stream=STREAM,
        feature=config.explained[0],
        previous_seq=None,
        classes=[],
        prediction=[[]],
        skipped=[0],
        outputs=outputs,
        points={"ipdp": [[0.0, 1.0]]},
        coverage=[1.0],
        **columns,
    )
    letters = run_copies(ExplainerStage(config), passed_on([run]))
    assert [getattr(each, "reason", each) for each in letters] == []


def test_several_observations_before_the_first_class_are_one_run() -> None:
    model = {"factory": "river.naive_bayes:GaussianNB", "params": {}}
    features = {"a": "numeric", "b": "numeric"}
    settings: dict[str, Any] = {"label": {"type": "integer"}, "explain": {"loss": "brier"}}
    config = make_config(features=features, model=model, **settings)
    stage = ModelStage(config, STREAM)
    unlabelled = messages_of({"x": {"a": i % 7, "b": i % 3}} for i in range(150))
    published = [record for each in unlabelled for record in process(stage, each)]
    answers = [record for record in published if isinstance(record, Evaluated)][-6:]
    assert all(each.answers["ipdp"].labels == () for each in answers)
    for run in evaluations(answers):
        assert len(run.seqs) == len(answers)
        assert Evaluation.decode(run.packed()).encode() == run.encode()
