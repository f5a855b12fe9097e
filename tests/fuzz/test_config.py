"""Whatever is in the file and in the environment: settings, or one error that names the key."""

import importlib.util
import os
import random
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.config import ENV_PREFIX, Config, ConfigError, load_config
from fluxplain.config.stream_settings import TABLES
from fluxplain.loading import import_strings
from tests.fuzz.strategies import EXTREME_NUMBERS, EXTREME_TEXTS, FUZZ, SEEDS, mangled
from tests.kit.settings import toml_file

FOLDER = Path(__file__).parents[2]
FILES = [
    # River would build a forest of whatever size a fuzzer finds
    re.sub(rb"n_models = \d+", b"", path.read_bytes())
    for path in (
        FOLDER / "pipeline/cli/template.toml",
        *sorted(FOLDER.glob("deploy/examples/*.toml")),
    )
]

REFERENCES = [
    *("river.forest:ARFClassifier", "river.naive_bayes:GaussianNB", "river.compose:Select"),
    *("river.linear_model:LinearRegression", "river.dummy:NoChangeClassifier", "json:loads"),
    *("river.drift:ADWIN", "river.drift:NoDrift", "river.drift.binary:FHDDM"),
    *("fluxplain.drift.glr:GLR", "fluxplain.explain.losses:brier", "no.such:thing"),
    *("fluxplain.config:Config", "fluxplain.explain:LOSSES", "tests.fuzz.models:Watchful"),
    *("tests.fuzz.models:LABELS", "river:no_such", "no.such.module:Thing", "river.forest:__doc__"),
    *("river.forest:ARFClassifier.predict_one", "river.forest:ARFClassifier.__init__", "river"),
    *("", ":", "a:", ":a", "..:a", "a:..b", ".river:a", "river.:a", "a b:c", "a:b:c", "é:é"),
]
"""What may be loaded: to import whatever a fuzzer finds would be to run it."""

MODULES = {"builtins", *(reference.partition(":")[0] for reference in REFERENCES)}


@pytest.fixture(autouse=True, scope="module")
def harmless() -> Iterator[None]:
    """Import no other modules than those, and no settings but those of the tests."""
    load = import_strings.load

    def guarded(reference: str) -> Callable[..., Any]:
        module = reference.partition(":")[0]
        if module not in MODULES and _exists(module.partition(".")[0]):
            raise ValueError("not loaded by tests")
        return load(reference)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_strings, "load", guarded)
        for name in [*os.environ]:
            if name.startswith(ENV_PREFIX):
                patch.delenv(name)
        yield


