"""Snippets do what the documents say: commands exist, settings are valid, code runs."""

import importlib.util
import json
import pickle
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from confluent_kafka import Consumer

from deploy.kafka.create import make_certificates
from fluxplain import __version__
from fluxplain.config import ENV_PREFIX, Config, load_config
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.registry.avro_values import reader
from fluxplain.models.warm_start import written
from fluxplain.schemas import Observation
from fluxplain.schemas.record import Value
from tests.deploy.documented import documented_metrics
from tests.deploy.processes import SERVICES, options
from tests.docs.documents import (
    KEYS,
    ROOT,
    WRITTEN_BY_HAND,
    Snippet,
    commands,
    snippets,
    spans,
)
from tests.kit.registry import avro_of

TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))

BASE = {
    "[features]": """
amount = "numeric"
lat = "numeric"
lon = "numeric"
age = "numeric"
salary = "numeric"
country = "categorical"
""",
    "[model]": 'factory = "river.naive_bayes:GaussianNB"\n',
}
"""What a snippet of settings does not show."""


def place(snippet: Snippet) -> str:
    return f"{snippet.document}:{snippet.line}"


def wrong(command: list[str]) -> str | None:
    """Return what of a command does not exist; None if all is there, or it is not of ours."""
    for word in command:
        if word.startswith("deploy/") and not any(ROOT.glob(word)):
            return f"no file {word}"
        if word.startswith("fluxplain:") and word != f"fluxplain:{__version__}":
            return f"another version, {word}"
    match command:
        case (
            ["fluxplain", *arguments]
            | ["docker", "run", "--rm", _, *arguments]
            | ["kubectl", "exec", _, "--", "fluxplain", *arguments]
        ):
            return problem(arguments)
        case ["docker", "compose", "--file", _, *rest]:
            ours = {word.partition("=")[0] for word in rest if word.startswith(("demo-", "expl"))}
            if not ours <= SERVICES.keys():
                return f"no services {ours - SERVICES.keys()}"
            if "operator" in rest and "--entrypoint" not in rest:
                return problem(rest[rest.index("operator") + 1 :])
        case ["make", *targets]:
            missing = {each for each in targets if "=" not in each} - TARGETS
            return f"no target {missing}" if missing else None
        case ["python", "-m", module, *_]:
            return None if importlib.util.find_spec(module) else f"no module {module}"
    return None


def problem(arguments: list[str]) -> str | None:
    """Return why ``fluxplain`` does not take these arguments; None if it does."""
    try:
        options(arguments)
    except typer.Exit:  # --help
        return None
    except Exception as error:  # the parser's own kinds are not Typer's to import
        return f"fluxplain {shlex.join(arguments)}: {getattr(error, 'message', error)}"
    return None


@pytest.mark.parametrize("snippet", snippets("sh"), ids=place)
def test_every_command_exists_with_its_options(snippet: Snippet) -> None:
    assert not [each for each in map(wrong, commands(snippet.text)) if each]


@pytest.mark.parametrize("document", WRITTEN_BY_HAND)
def test_every_command_in_a_sentence_exists(document: str) -> None:
    for span in spans(document):
        if re.match(r"(\w+=\S+ )*(fluxplain|make|python -m) [^…]+$", span):
            for command in commands(span):
                # a sentence need not give what is required; rendering help takes long
                assert not wrong(command) or not wrong([*command, "--help"]), span


@pytest.mark.parametrize(
    "command",
    [
        "fluxplain fly",
        "docker run --rm fluxplain:0 up",
        f"docker run --rm fluxplain:{__version__} fly",
        "docker compose --file deploy/compose.yaml up --scale explainers=2",
        "kubectl exec deployment/x -- fluxplain fly",
        "kubectl apply -k deploy/nowhere",
        "fluxplain up --wrokers 2",
        "fluxplain worker --role modell",
        "fluxplain worker",
        "make coffee",
        "python -m tests.nothing",
    ],
)
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    assert [wrong(each) for each in commands(command)] != [None]


