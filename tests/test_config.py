"""Settings: valid by default, and every wrong one named with its value and what is allowed."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from pipeline.config import (
    Asker,
    Config,
    ConfigError,
    DriftSettings,
    check_references,
    load_config,
)
from pipeline.detectors import ADWINParameters, DetectorSettings, PageHinkleyParameters
from pipeline.explain import LOSSES
from pipeline.explain.losses import brier
from pipeline.supervisor import ROLES
from schemas.change import Watched
from tests.support import make_config

SMALLEST = """
[features]
age = "numeric"
city = "categorical"

[model]
factory = "river.naive_bayes:GaussianNB"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no settings in the environment."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(folder: Path, text: str) -> Config:
    path = folder / "fluxplain.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def refused(folder: Path, text: str) -> str:
    """Return why the settings are refused."""
    with pytest.raises(ConfigError) as error:
        load(folder, text)
    return str(error.value)


def test_only_features_and_model_must_be_set(folder: Path) -> None:
    config = load(folder, SMALLEST)
    assert config.features == {"age": "numeric", "city": "categorical"}
    assert config.explain.methods == ["ipfi", "isage", "ipdp"]
    assert config.explain.loss == "cross_entropy"
    watched = [config.drift.of(method) for method in get_args(Watched)]
    assert [each and each.signal for each in watched] == ["increment"] * 4
    assert config.topic("features") == "fluxplain.features"
    assert config.group("model") == "fluxplain.model"


def test_groups_stand_in_the_place_of_their_first_feature(folder: Path) -> None:
    text = SMALLEST.replace("[features]", '[features]\nlat = "numeric"\nlon = "numeric"')
    config = load(folder, text + "[explain.groups]\nplace = ['lon', 'lat']\nwho = ['age']\n")
    assert config.players.names == ("place", "who", "city")
    assert config.players.members == (("lon", "lat"), ("age",), ("city",))
    # iPDP goes on with single features
    assert config.explained == ["place", "who", "city", "lat", "lon", "age"]
    explain = config.explain.model_copy(update={"methods": ["isage"]})
    only = config.model_copy(update={"explain": explain})
    assert only.explained == ["place", "who", "city"]
    explain = config.explain.model_copy(update={"methods": ["ipdp"]})
    only = config.model_copy(update={"explain": explain})
    assert only.explained == ["lat", "lon", "age", "city"]


def test_a_table_with_one_key_keeps_the_defaults_of_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load(folder, SMALLEST + "\n[explain.isage]\ninner_samples = 7\n")
    assert config.explain.isage.inner_samples == 7
    assert config.explain.isage.reservoir_size == 100
    assert config.explain.ipfi.inner_samples == 1
    monkeypatch.setenv("FLUXPLAIN_EXPLAIN__IPFI__INNER_SAMPLES", "3")
    monkeypatch.setenv("FLUXPLAIN_EXPLAIN__ISAGE__INNER_SAMPLES", "all")
    config = load(folder, SMALLEST)
    assert config.explain.ipfi.inner_samples == 3
    assert config.explain.isage.inner_samples == "all"


def test_a_method_is_watched_as_it_says_and_else_as_all_are(folder: Path) -> None:
    config = load(
        folder,
        SMALLEST
        + """
[explain]
loss = "zero_one"

[drift]
signal = "value"
delta = 0.1
params = {clock = 8}

[drift.isage]
delta = 0.2
params = {max_buckets = 7}

[drift.ipdp]
signal = "increment"
detector = "page_hinkley"

[drift.loss]
detector = "hddm_a"
params = {two_sided_test = true}
""",
    )
    grace = {"grace_period": config.drift.grace_period}
    adwin = ADWINParameters().model_dump() | grace
    assert [config.drift.of(method) for method in get_args(Watched)] == [
        DetectorSettings("value", "adwin", {**adwin, "clock": 8, "delta": 0.1}),
        DetectorSettings("value", "adwin", {**adwin, "max_buckets": 7, "delta": 0.2}),
        DetectorSettings("increment", "page_hinkley", PageHinkleyParameters().model_dump()),
        DetectorSettings(
            "increment", "hddm_a", {"drift_confidence": 0.001, "two_sided_test": True}
        ),
    ]


