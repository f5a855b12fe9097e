"""Settings: defaults, the environment, what follows from them, and their fingerprint."""

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from fluxplain.config import Config, DriftSettings
from fluxplain.drift.detectors import ADWIN_DEFAULTS, DetectorSettings
from fluxplain.schemas.methods import Watched
from tests.kit.loading import Load
from tests.kit.support import make_config


def test_only_features_and_model_must_be_set(load: Load) -> None:
    config = load("")
    assert config.features == {"age": "numeric", "city": "categorical"}
    assert config.explain.methods == ["ipfi", "isage", "ipdp"]
    assert config.explain.loss == "cross_entropy"
    assert config.topic("features") == "fluxplain.features"
    assert config.group("model") == "fluxplain.model"
    assert config.alerts.url is None


def test_groups_stand_in_the_place_of_their_first_feature() -> None:
    features = {"lat": "numeric", "lon": "numeric", "age": "numeric", "city": "categorical"}
    groups = {"place": ["lon", "lat"], "who": ["age"]}

    def config(*methods: str) -> Config:
        return make_config(features=features, explain={"groups": groups, "methods": methods})

    both = config("isage", "ipdp")
    assert both.players.names == ("place", "who", "city")
    assert both.players.members == (("lon", "lat"), ("age",), ("city",))
    # iPDP explains single features
    assert both.explained == ["place", "who", "city", "lat", "lon", "age"]
    assert config("isage").explained == ["place", "who", "city"]


def test_a_table_with_one_key_keeps_the_defaults_of_the_others(load: Load) -> None:
    config = load("explain.isage.inner_samples = 7")
    assert config.explain.of("isage").inner_samples == 7
    assert config.explain.of("isage").reservoir_size == 100
    assert config.explain.of("ipfi").inner_samples == 1
    config = load("$EXPLAIN__IPFI__INNER_SAMPLES = 3; $EXPLAIN__ISAGE__INNER_SAMPLES = all")
    assert config.explain.of("ipfi").inner_samples == 3
    assert config.explain.of("isage").inner_samples == "all"


def test_the_environment_goes_before_the_file(load: Load) -> None:
    text = "explain.alpha = 0.5; explain.emit_every = 3"
    assert load(text).explain.alpha == 0.5
    config = load(f"{text}; $EXPLAIN__ALPHA = 0.25; $KAFKA__BOOTSTRAP_SERVERS = broker:9092")
    assert config.explain.alpha == 0.25
    assert config.explain.alphas == [0.25]
    assert config.explain.emit_every == 3
    assert config.kafka.bootstrap_servers == "broker:9092"


def test_smoothing_rates_are_one_or_several(load: Load) -> None:
    one = load("explain.alpha = 0.5")
    assert load("explain.alpha = [0.5]").fingerprint() == one.fingerprint()
    assert load("explain.alpha = [0.5, 1]").explain.alphas == [0.5, 1.0]
    assert load("$EXPLAIN__ALPHA = [0.25, 0.01]").explain.alphas == [0.25, 0.01]


EACH: tuple[Watched, ...] = ("ipfi", "isage", "ipdp", "loss")


def test_a_method_is_watched_as_it_says_and_else_as_all_are(load: Load) -> None:
    config = load(
        "explain.loss = 'zero_one'; drift.signal = 'value'; drift.detector = 'adwin'; "
        "drift.delta = 0.1; "
        "drift.params = {clock = 8}; drift.isage.delta = 0.2; drift.isage.params.max_buckets = 7; "
        "drift.ipdp.signal = 'increment'; drift.ipdp.detector = 'river.drift:PageHinkley'; "
        "drift.loss.detector = 'hddm_a'; drift.loss.params.two_sided_test = true"
    )
    adwin = {**ADWIN_DEFAULTS, "grace_period": 10}
    assert [config.drift.of(method) for method in EACH] == [
        DetectorSettings("value", "adwin", {**adwin, "clock": 8, "delta": 0.1}),
        DetectorSettings("value", "adwin", {**adwin, "max_buckets": 7, "delta": 0.2}),
        DetectorSettings("increment", "page_hinkley", {}),
        DetectorSettings("increment", "hddm_a", {"two_sided_test": True}),
    ]


def test_adwin_has_river_s_delta_unless_one_is_set() -> None:
    def deltas(**drift: Any) -> list[float]:
        settings = map(DriftSettings(detector="adwin", **drift).of, EACH)
        return [each.parameters["delta"] for each in settings if each is not None]

    assert deltas() == [2e-3] * 4
    assert deltas(delta=0.1, ipdp={"delta": 0.2}) == [0.1, 0.1, 0.2, 0.1]