def _exists(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "fluxplain.toml"


def outcome(path: Path, text: bytes) -> Config | str:
    """Return the settings, or why there are none; every other exception is a failure."""
    path.write_bytes(text)
    try:
        config = load_config(path)
    except ConfigError as error:
        return str(error) or pytest.fail("an error must say what is wrong")
    assert config.fingerprint()
    return config


def leaves(table: dict[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    for name, value in table.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from leaves(value, *above, name)


BASE = tomllib.loads(FILES[0].decode())
KEYS = [
    *leaves(BASE),
    *(("explain", name, "warm_up") for name in ("ipfi", "isage", "ipdp")),
    *(("explain", "ipdp", name) for name in ("grid", "storage", "window", "ice", "pairs")),
    *(("kafka", name) for name in Config.model_fields["kafka"].annotation.model_fields),  # type: ignore[union-attr]
    *(("checkpoint", name) for name in ("key", "key_file", "store", "out_of_range")),
    *(("drift", table) for table in ("detector", "params", "ipfi", "isage", "ipdp", "loss")),
    *(("drift", "loss", name) for name in ("enabled", "detector", "delta", "params")),
    *(("drift", "isage", "params", name) for name in ("clock", "max_buckets", "alpha")),
    *(("streams", "3", *key) for key in leaves(BASE) if key[0] in TABLES),
    *(("streams",), ("streams", "3"), ("streams", "3", "kafka"), ("streams", "x", "drift")),
    *(("no", "such"), ("explain", "no_such"), ("features", ""), ("model", "params", "x")),
]

VALUES: list[Any] = [
    *(each for each in EXTREME_NUMBERS if not isinstance(each, float) or each == each),
    *(text for text in EXTREME_TEXTS if text.isascii()),
    *(True, False, [], {}, [1], ["ipfi"], ["ipfi", "ipfi"], {"a": 1}, [[]], [{}], 0.5, 2, 100, 101),
    *("numeric", "categorical", "embedded", "SASL_SSL", "ssl", "topic", "latest", "/", "a:1,b:2"),
    *([["amount", "hour"]], [["hour", "hour"]], [["hour", 1]], "range", "quantiles"),
    *("adwin", "kswin", "page_hinkley", "ddm", {"clock": 1}, {"clock": 0}, {"alpha": 0.5}),
    *("../..", "brier", "squared_error", "hinge", *REFERENCES),
]


def changed(rng: random.Random, n: int) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    """Return the template with some settings replaced by anything, and which."""
    fields = tomllib.loads(FILES[0].decode())
    keys = [rng.choice(KEYS) for _ in range(n)]
    for *above, name in keys:
        table = fields
        for part in above:
            inner = table.get(part)
            table[part] = table = inner if isinstance(inner, dict) else {}
        table[name] = rng.choice(VALUES)
    return keys, fields


@FUZZ
@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda t: t.encode(errors="replace"))
    | mangled(FILES)
    | mangled(FILES)
)
def test_any_file_is_an_error_or_settings(path: Path, text: bytes) -> None:
    outcome(path, text)


@FUZZ
@given(SEEDS)
def test_changed_settings_are_an_error_that_names_the_wrong_key_or_settings(
    path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    for n in (1, 1, 2, 5):
        keys, fields = changed(rng, n)
        result = outcome(path, toml_file(fields).encode())
        if n == 1 and isinstance(result, str) and "is not TOML" not in result:
            # what a table or the model is wrong about is said of the table, or of the model
            named = any(part and part in result for part in keys[0]) or "model.factory" in result
            assert named, f"{keys[0]}: {result}"


SMALLEST = b'features = {a = "numeric"}\nmodel = {factory = "river.naive_bayes:GaussianNB"}\n'


TOO_MUCH: dict[str, tuple[bytes, dict[str, str]]] = {
    "empty": (b"", {}),
    "no text": (b"\xff", {}),
    "array": (b"a = " + b"[" * 5_000, {}),
    "table": (b"a = " + b"{a=" * 5_000, {}),
    "digits": (b"seed = 1" + b"0" * 5_000, {}),
    "hex": (SMALLEST + b"seed = 0x" + b"f" * 5_000, {}),
    "variable": (SMALLEST, {"EXPLAIN": "[" * 100_000}),
    "inner variable": (SMALLEST, {"EXPLAIN__METHODS": "[" * 100_000}),
    "loss": (SMALLEST + b'explain = {loss = "builtins:max"}', {}),
    "pipeline": (SMALLEST.replace(b"river.naive_bayes:GaussianNB", b"river.compose:Pipeline"), {}),
}


@pytest.mark.parametrize(("text", "variables"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_is_too_deep_or_too_long_or_empty_is_an_error(
    path: Path, text: bytes, variables: dict[str, str]
) -> None:
    with environment({ENV_PREFIX + n: v for n, v in variables.items()}):
        assert isinstance(outcome(path, text), str)


SECRET = "swordfish, and nobody may read it: 0123456789"
SECRETS = ("KAFKA__PASSWORD", "KAFKA__CLIENT_KEY_PASSWORD", "CHECKPOINT__KEY")

NAMES = [
    *("__".join(key).upper() for key in KEYS if all(re.fullmatch(r"\w+", part) for part in key)),
    *("FEATURES__", "__", "MODEL__PARAMS__A__B__C", "LABEL__TYPE__X", "SEED__X", "explain__alpha"),
    *("EXPLAIN__IPFI__WARM_UP__X", "NO_SUCH", "", "CHECKPOINT__", "EXPLAIN__METHODS__0"),
    *SECRETS,
]

TEXTS = [
    *('{"a": 1}', '{"a": "numeric"}', "[]", '["ipfi"]', "{", '{"', "null", '"x"', "[" * 500, "{}"),
    *('{"ipfi": {"warm_up": 5}}', '{"type": "number"}', '{"x": NaN}', '{"\\ud800": "numeric"}'),
    *("\udcff", "0x10", "1_000", " 0.5", "1e999", "true", "9" * 400, "\n", "ssl", SECRET),
    *(text for text in EXTREME_TEXTS if "\x00" not in text and "\ud800" not in text),
    *REFERENCES,
]


@FUZZ
@given(SEEDS)
def test_any_environment_is_an_error_without_a_secret_or_settings(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for n in (0, 1, 2, 4):
        variables = {ENV_PREFIX + name: rng.choice(TEXTS) for name in rng.sample(NAMES, n)}
        if rng.random() < 0.5:
            variables[ENV_PREFIX + rng.choice(SECRETS)] = SECRET
        shown = [v for name, v in variables.items() if not name.endswith(SECRETS)]
        with environment(variables):
            result = outcome(path, rng.choice(FILES))
        if SECRET not in shown:
            assert "swordfish" not in str(result)
            assert "swordfish" not in repr(result)