def test_each_method_has_a_delta_of_its_own_unless_it_is_set() -> None:
    def deltas(**drift: Any) -> list[float]:
        settings = map(DriftSettings(**drift).of, get_args(Watched))
        return [each.parameters["delta"] for each in settings if each is not None]

    assert get_args(Watched) == ("ipfi", "isage", "ipdp", "loss")
    assert deltas() == [1e-4, 2e-3, 1e-12, 2e-3]
    assert deltas(ipdp={"signal": "value"}) == [1e-4, 2e-3, 2e-3, 2e-3]
    assert deltas(signal="value") == [2e-3] * 4
    assert deltas(delta=0.1, ipdp={"delta": 0.2}) == [0.1, 0.1, 0.2, 0.1]


def test_the_loss_is_watched_unless_it_is_switched_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load(folder, SMALLEST).drift.of("loss") is not None
    monkeypatch.setenv("FLUXPLAIN_DRIFT__LOSS__ENABLED", "false")
    drift = load(folder, SMALLEST).drift
    assert drift.of("loss") is None
    assert drift.of("ipfi") is not None


WRONG: list[tuple[str, list[str]]] = [
    ("shards = 0", ["model.shards", "0", "greater than or equal to 1"]),
    (
        "shards = 3",
        ["model.shards is 3", "number of features, groups and pairs that are explained, 2"],
    ),
    ("[explain]\nalpha = 0.0", ["explain.alpha is 0.0", "above 0 and at most 1"]),
    ("[explain]\nalpha = 1.5", ["explain.alpha is 1.5", "above 0 and at most 1"]),
    ("[explain]\nalpha = []", ["explain.alpha is []", "a list of such numbers"]),
    ("[explain]\nalpha = [0.1, 2]", ["explain.alpha is [0.1, 2]", "above 0 and at most 1"]),
    ("[explain]\nalpha = [0.1, 0.1]", ["explain.alpha is [0.1, 0.1]", "each once"]),
    ("[explain]\nalpha = [0.1, true]", ["explain.alpha is [0.1, True]", "numbers"]),
    ("[explain]\nalpha = nan", ["explain.alpha", "nan"]),
    ("[explain]\nemit_every = 0", ["explain.emit_every", "0", "greater than or equal to 1"]),
    ("[explain]\nmethods = []", ["explain.methods", "[]", "at least 1"]),
    (
        "[explain]\nmethods = ['shap']",
        ["explain.methods.0", "'shap'", "'ipfi'", "'isage'", "'ipdp'"],
    ),
    ("[explain]\nloss = 'hinge'", ["explain.loss", "'hinge'", *LOSSES]),
    ("[explain.ipfi]\nsampler = 'best'", ["explain.ipfi.sampler", "'geometric'", "'uniform'"]),
    ("[explain.ipfi]\nreservoir_size = 0", ["explain.ipfi.reservoir_size", "0", "equal to 1"]),
    ("[explain.ipfi]\nreservoir_size = 2.5", ["explain.ipfi.reservoir_size", "2.5", "integer"]),
    ("[explain.ipfi]\nwarm_up = 101", ["ipfi.warm_up", "101", "at most", "100"]),
    ("[explain.isage]\nwarm_up = 200", ["isage.warm_up", "200", "at most", "100"]),
    ("[explain.isage]\ninner_samples = -1", ["explain.isage.inner_samples is -1", "1 to 1,000"]),
    ("[explain.ipfi]\ninner_samples = 'some'", ["explain.ipfi.inner_samples is 'some'", "'all'"]),
    ("[explain.isage]\nimputer = 'x'", ["explain.isage.imputer", "'x'", "'observational'"]),
    (
        "[explain.isage]\nimputer = 'product'\ninner_samples = 'all'",
        ["isage.inner_samples is 'all'", "must be a number", "'product'"],
    ),
    (
        "[explain.ipfi]\nimputer = 'observational'\ninner_samples = 'all'",
        ["ipfi.inner_samples is 'all'", "must be a number", "'observational'"],
    ),
    (
        "[explain.ipfi]\nimputer = 'observational'\nsampler = 'window'",
        ["ipfi.sampler is 'window'", "'geometric'", "'observational'"],
    ),
    ("[explain.groups]\nplace = []", ["explain.groups.place is []", "at least 1"]),
    ("[explain.groups]\nplace = 'age'", ["explain.groups.place is 'age'", "list"]),
    ("[explain.groups]\nage = ['city']", ["explain.groups.age has the name of a feature"]),
    (
        "[explain.groups]\nplace = ['age', 'zip']",
        ["explain.groups.place has 'zip'", "features only: age, city"],
    ),
    (
        "[explain.groups]\nplace = ['age', 'city']\nhome = ['city']",
        ["explain.groups.home has 'city'", "explain.groups.place has already"],
    ),
    ("[explain.groups]\nplace = ['age', 'age']", ["explain.groups.place has 'age'", "once"]),
    ("[explain.ipdp]\ngrid_size = 1", ["explain.ipdp.grid_size", "1", "equal to 2"]),
    ("[explain.ipdp]\nwarm_up = 101", ["explain.ipdp.warm_up is 101", "[1, 100]"]),
    (
        "[explain.ipdp]\ngrid = 'range'\nwindow = 20\nwarm_up = 21",
        ["explain.ipdp.warm_up is 21", "[1, 20]"],
    ),
    ("[explain.ipdp]\nice = 1001", ["explain.ipdp.ice is 1001", "equal to 1000"]),
    (
        "[explain.ipdp]\nice = 20\ngrid_size = 500",
        ["explain.ipdp.ice is 20", "at most 19", "grid_size = 500", "message"],
    ),
    (
        "[explain.ipdp]\ngrid_size = 101\npairs = [['age', 'city']]",
        ["explain.ipdp.pairs", "'age|city'", "101 times 100 points", "at most 10,000"],
    ),
    (
        "[explain]\nmethods = ['ipfi']\n[explain.ipdp]\npairs = [['age', 'city']]",
        ["explain.ipdp.pairs", "explain.methods is ['ipfi']"],
    ),
    (
        "[explain]\nmethods = ['ipdp']\n[explain.groups]\nboth = ['age', 'city']",
        ["explain.groups", "explain.methods is ['ipdp']"],
    ),
    (
        "[explain.ipdp]\npairs = [['age', 'ci|ty']]",
        ["explain.ipdp.pairs has ('age', 'ci|ty')", "'|' must be in no name"],
    ),
    (
        "[drift.params]\ngrace_period = 5",
        ["drift.params", "grace_period belongs beside params"],
    ),
    (
        "[explain.ipdp]\npairs = [['age', 'age']]",
        ["explain.ipdp.pairs has ('age', 'age')", "two different features"],
    ),
    (
        "[explain.ipdp]\npairs = [['age', 'city'], ['city', 'age']]",
        ["explain.ipdp.pairs has ('city', 'age') more than once"],
    ),
    (
        "[explain.ipdp]\npairs = [['age', 'town']]",
        ["explain.ipdp.pairs has 'town'", "features only: age, city"],
    ),
    ("[explain.ipdp]\npairs = ['age']", ["explain.ipdp.pairs.0", "'age'"]),
    ("[explain.ipdp]\npairs = [['age']]", ["explain.ipdp.pairs.0.1 is missing"]),
    (
        "[explain.ipdp]\ngrid = 'deciles'",
        ["explain.ipdp.grid is 'deciles'", "'quantile-range'", "'range'", "'quantiles'"],
    ),
    (
        "[explain.ipdp]\nstorage = 'newest'",
        ["explain.ipdp.storage is 'newest'", "'frequency'", "'age-weighted'"],
    ),
    ("[explain.ipdp]\nwindow = 0", ["explain.ipdp.window is 0", "equal to 1"]),
    (
        "[explain.ipdp]\ngrid = 'quantiles'\nwindow = 50",
        ["explain.ipdp.window is 50", "'range'", "'quantiles'"],
    ),
    (
        "[explain.ipdp]\nentrance_probability = 0.0",
        ["explain.ipdp.entrance_probability", "0.0", "greater than 0"],
    ),
    ("[drift]\ndelta = 1.0", ["drift.delta", "1.0", "less than 1"]),
    ("[drift]\nsignal = 'noise'", ["drift.signal", "'noise'", "'increment'", "'value'"]),
    ("[drift]\ngrace_period = 0", ["drift.grace_period", "0", "equal to 1"]),
    ("[drift]\ndetector = 'ddm'", ["drift.detector", "'ddm'", "'adwin'", "'page_hinkley'"]),
    ("[drift.ipfi]\ndetector = 'fhddm'", ["drift.ipfi.detector", "'fhddm'", "'kswin'"]),
    ("[drift.ipdp]\nsignal = 'loss'", ["drift.ipdp.signal", "'loss'", "'increment'"]),
    ("[drift.loss]\nsignal = 'value'", ["drift.loss.signal is not a setting", "detector"]),
    ("[drift.loss]\nenabled = 'perhaps'", ["drift.loss.enabled", "'perhaps'", "boolean"]),
    ("[drift.loss]\ndelta = 2", ["drift.loss.delta", "2", "less than 1"]),
    ("[drift.shap]\ndelta = 0.1", ["drift.shap is not a setting", "ipfi", "loss"]),
    (
        "[drift.loss]\ndetector = 'ddm'",
        ["drift.loss.detector is 'ddm'", "explain.loss must be 'zero_one'", "'cross_entropy'"],
    ),
    ("[drift.params]\nclock = 0", ["drift.params.clock is 0", "equal to 1"]),
    ("[drift.params]\nclock = 'often'", ["drift.params.clock is 'often'", "integer"]),
    ("[drift.params]\nmax_buckets = 1", ["drift.params.max_buckets is 1", "equal to 2"]),
    (
        "[drift.params]\nthreshold = 1",
        ["drift.params.threshold is not a parameter of 'adwin'", "clock, max_buckets"],
    ),
    (
        "[drift.isage]\ndetector = 'kswin'\nparams = {window_size = 50}",
        ["drift.isage.params.stat_size is 30", "at most half of window_size, 50"],
    ),
    (
        "[drift.ipdp]\ndetector = 'kswin'\nparams = {alpha = 1.5}",
        ["drift.ipdp.params.alpha is 1.5", "less than 1"],
    ),
    (
        "[drift.ipdp]\ndetector = 'kswin'\ndelta = 0.1",
        ["drift.ipdp.delta is 0.1", "'adwin'", "'kswin'", "params"],
    ),
    (
        "[drift]\ndetector = 'page_hinkley'\ndelta = 0.01",
        ["drift.delta is 0.01", "'adwin'", "'page_hinkley'", "params"],
    ),
    ("[label]\ntype = 'float'", ["label.type", "'float'", "'boolean'", "'number'"]),
    ("[topics]\nprefix = 'a b'", ["topics.prefix", "'a b'", "pattern"]),
    ("[topics]\npartitions = 0", ["topics.partitions", "0", "equal to 1"]),
    ("[topics]\nfeatures_partitions = 0", ["topics.features_partitions", "0", "equal to 1"]),
    ("[checkpoint]\ninterval_s = 0", ["checkpoint.interval_s", "0", "equal to 0.05"]),
    (
        "[explain]\nalhpa = 0.1",
        ["explain.alhpa is not a setting; did you mean alpha?", "emit_every"],
    ),
    ("[explian]\nalpha = 0.1", ["explian is not a setting", "explain", "drift"]),
    ("[explain.ipfi]\nsize = 3", ["explain.ipfi.size is not a setting", "reservoir_size"]),
]


