"""Settings that a stream has of its own: as if all had them; wrong ones named with their stream."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import Config, ConfigError, check_references, load_config
from pipeline.overrides import SHARED, TABLES
from tests.support import PROPERTY, make_config

BEGINNING = """
[features]
age = "numeric"
city = "categorical"

[label]
type = "integer"

[model]
factory = "river.forest:ARFClassifier"
params = {n_models = 5, max_depth = 4}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(folder: Path, text: str) -> Config:
    path = folder / "fluxplain.toml"
    path.write_text(BEGINNING + text, encoding="utf-8")
    return load_config(path)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as error:
        load(folder, text)
    return str(error.value)


OWN = st.fixed_dictionaries(
    {},
    optional={
        "missing": st.sampled_from([{"policy": "skip"}, {"features": {"age": "impute"}}]),
        "label": st.sampled_from([{"wait": 5}, {"wait_s": 3.5, "unlabelled": "dead-letter"}]),
        "model": st.sampled_from([{"params": {"n_models": 1}}, {"evaluator": "generic"}]),
        "explain": st.sampled_from([{"alpha": 0.5}, {"methods": ["isage"], "emit_every": 1}]),
        "drift": st.sampled_from([{"delta": 0.1}, {"ipdp": {"enabled": False}}]),
    },
)


@PROPERTY
@given(OWN)
def test_a_stream_has_the_settings_that_all_would_have(own: dict[str, Any]) -> None:
    config = make_config(streams={3: own})
    everywhere = make_config(**own)
    assert config.of_stream(3).model_dump() == everywhere.model_dump()
    assert config.of_stream(2) is config
    assert config.explain == make_config().explain
    assert list(config.own_streams) == ["fluxplain.features-3"]


def test_tables_within_tables_are_put_together(folder: Path) -> None:
    config = load(
        folder,
        "[explain.ipfi]\nreservoir_size = 50\n"
        "[streams.1.explain.ipfi]\nsampler = 'window'\n"
        "[streams.1.model.params]\nn_models = 3\n"
        "[streams.2.label]\nwait = 7\n",
    )
    own = config.of_stream(1)
    assert own.explain.ipfi.model_dump() == {
        **config.explain.ipfi.model_dump(),
        "reservoir_size": 50,
        "sampler": "window",
    }
    assert own.explain.isage == config.explain.isage
    assert own.model.params == {"n_models": 3, "max_depth": 4}
    assert [config.of_stream(each).label.wait for each in (0, 1, 2)] == [10_000, 10_000, 7]
    assert config.of_stream(1).of_stream(1) == own


def test_another_factory_or_detector_begins_without_what_was_said_of_the_common_one(
    folder: Path,
) -> None:
    config = load(
        folder,
        "evaluator = 'hoeffding'\n"
        "[drift]\ndelta = 0.01\nparams = {clock = 8}\n"
        "[streams.1.model]\nfactory = 'river.naive_bayes:GaussianNB'\n"
        "[streams.1.drift]\ndetector = 'page_hinkley'\n",
    )
    own = config.of_stream(1)
    assert (own.model.params, own.model.evaluator) == ({}, "auto")
    assert (own.drift.params, own.drift.delta) == ({}, None)


