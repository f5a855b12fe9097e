"""Every command, option and variable that containers, Kubernetes and systemd name exists."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer import BadParameter

import fluxplain
from fluxplain.cli.supervisor import STOP_TIMEOUT_S
from fluxplain.config import ENV_PREFIX, Config, load_config
from fluxplain.kafka.exits import EXIT_REFUSED
from tests.deploy.documented import README
from tests.deploy.processes import (
    CONFIG,
    DEPLOY,
    DOCKERFILE,
    KEY,
    SERVICES,
    UNIT,
    commands,
    environment,
    options,
)


@pytest.mark.parametrize(("where", "arguments"), list(commands()))
def test_each_command_and_its_options_exist(where: str, arguments: list[str]) -> None:
    assert str(options(arguments)["config"]) == CONFIG


def test_what_does_not_exist_is_found() -> None:
    with pytest.raises(KeyError):
        options(["workers"])
    with pytest.raises(BadParameter, match="'modal'"):
        options(["worker", "--role", "modal"])
    with pytest.raises(Exception, match="--roll"):
        options(["worker", "--roll", "model"])


@pytest.mark.parametrize(("where", "name", "value"), list(environment()))
def test_each_variable_is_a_setting(where: str, name: str, value: str | None) -> None:
    if name == "NUMBA_CACHE_DIR":
        return
    assert name.startswith(ENV_PREFIX)
    fields: dict[str, Any] = dict(Config.model_fields)
    for key in name.removeprefix(ENV_PREFIX).lower().split("__"):
        assert key in fields
        fields = dict(getattr(fields[key].annotation, "model_fields", {}))


@pytest.mark.parametrize("path", ["compose/fluxplain.toml", "kubernetes/base/fluxplain.toml"])
def test_settings_are_valid_and_fit_the_image(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "k" * 32)
    config = load_config(DEPLOY / path)
    assert config.checkpoint.store == "topic"
    # a volume that is mounted there is the worker's user's, as the folder is
    assert f" {config.model.directory}\n" in DOCKERFILE
    assert {config.health.host, config.dashboard.host} == {"0.0.0.0"}
    assert f"EXPOSE {config.health.port} {config.dashboard.port}\n" in DOCKERFILE
    assert f"http://127.0.0.1:{config.health.port}/healthz" in DOCKERFILE


def test_what_is_copied_into_the_image_is_there() -> None:
    allowed = set((DEPLOY / "Dockerfile.dockerignore").read_text().splitlines())
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, flags=re.MULTILINE)
        for source in line.split()
    ]
    assert len(copied) == 9
    for source in copied:
        assert (DEPLOY.parent / source).exists()
        assert f"!{source}" in allowed


def test_the_image_writes_where_it_may() -> None:
    written = re.findall(r"(?:NUMBA_CACHE_DIR|MPLCONFIGDIR)=(\S+)", DOCKERFILE)
    assert [Path(each).parts[1] for each in written] == ["tmp", "tmp"]


def documented() -> list[list[str]]:
    """Return the words of each command line in the section about containers and Kubernetes."""
    readme = README.read_text(encoding="utf-8")
    _, _, section = readme.partition("\n## Containers and Kubernetes\n")
    blocks = re.findall(
        r"^```sh\n(.+?)^```$", section.partition("\n## ")[0], re.MULTILINE | re.DOTALL
    )
    assert blocks, "there is no such section any more"
    lines = "".join(blocks).replace("\\\n", "").splitlines()
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("words", documented(), ids=" ".join)
def test_what_the_documentation_names_exists(words: list[str]) -> None:
    image = f"fluxplain:{fluxplain.__version__}"
    for word in words:
        assert not word.startswith("deploy/") or (DEPLOY.parent / word).exists()
    match words:
        case ["make", target]:
            assert f"\n{target}:" in (DEPLOY.parent / "Makefile").read_text()
        case ["docker", "build", *_]:
            assert image in words
        case ["docker", "run", "--rm", name, *command]:
            assert name == image
            options(command)
        case ["docker", "compose", "--file", _, *rest]:
            ours = {word.partition("=")[0] for word in rest if word.startswith(("demo-", "expl"))}
            assert ours <= set(SERVICES)
            if "operator" in rest and "--entrypoint" not in rest:
                options(rest[rest.index("operator") + 1 :])
        case ["kubectl", "exec", _, "--", "fluxplain", *command]:
            options(command)
        case _:
            assert words[0] == "kubectl"


class TestSystemd:
    def test_up_has_the_time_to_stop_its_workers(self) -> None:
        [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, flags=re.MULTILINE)
        assert int(seconds) > STOP_TIMEOUT_S

    def test_each_secret_is_a_credential(self) -> None:
        loaded = re.findall(r"^#?LoadCredential=([\w-]+):", UNIT, flags=re.MULTILINE)
        values = [value or "" for where, _, value in environment() if where == "systemd"]
        used = [value.removeprefix("%d/") for value in values if value.startswith("%d/")]
        assert used == loaded

    def test_what_a_new_start_does_not_mend_is_not_started_again(self) -> None:
        assert f"RestartPreventExitStatus=2 {EXIT_REFUSED}\n" in UNIT