@pytest.mark.parametrize(("text", "parts"), WRONG, ids=[text for text, _ in WRONG])
def test_a_wrong_setting_is_named_with_its_value_and_what_is_allowed(
    folder: Path, text: str, parts: list[str]
) -> None:
    reason = refused(folder, f"{SMALLEST}\n{text}\n")
    assert all(part in reason for part in parts), reason


def test_a_pair_may_not_be_called_as_a_feature(folder: Path) -> None:
    features = '[features]\na = "numeric"\nb = "numeric"\n"a|b" = "numeric"\n'
    model = SMALLEST.partition("[model]")[2]
    text = f"{features}[model]{model}[explain.ipdp]\npairs = [['a', 'b']]\n"
    reason = refused(folder, text)
    assert "explain.ipdp.pairs has ['a', 'b']" in reason
    assert "'a|b'" in reason


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["features is missing", "model is missing"]),
        ('[features]\na = "number"\n[model]\nfactory = "a:b"', ["features.a", "'categorical'"]),
        ('features = {}\n[model]\nfactory = "a:b"', ["features", "at least 1"]),
        ('[features]\na = "numeric"\n[model]\n', ["model.factory and file are both missing"]),
        (
            '[features]\na = "numeric"\n[model]\nfactory = "river"',
            ["model.factory", "'river'", "module:name"],
        ),
        ("seed = -1\n" + SMALLEST, ["seed", "-1", "equal to 0"]),
        ("seed = ", ["not TOML"]),
    ],
)
def test_what_is_missing_or_no_toml_is_named(folder: Path, text: str, parts: list[str]) -> None:
    reason = refused(folder, text)
    assert all(part in reason for part in parts), reason


