"""A stream's own settings: as if all streams had them."""

import pickle
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.loading import Load
from tests.kit.support import PROPERTY, make_config

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


def test_tables_within_tables_are_put_together(load: Load) -> None:
    config = load(
        "model.factory = 'river.forest:ARFClassifier'; model.params = {n_models = 5, max_depth = 4}"
        "; explain.ipfi.reservoir_size = 50; streams.1.explain.ipfi.sampler = 'window'; "
        "streams.1.model.params.n_models = 3; streams.2.label.wait = 7"
    )
    own = config.of_stream(1)
    assert own.explain.of("ipfi").model_dump() == {
        **config.explain.of("ipfi").model_dump(),
        "reservoir_size": 50,
        "sampler": "window",
    }
    assert own.explain.of("isage") == config.explain.of("isage")
    assert own.model.params == {"n_models": 3, "max_depth": 4}
    assert [config.of_stream(each).label.wait for each in (0, 1, 2)] == [10_000, 10_000, 7]
    assert config.of_stream(1).of_stream(1) == own


def test_another_factory_or_detector_begins_without_what_was_said_of_the_common_one(
    load: Load,
) -> None:
    own = load(
        "model.factory = 'river.forest:ARFClassifier'; model.params.n_models = 5; "
        "model.evaluator = 'hoeffding'; drift.detector = 'adwin'; drift.delta = 0.01; "
        "drift.params = {clock = 8}; "
        "streams.1.model.factory = 'river.naive_bayes:GaussianNB'; "
        "streams.1.drift.detector = 'page_hinkley'"
    ).of_stream(1)
    assert (own.model.params, own.model.evaluator) == ({}, "auto")
    assert (own.drift.params, own.drift.delta) == ({}, None)


def test_the_environment_goes_before_the_file_and_a_stream_before_both(load: Load) -> None:
    config = load(
        "streams.1.explain.alpha = 0.1; streams.1.explain.emit_every = 3; "
        "$EXPLAIN__ALPHA = 0.5; $STREAMS__1__EXPLAIN__EMIT_EVERY = 7; "
        '$STREAMS__2__EXPLAIN__METHODS = ["ipfi"]; $STREAMS__2__EXPLAIN__IPFI__INNER_SAMPLES = 2'
    )
    assert config.of_stream(0).explain.alphas == config.of_stream(2).explain.alphas == [0.5]
    assert config.of_stream(1).explain.alphas == [0.1]
    assert config.of_stream(1).explain.emit_every == 7
    assert config.of_stream(2).explain.methods == ["ipfi"]
    assert config.of_stream(2).explain.of("ipfi").inner_samples == 2


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


def test_settings_of_a_stream_are_on_the_same_broker_and_survive_pickling() -> None:
    config = make_config(streams={1: {"drift": {"delta": 0.5}}}).on_broker("elsewhere:9092")
    own = config.of_stream(1)
    assert own.kafka.bootstrap_servers == "elsewhere:9092"
    assert pickle.loads(pickle.dumps(own)) == own
