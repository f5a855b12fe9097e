"""Explanations start from what others have learned."""

import pickle
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.config import Config, ConfigError, check_references
from fluxplain.models.warm_start import written
from fluxplain.schemas import Evaluation, Explanation
from fluxplain.stages import ExplainerStage, ModelStage
from tests.kit import support as kit
from tests.kit.stages import explanations, modelled

VALUES = [orjson.dumps(record) for record in kit.linear_records(120)]
EACH = {"emit_every": 1}


def kept(folder: Path, config: Config, values: Sequence[bytes]) -> dict[str, Any]:
    """Return the settings of a start with what was learned of these observations."""
    shards = [ModelStage(config, kit.STREAM, replica) for replica in config.replicas("model")]
    published = [record for shard in shards for record in kit.run(shard, kit.messages_of(values))]
    explainer = ExplainerStage(config)
    kit.run(explainer, kit.passed_on(kit.of_kind(published, Evaluation)))
    learned = {
        "samples": [shard.samples for shard in shards],
        "estimates": explainer.estimates(kit.STREAM),
    }
    model, explanations = folder / "model.pickle", folder / "explanations.state"
    model.write_bytes(pickle.dumps(shards[0].model))
    explanations.write_bytes(written(learned, config.learning()))
    return {"model": {"factory": None, "file": str(model)}, "explain": {"file": str(explanations)}}