def test_every_wrong_setting_has_a_line(folder: Path) -> None:
    reason = refused(folder, SMALLEST + "[explain]\nalpha = 7\n[drift]\ndelta = 7\nx = 1\n")
    lines = reason.splitlines()
    assert len(lines) == 3
    assert {line.split(" is ")[0] for line in lines} == {"explain.alpha", "drift.delta", "drift.x"}


def test_a_secret_is_not_among_the_keys_of_a_file(folder: Path) -> None:
    reason = refused(folder, SMALLEST + "[kafka]\nbootstrap_server = 'a:1'\n")
    assert "did you mean bootstrap_servers?" in reason
    assert "username" in reason
    assert "password_file" in reason
    assert " password," not in reason


def test_a_file_that_cannot_be_read_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere\.toml"):
        load_config(folder / "nowhere.toml")
    path = folder / "binary.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(path)


def test_the_environment_goes_before_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SMALLEST + "[explain]\nalpha = 0.5\nemit_every = 3\n"
    assert load(folder, text).explain.alpha == 0.5
    monkeypatch.setenv("FLUXPLAIN_EXPLAIN__ALPHA", "0.25")
    monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", "broker:9092")
    config = load(folder, text)
    assert config.explain.alpha == 0.25
    assert config.explain.alphas == [0.25]
    assert config.explain.emit_every == 3
    assert config.kafka.bootstrap_servers == "broker:9092"