WRONG = {
    "[streams.3.explain]\nalpha = 5": ["streams.3.explain.alpha is 5", "above 0 and at most 1"],
    "[streams.3.explain]\nalhpa = 1": ["streams.3.explain.alhpa", "did you mean alpha?"],
    "[streams.3.explain]\nipfi = 5": ["streams.3.explain.ipfi is 5"],
    "[streams.3.explain.ipfi]\nwarm_up = 500": ["streams.3.explain.ipfi.warm_up is 500", "100"],
    "[streams.3.explain]\nloss = 'hinge'": ["streams.3.explain.loss is 'hinge'", "brier"],
    "[streams.3.drift.loss]\ndetector = 'ddm'": ["streams.3.drift.loss.detector", "'zero_one'"],
    "[streams.3.missing.values]\nage = 3": ["streams.3.missing.values.age is 3", "'impute'"],
    "[streams.3.model]\nfactory = 'no.such:Model'": ["streams.3.model.factory", "cannot import"],
    "[streams.3.model.params]\ntrees = 3": ["streams.3.model.factory", "'trees': 3"],
    "[streams.3.model]\nfactory = 'river.linear_model:LinearRegression'": [
        "streams.3.model.factory",
        "gives a regressor, but label.type is 'integer'",
    ],
    "[streams.3.kafka]\nusername = 'me'": ["streams.3.kafka", "allowed here", *TABLES],
    "[streams.3]\nfeatures = {age = 'numeric'}": ["streams.3.features", "allowed here"],
    "[streams.3]\nseed = 3": ["streams.3.seed is 3"],
    "[streams.three.drift]\ndelta = 0.1": ["streams.three", "number of a partition"],
    "[streams.03.drift]\ndelta = 0.1": ["streams.03", "number of a partition"],
    "[streams.10000.drift]\ndelta = 0.1": ["streams.10000", "9999"],
    "[streams]\n3 = 5": ["streams.3 is 5"],
    # each name has its partition of evaluations
    "[explain]\nmethods = ['ipfi']\n[explain.groups]\nwho = ['age']\n"
    "[streams.3.explain]\nmethods = ['ipfi', 'ipdp']": [
        "streams.3.explain.methods and explain.features explain age, but must explain only what",
        "who, city",
    ],
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_setting_is_named_with_its_stream(folder: Path, text: str) -> None:
    reason = refused(folder, text)
    assert all(part in reason for part in WRONG[text]), reason
    assert reason.count("\n") == 0


@pytest.mark.parametrize("key", SHARED)
def test_what_streams_share_cannot_differ(folder: Path, key: str) -> None:
    *table, name = key.split(".")
    reason = refused(folder, f"[{'.'.join(['streams', '3', *table])}]\n{name} = 1\n")
    assert reason.startswith(f"streams.3.{key} must be the same for all streams")


def test_every_wrong_setting_of_every_stream_has_a_line(folder: Path) -> None:
    text = "[streams.1.explain]\nalpha = 5\nemit_every = 0\n[streams.2.kafka]\nusername = 'me'\n"
    keys = [line.split()[0] for line in refused(folder, text).splitlines()]
    assert keys == ["streams.1.explain.alpha", "streams.1.explain.emit_every", "streams.2.kafka"]


def test_the_environment_goes_before_the_file_and_a_stream_before_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[streams.1.explain]\nalpha = 0.1\nemit_every = 3\n"
    monkeypatch.setenv("FLUXPLAIN_EXPLAIN__ALPHA", "0.5")
    monkeypatch.setenv("FLUXPLAIN_STREAMS__1__EXPLAIN__EMIT_EVERY", "7")
    monkeypatch.setenv("FLUXPLAIN_STREAMS__2__EXPLAIN__METHODS", '["ipfi"]')
    monkeypatch.setenv("FLUXPLAIN_STREAMS__2__MODEL__PARAMS__N_MODELS", "2")
    config = load(folder, text)
    assert config.of_stream(0).explain.alphas == config.of_stream(2).explain.alphas == [0.5]
    assert config.of_stream(1).explain.alphas == [0.1]
    assert config.of_stream(1).explain.emit_every == 7
    assert config.of_stream(2).explain.methods == ["ipfi"]
    assert config.of_stream(2).model.params["n_models"] == 2


def test_the_environment_is_validated_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXPLAIN_STREAMS__1__KAFKA__PASSWORD", "geheim")
    reason = refused(folder, "")
    assert reason.startswith("streams.1.kafka cannot be set for one stream")
    assert "geheim" not in reason


def test_the_fingerprint_is_of_what_streams_have_of_their_own() -> None:
    def fingerprint(streams: Mapping[int, Any]) -> frozenset[tuple[str, str]]:
        return frozenset(make_config(streams=streams).fingerprint().items())

    plain, common = make_config(), fingerprint({})
    same: list[Mapping[int, Any]] = [
        {},
        {3: {}},
        {3: {"explain": {"alpha": plain.explain.alpha}}},
        {3: {"model": {"params": plain.model.params}}},
    ]
    assert {fingerprint(each) for each in same} == {common}
    own = {"explain": {"alpha": 0.5}}, {"drift": {"delta": 0.5}}
    others = [{1: own[0]}, {2: own[0]}, {1: own[1]}, {1: own[0], 2: own[1]}]
    assert len({common, *map(fingerprint, others)}) == len(others) + 1
    assert fingerprint({2: own[1], 1: own[0]}) == fingerprint(others[-1])
    assert {key for key, _ in fingerprint(others[-1]) - common} == {
        "streams.1.explain.alpha",
        "streams.2.drift.delta",
    }


def test_what_streams_refer_to_is_checked_by_those_who_use_it() -> None:
    own = {"explain": {"loss": "hinge"}}, {"model": {"factory": "no.such:Model"}}
    for each, users in zip(own, ({None, "model", "explainer"}, {None, "model"}), strict=True):
        config = make_config(streams={2: each})
        for role in (None, "join", "model", "explainer", "drift", "reader"):
            if role in users:
                with pytest.raises(
                    ConfigError, match=r"^streams\.2\.(explain\.loss|model\.factory)"
                ):
                    check_references(config, role)
            else:
                check_references(config, role)


def test_settings_of_a_stream_are_on_the_same_broker_and_survive_pickling() -> None:
    config = make_config(streams={1: {"drift": {"delta": 0.5}}}).on_broker("elsewhere:9092")
    own = config.of_stream(1)
    assert own.kafka.bootstrap_servers == "elsewhere:9092"
    assert pickle.loads(pickle.dumps(own)) == own