@pytest.mark.slow
@kit.SLOW_PROPERTY
@given(
    cut=st.integers(20, 100),
    settings=st.sampled_from(
        [
            {},
            {"ipfi": {"reservoir_size": 5, "sampler": "uniform", "imputer": "product"}},
            {"isage": {"reservoir_size": 5, "imputer": "observational"}},
            {"alpha": [0.05, 0.2], "groups": {"both": ["a", "c"]}},
            {"every": 3},
            {"ipdp": {"storage_size": 5, "grid_size": 3, "pairs": [["a", "c"]], "ice": 2}},
        ]
    ),
)
def test_explanations_continue_as_if_they_had_never_stopped(
    tmp_path_factory: pytest.TempPathFactory, cut: int, settings: Mapping[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    config = kit.linear_config(explain={**EACH, **settings})
    start = kept(folder, config, VALUES[:cut])
    warm = kit.linear_config(model=start["model"], explain={**EACH, **settings, **start["explain"]})
    check_references(warm)
    whole = [each for each in explanations(config, VALUES) if each.seq >= cut]
    went_on = explanations(warm, VALUES[cut:])
    assert went_on
    of = [(e.feature, e.method, e.alpha, e.seq, *learned(e)) for e in whole]
    assert [(e.feature, e.method, e.alpha, e.seq + cut, *learned(e)) for e in went_on] == of


def learned(record: Explanation) -> tuple[Any, ...]:
    """Return what rests on all observations so far."""
    told = (record.value, record.std_error, record.updates, record.increments, record.coverage)
    return (*told, record.grid, record.effect, record.second_grid)


def test_however_the_model_is_shared_among_workers(tmp_path: Path) -> None:
    start = kept(tmp_path, kit.linear_config(model={"shards": 2}, explain=EACH), VALUES[:60])
    assert len(kit.linear_config(model={"shards": 2}).replicas("model")) == 2
    published = []
    for shards in (1, 3):
        config = kit.linear_config(
            model={**start["model"], "shards": shards}, explain={**EACH, **start["explain"]}
        )
        records = chain(*(modelled(config, VALUES[60:], each) for each in config.replicas("model")))
        published.append(sorted(kit.encoded(kit.of_kind(records, Evaluation))))
    assert published[0]
    assert published[0] == published[1]


def test_with_features_that_are_not_asked_of_by_isage_shared_otherwise(tmp_path: Path) -> None:
    own = {"features": {"a": ["ipdp"], "b": ["ipfi"], "c": ["isage"]}, **EACH}
    start = kept(tmp_path, kit.linear_config(model={"shards": 3}, explain=own), VALUES[:60])
    warm = kit.linear_config(model=start["model"], explain={**own, **start["explain"]})
    whole = [
        each for each in explanations(kit.linear_config(explain=own), VALUES) if each.seq >= 60
    ]
    assert [learned(e) for e in explanations(warm, VALUES[60:])] == [learned(e) for e in whole]


def test_a_feature_of_which_nothing_was_known_begins(tmp_path: Path) -> None:
    of_two = kit.linear_config(explain={**EACH, "features": {"a": ["ipdp"]}})
    start = kept(tmp_path, of_two, VALUES[:60])
    warm = kit.linear_config(model=start["model"], explain={**EACH, **start["explain"]})
    records = [e for e in explanations(warm, VALUES[60:]) if e.method == "ipfi"]
    first = {name: next(e for e in records if e.feature == name) for name in ("a", "b")}
    assert first["a"].updates == 1
    assert first["b"].updates > 50


def test_each_stream_starts_with_it_and_with_it_again_after_a_cold_start(tmp_path: Path) -> None:
    start = kept(tmp_path, kit.linear_config(explain=EACH), VALUES[:60])
    warm = kit.linear_config(model=start["model"], explain={**EACH, **start["explain"]})
    evaluations = kit.of_kind(modelled(warm, VALUES[60:]), Evaluation)
    explainer = ExplainerStage(warm)
    first = kit.of_kind(kit.run(explainer, kit.passed_on(evaluations)), Explanation)
    # the checkpoints are lost, and older observations deleted: later seqs, but from the beginning
    later = [kit.message(t + 1000, value) for t, value in enumerate(VALUES[60:])]
    anew = kit.of_kind(kit.run(ModelStage(warm, kit.STREAM), later), Evaluation)
    again = kit.of_kind(kit.run(explainer, kit.passed_on(anew)), Explanation)
    assert [learned(each) for each in again] == [learned(each) for each in first]


def test_what_is_in_the_file_is_in_the_fingerprint(tmp_path: Path) -> None:
    prints, key = set[str](), "explain.file"
    for n in (50, 50, 51):
        folder = tmp_path / str(len(prints))
        folder.mkdir(exist_ok=True)
        start = kept(folder, kit.linear_config(), VALUES[:n])
        prints.add(kit.linear_config(explain=start["explain"]).fingerprint()[key])
    assert len(prints) == 2
    assert kit.linear_config().fingerprint()[key] not in prints


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"explain": {"alpha": 0.02}},
            "was written with explain.alpha = 0.05, but here it is 0.02: it must be the same",
        ),
        (
            {"features": {"a": "numeric", "b": "numeric"}},
            'was written with features = [["a", "numeric"], ["b", "numeric"], ["c", '
            '"categorical"]], but here it is [["a", "numeric"], ["b", "numeric"]]',
        ),
        (
            {"missing": {"features": {"a": "skip"}}},
            'was written with missing.features.a = null, but here it is "skip"',
        ),
    ],
)
def test_what_was_learned_otherwise_is_refused(
    tmp_path: Path, settings: dict[str, Any], reason: str
) -> None:
    start = kept(tmp_path, kit.linear_config(), VALUES[:60])
    explain = {**settings.pop("explain", {}), **start["explain"]}
    config = kit.linear_config(explain=explain, **settings)
    for role in ("model", "explainer", None):
        with pytest.raises(ConfigError) as told:
            check_references(config, role)
        assert reason in str(told.value)
        assert str(told.value).startswith("explain.file = ")


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    path = Path(kept(tmp_path, kit.linear_config(), VALUES[:60])["explain"]["file"])
    config = kit.linear_config(explain={"file": str(path)})
    whole = path.read_bytes()
    head, _, state = whole.partition(b"\n")
    older = orjson.dumps({**orjson.loads(head), "fluxplain": "0.0.1"})
    for data, reason in {
        b"": "is not a file of `fluxplain model export --explanations`",
        pickle.dumps([1]): "is not a file of",
        b"[1]\n": "is not a file of",
        b"{}\n": "is not a file of",
        orjson.dumps({**orjson.loads(head), "settings": None}) + b"\n" + state: "is not a file of",
        whole[:-1]: "is incomplete, or was changed after it was written",
        older + b"\n" + state: "has fluxplain '0.0.1', but this is",
    }.items():
        path.write_bytes(data)
        with pytest.raises(ConfigError) as told:
            check_references(config, "explainer")
        assert reason in str(told.value)
    path.unlink()
    with pytest.raises(ConfigError, match=r"cannot be read: No such file"):
        check_references(config, "explainer")