def test_smoothing_rates_are_one_or_several(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = load(folder, SMALLEST + "[explain]\nalpha = 0.5\n")
    assert load(folder, SMALLEST + "[explain]\nalpha = [0.5]\n").fingerprint() == one.fingerprint()
    assert load(folder, SMALLEST + "[explain]\nalpha = [0.5, 1]\n").explain.alphas == [0.5, 1.0]
    monkeypatch.setenv("FLUXPLAIN_EXPLAIN__ALPHA", "[0.25, 0.01]")
    assert load(folder, SMALLEST).explain.alphas == [0.25, 0.01]


@pytest.mark.parametrize("value", ["2", "much", "", "[0.1, 2]", "[[[", "[NaN]"])
def test_the_environment_is_validated_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("FLUXPLAIN_EXPLAIN__ALPHA", value)
    assert refused(folder, SMALLEST).startswith(f"explain.alpha is {value!r}")


def test_an_unknown_key_in_the_environment_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUXPLAIN_EXPLAIN__ALHPA", "0.5")
    assert "alhpa is not a setting" in refused(folder, SMALLEST)


@pytest.mark.parametrize("loss", ["absolute_error", "squared_error"])
def test_a_regression_loss_is_refused_for_classes(folder: Path, loss: str) -> None:
    reason = refused(folder, f"{SMALLEST}\n[explain]\nloss = '{loss}'\n")
    for part in ("explain.loss", repr(loss), "'boolean'", "cross_entropy, zero_one, brier"):
        assert part in reason


@pytest.mark.parametrize("loss", ["cross_entropy", "zero_one", "brier"])
def test_a_classification_loss_is_refused_for_numbers(folder: Path, loss: str) -> None:
    text = f"{SMALLEST}\n[label]\ntype = 'number'\n[explain]\nloss = '{loss}'\n"
    reason = refused(folder, text)
    for part in ("explain.loss", repr(loss), "'number'", "absolute_error, squared_error"):
        assert part in reason


def test_a_loss_of_ones_own_is_loaded(folder: Path) -> None:
    config = load(folder, SMALLEST + "[explain]\nloss = 'pipeline.explain.losses:brier'\n")
    assert config.loss() is brier


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("no.such.module:thing", ["cannot import no.such.module"]),
        ("pipeline.explain.losses:nothing", ["pipeline.explain.losses has no nothing"]),
        ("pipeline.explain.losses:LOSSES", ["not a function or class"]),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(
    folder: Path, reference: str, parts: list[str]
) -> None:
    reason = refused(folder, f"{SMALLEST}\n[explain]\nloss = '{reference}'\n")
    assert all(part in reason for part in ["explain.loss", reference, *parts]), reason
    reason = refused(folder, f"[features]\na = 'numeric'\n[model]\nfactory = '{reference}'\n")
    assert all(part in reason for part in ["model.factory", reference, *parts]), reason


@pytest.mark.parametrize(
    ("wrong", "key", "users"),
    [
        ({"explain": {"loss": "hinge"}}, "explain.loss", {None, "model", "explainer"}),
        ({"model": {"factory": "no.such:Model"}}, "model.factory", {None, "model"}),
    ],
)
def test_what_settings_refer_to_is_checked_by_all_but_the_roles_that_do_not_use_it(
    wrong: dict[str, Any], key: str, users: set[str | None]
) -> None:
    config = make_config(**wrong)
    askers: list[Asker] = [*ROLES, "reader"]
    for role in (None, *askers):
        if role in users:
            with pytest.raises(ConfigError, match=key):
                check_references(config, role)
        else:
            check_references(config, role)


class Seeded:
    """A model that draws random numbers."""

    def __init__(self, seed: int | None = None, other: int = 0) -> None:
        self.seed = seed

    def predict_one(self, x: Mapping[str, Any]) -> int:
        return 0

    def learn_one(self, x: Mapping[str, Any], y: object) -> None:
        pass


class Mute(Seeded):
    """A model that cannot be asked."""

    predict_one = None  # type: ignore[assignment]


class Unteachable:
    """A model that cannot learn."""

    def predict_one(self, x: Mapping[str, Any]) -> int:
        return 0


class Glued(Seeded):
    """A model that cannot be pickled."""

    def __init__(self) -> None:
        self.glue = lambda: None


def breaks() -> object:
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("factory", "parts"),
    [
        ("Mute", ["Mute", "no predict_one"]),
        ("Unteachable", ["Unteachable", "no learn_one"]),
        ("Glued", ["cannot be pickled"]),
        ("breaks", ["RuntimeError: out of order"]),
    ],
)
def test_a_factory_whose_model_cannot_be_used_is_named(factory: str, parts: list[str]) -> None:
    config = make_config(model={"factory": f"tests.test_config:{factory}", "params": {}})
    with pytest.raises(ConfigError) as error:
        check_references(config.model_copy(update={"explain": brier_settings()}))
    assert all(part in str(error.value) for part in ["model.factory", factory, *parts])