def test_all_detectors_of_a_stream_share_its_false_alarms(load: Load) -> None:
    def share(text: str) -> float:
        settings = load(f"drift.false_alarms = 3; {text}").detector("ipfi")
        assert settings is not None
        return float(settings.parameters["false_alarms"])

    n = len(load("").features)
    series = 4 * n + 2  # with the trends of iPDP, the loss and the errors
    assert share("drift.signal = 'increment'") == 3.0 / series
    assert share("explain.methods = ['ipfi']") == 3.0 / (n + 2)
    assert share("drift.loss.enabled = false") == 3.0 / (series - 2)
    assert share("explain.loss = 'brier'") == 3.0 / (series - 1)


def test_the_loss_is_watched_unless_it_is_switched_off(load: Load) -> None:
    assert load("").drift.of("loss") is not None
    drift = load("$DRIFT__LOSS__ENABLED = false").drift
    assert drift.of("loss") is None
    assert drift.of("ipfi") is not None


def test_settings_are_frozen_and_survive_pickling() -> None:
    config = make_config()
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    "settings",
    [
        {"checkpoint": {"interval_s": 1.0}},
        {"dashboard": {"port": 1234}},
        {"topics": {"replication": 3}},
        {"model": {"shards": 2}},
        {"alerts": {"url": "https://hooks.example/", "quiet_s": 1.0}},
        {"registry": {"url": "https://registry.example:8081/path", "output": "avro"}},
        {"kafka": {"security_protocol": "SASL_SSL", "username": "ada", "password": "geheim"}},
        {"drift": {"detector": "river.drift:ADWIN"}},
    ],
)
def test_operation_is_not_in_the_fingerprint(settings: dict[str, Any]) -> None:
    assert make_config(**settings).fingerprint() == make_config().fingerprint()


def test_the_fingerprint_is_of_what_changes_results() -> None:
    others: list[dict[str, Any]] = [
        {"seed": 1},
        {"explain": {"alpha": 0.5}},
        {"drift": {"delta": 0.5}},
        {"features": {"age": "numeric"}},
        {"features": dict(reversed(make_config().features.items()))},
        {"topics": {"prefix": "other."}},
        {"topics": {"partitions": 2}},
        {"model": {"params": {"n_models": 4}}},
        {"explain": {"groups": {"house": ["hvalue", "zipcode"]}}},
        {"explain": {"groups": {"house": ["zipcode", "hvalue"]}}},
    ]
    prints = {frozenset(make_config(**each).fingerprint().items()) for each in [{}, *others]}
    assert len(prints) == len(others) + 1
    same = make_config().on_broker("elsewhere:9092")
    assert same.kafka.bootstrap_servers == "elsewhere:9092"
    assert same.fingerprint() == make_config().fingerprint()


def test_keys_in_the_fingerprint_are_as_they_are_written() -> None:
    def keys(params: Mapping[str, Any]) -> set[str]:
        own = set(make_config(model={"params": params}).fingerprint())
        return {key for key in own if key.startswith("model.params")}

    assert keys({"a": {"b": 1}}) == {"model.params.a.b"}
    assert keys({"a.b": 1}) == {'model.params."a.b"'}
    assert keys({"a": {}}) == {"model.params.a"}
    assert keys({}) == {"model.params"}


def test_what_is_explained_is_found_once_and_changes_no_comparison() -> None:
    """For each of many features it would take long."""
    config, fresh = (make_config(explain={"groups": {"place": ["age", "car"]}}) for _ in range(2))
    assert config.players is config.players
    assert config.explained is config.explained
    for same in (config, pickle.loads(pickle.dumps(config)), config.model_copy()):
        assert same == fresh
        assert same.explained == fresh.explained


@pytest.mark.parametrize(
    "quoted", ['"client.rack" = "a"', 'client.rack = "a"', 'client = {rack = "a"}']
)
def test_keys_of_librdkafka_may_be_nested_and_come_from_the_environment(
    load: Load, monkeypatch: pytest.MonkeyPatch, quoted: str
) -> None:
    text = f'kafka.client = {{{quoted}, "linger.ms" = 2.5, socket.keepalive.enable = true}}'
    expected = {"client.rack": "a", "linger.ms": "2.5", "socket.keepalive.enable": "true"}
    assert load(text).kafka.passed_through() == expected
    monkeypatch.setenv("FLUXPLAIN_KAFKA__CLIENT__CLIENT__RACK", "b")
    assert load(text).kafka.passed_through() == {**expected, "client.rack": "b"}