@pytest.mark.parametrize("document", WRITTEN_BY_HAND)
def test_every_setting_and_variable_that_is_named_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    variables = re.findall(rf"\b{ENV_PREFIX}([A-Z_]+[A-Z])\b", text)
    named = {each.lower().replace("__", ".") for each in variables}
    named |= {found[1] for each in spans(document) if (found := is_setting(each))}
    kinds = {key: str(field.annotation) for key, field in KEYS.items()}
    of_tables = {f"{key}." for key, kind in kinds.items() if "dict" in kind or "Mapping" in kind}
    unknown = {each for each in named if not each.startswith(tuple(of_tables))} - KEYS.keys()
    assert not unknown


def is_setting(span: str) -> re.Match[str] | None:
    found = re.fullmatch(r"([a-z]+(?:\.[a-z_]+)+)(?: = .*)?", span)
    is_file = span.endswith((".py", ".md", ".toml", ".jsonl"))
    return (
        found if found and span.partition(".")[0] in Config.model_fields and not is_file else None
    )


@pytest.mark.parametrize("document", WRITTEN_BY_HAND)
def test_every_metric_that_is_named_exists(document: str) -> None:
    named = {each for each in spans(document) if re.fullmatch(r"fluxplain_\w+", each)}
    known = documented_metrics().keys()
    assert {re.sub("_(count|sum|bucket)$", "", each) for each in named} <= known


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that settings name."""
    folder = tmp_path_factory.mktemp("secrets")
    make_certificates(folder / "tls")
    shutil.copy(folder / "tls" / "ca.pem", folder / "ca.pem")
    for name in ("kafka-password", "registry-password", "alerts-secret", "checkpoint-key"):
        (folder / name).write_text("0123456789abcdef" * 2)
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, where modules are found, and none was imported before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("mymodel", None)


def export(config: Config, folder: Path) -> None:
    (folder / "model.pickle").write_bytes(pickle.dumps(config.make_model()))
    learned: dict[str, object] = {"samples": [], "estimates": {}}
    (folder / "explanations.state").write_bytes(written(learned, config.learning()))


SETTINGS = [each for each in snippets("toml") if each.document != "deploy/docs/models.md"]
"""All but those of models, which are run: ``tests/models/test_docs.py``."""


@pytest.mark.parametrize("snippet", SETTINGS, ids=place)
def test_every_snippet_of_settings_is_valid(snippet: Snippet, secrets: Path, folder: Path) -> None:
    for code in snippets("python"):
        if code.document == snippet.document:
            (folder / "mymodel.py").write_text(code.text)
    shutil.copy(secrets / "ca.pem", folder)
    rest = "".join(f"{table}\n{keys}" for table, keys in BASE.items() if table not in snippet.text)
    path = folder / "fluxplain.toml"
    path.write_text("".join(f"{table}\n{keys}" for table, keys in BASE.items()))
    export(load_config(path), folder)
    path.write_text(snippet.text.replace("/run/secrets", str(secrets)) + rest)
    assert load_config(path)


def in_readme(text: str) -> str:
    """Return the README's code that has this text."""
    codes = [each.text for each in snippets("python") if each.document == "README.md"]
    [found] = [code for code in codes if text in code]
    return found


@pytest.mark.slow
def test_the_first_example_prints_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(in_readme("IncrementalPFI"), {})
    printed = [each.text for each in snippets("text") if each.document == "README.md"]
    assert capsys.readouterr().out == printed[0]


def test_the_producer_sends_an_observation() -> None:
    code = in_readme("Producer(")
    with EmbeddedBroker() as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        exec(code.replace("localhost:9092", broker.bootstrap_servers), {})
        consumer = Consumer({**servers, "group.id": "docs", "auto.offset.reset": "earliest"})
        consumer.subscribe(["fluxplain.features"])
        try:
            message = consumer.poll(30)
        finally:
            consumer.close()
    assert message is not None
    assert Observation.decode(message.value()).x == {"amount": 12.5, "hour": 14, "country": "AT"}


def test_a_value_of_the_avro_schema_is_an_observation() -> None:
    [text] = [each.text for each in snippets("avsc")]
    x: dict[str, Value | None] = {"amount": 12.5, "country": None}
    ts = datetime(2026, 3, 1, 12, tzinfo=UTC)
    value = avro_of(json.loads(text), {"id": "tx-1", "ts": ts, "x": x, "y": False})
    read = Observation.of(reader([text])(value))
    assert read == Observation(x=x, y=False, id="tx-1", ts="2026-03-01T12:00:00Z")
