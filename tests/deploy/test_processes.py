"""Every command, option and variable that containers, Kubernetes and systemd name exists."""

import re
from pathlib import Path
from typing import Any

import pytest

from fluxplain.cli.supervisor import STOP_TIMEOUT_S
from fluxplain.config import ENV_PREFIX, Config, load_config
from fluxplain.kafka.exits import EXIT_REFUSED
from tests.deploy import processes as deployed


@pytest.mark.parametrize(("where", "arguments"), list(deployed.commands()))
def test_each_command_and_its_options_exist(where: str, arguments: list[str]) -> None:
    assert str(deployed.options(arguments)["config"]) == deployed.CONFIG


@pytest.mark.parametrize(("where", "name", "value"), list(deployed.environment()))
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
    monkeypatch.setenv(deployed.KEY, "k" * 32)
    config = load_config(deployed.DEPLOY / path)
    assert config.checkpoint.store == "topic"
    # a volume that is mounted there is the worker's user's, as the folder is
    assert f" {config.model.directory}\n" in deployed.DOCKERFILE
    assert {config.health.host, config.dashboard.host} == {"0.0.0.0"}
    assert f"EXPOSE {config.health.port} {config.dashboard.port}\n" in deployed.DOCKERFILE
    assert f"http://127.0.0.1:{config.health.port}/healthz" in deployed.DOCKERFILE


def test_what_is_copied_into_the_image_is_there() -> None:
    allowed = set((deployed.DEPLOY / "Dockerfile.dockerignore").read_text().splitlines())
    copied = [
        source
        for line in re.findall(
            r"^COPY (?!--from)(.+) \S+$", deployed.DOCKERFILE, flags=re.MULTILINE
        )
        for source in line.split()
    ]
    assert len(copied) == 9
    for source in copied:
        assert (deployed.DEPLOY.parent / source).exists()
        assert f"!{source}" in allowed


def test_the_image_writes_where_it_may() -> None:
    written = re.findall(r"(?:NUMBA_CACHE_DIR|MPLCONFIGDIR)=(\S+)", deployed.DOCKERFILE)
    assert [Path(each).parts[1] for each in written] == ["tmp", "tmp"]


class TestSystemd:
    def test_up_has_the_time_to_stop_its_workers(self) -> None:
        [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", deployed.UNIT, flags=re.MULTILINE)
        assert int(seconds) > STOP_TIMEOUT_S

    def test_each_secret_is_a_credential(self) -> None:
        loaded = re.findall(r"^#?LoadCredential=([\w-]+):", deployed.UNIT, flags=re.MULTILINE)
        values = [value or "" for where, _, value in deployed.environment() if where == "systemd"]
        used = [value.removeprefix("%d/") for value in values if value.startswith("%d/")]
        assert used == loaded

    def test_what_a_new_start_does_not_mend_is_not_started_again(self) -> None:
        assert f"RestartPreventExitStatus=2 {EXIT_REFUSED}\n" in deployed.UNIT