def brier_settings() -> Any:
    return make_config(explain={"loss": "brier"}).explain


def test_wrong_parameters_of_the_factory_are_named(folder: Path) -> None:
    reason = refused(
        folder,
        "[features]\na = 'numeric'\n[model]\nfactory = 'river.forest:ARFClassifier'\n"
        "params = { trees = 3 }\n",
    )
    for part in ("model.factory", "model.params", "'river.forest:ARFClassifier'", "'trees': 3"):
        assert part in reason


def test_the_seed_goes_to_a_model_that_takes_one() -> None:
    factory = "tests.test_config:Seeded"
    seeded = make_config(seed=7, model={"factory": factory, "params": {}})
    chosen = make_config(seed=7, model={"factory": factory, "params": {"seed": 1}})
    assert seeded.make_model().seed == 7
    assert chosen.make_model().seed == 1
    # a factory that takes none gets none
    make_config(model={"factory": "tests.test_config:Unteachable", "params": {}}).make_model()
    forest = make_config(seed=9).make_model()
    assert forest.seed == 9


def test_each_model_is_a_new_one() -> None:
    config = make_config()
    assert config.make_model() is not config.make_model()


def test_settings_are_frozen_and_survive_pickling() -> None:
    config = make_config()
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(config)) == config


def test_the_fingerprint_is_of_what_changes_results_and_nothing_else() -> None:
    config = make_config()
    same = config.on_broker("elsewhere:9092")
    assert same.kafka.bootstrap_servers == "elsewhere:9092"
    assert same.fingerprint() == config.fingerprint()
    assert make_config(checkpoint={"interval_s": 1.0}).fingerprint() == config.fingerprint()
    assert make_config(dashboard={"port": 1234}).fingerprint() == config.fingerprint()
    assert make_config(topics={"replication": 3}).fingerprint() == config.fingerprint()
    sharded = make_config(model={**config.model.model_dump(), "shards": 2})
    assert sharded.fingerprint() == config.fingerprint()
    # the partition where a feature's state is
    assert make_config(topics={"partitions": 2}).fingerprint() != config.fingerprint()
    others = [
        make_config(seed=1),
        make_config(explain={"alpha": 0.5}),
        make_config(drift={"delta": 0.5}),
        make_config(features={"age": "numeric"}),
        make_config(topics={"prefix": "other."}),
        make_config(model={"params": {"n_models": 4}}),
        make_config(explain={"groups": {"house": ["hvalue", "zipcode"]}}),
        make_config(explain={"groups": {"house": ["zipcode", "hvalue"]}}),
    ]
    prints = {frozenset(each.fingerprint().items()) for each in [config, *others]}
    assert len(prints) == len(others) + 1


def test_keys_in_the_fingerprint_are_as_they_are_written() -> None:
    def keys(params: Mapping[str, Any]) -> set[str]:
        own = set(make_config(model={"params": params}).fingerprint())
        return {key for key in own if key.startswith("model.params")}

    assert keys({"a": {"b": 1}}) == {"model.params.a.b"}
    assert keys({"a.b": 1}) == {'model.params."a.b"'}
    assert keys({"a": {}}) == {"model.params.a"}
    assert keys({}) == {"model.params"}


@pytest.mark.parametrize(
    ("factory", "label", "loss", "kind"),
    [
        ("river.tree:HoeffdingTreeClassifier", "number", "squared_error", "classifier"),
        ("river.linear_model:LinearRegression", "integer", "brier", "regressor"),
    ],
)
def test_a_model_of_the_wrong_kind_is_told(
    tmp_path: Path, factory: str, label: str, loss: str, kind: str
) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        f'[features]\na = "numeric"\n[label]\ntype = "{label}"\n'
        f'[model]\nfactory = "{factory}"\n[explain]\nloss = "{loss}"\n'
    )
    with pytest.raises(ConfigError, match=f"gives a {kind}"):
        load_config(path)
