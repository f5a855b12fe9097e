"""What the files for containers, Kubernetes and systemd run, and with which settings."""

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import typer
import yaml

from fluxplain.cli.commands import app
from fluxplain.config import ENV_PREFIX

DEPLOY = Path(__file__).parents[2] / "deploy"

CONFIG = "/etc/fluxplain/fluxplain.toml"
"""Where all of them have the settings."""

KEY = f"{ENV_PREFIX}CHECKPOINT__KEY"

IMAGE = "fluxplain:local"
"""Of the services that are ours."""

Manifest = dict[str, Any]


def read(name: str) -> Any:
    """Return what a YAML file below ``deploy/`` holds."""
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


COMPOSE: dict[str, Any] = read("compose.yaml")

SERVICES: dict[str, Any] = {
    name: each for name, each in COMPOSE["services"].items() if each.get("image") == IMAGE
}
"""Those of compose that are ours."""

MANIFESTS: list[tuple[Path, Manifest]] = [
    (path, manifest)
    for path in sorted((DEPLOY / "kubernetes").rglob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    if isinstance(manifest, dict)
]
"""Also patches, but for those that are lists."""

DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")

UNIT = (DEPLOY / "systemd" / "fluxplain.service").read_text(encoding="utf-8")


def of_kind(kind: str) -> Iterator[Manifest]:
    """Yield the manifests of a kind, and the patches of such."""
    return (manifest for _, manifest in MANIFESTS if manifest["kind"] == kind)


def containers() -> Iterator[tuple[str, Manifest]]:
    """Yield where it is, and each container of a manifest or patch."""
    for path, manifest in MANIFESTS:
        spec = manifest.get("spec", {}).get("template", {}).get("spec", {})
        for key in ("containers", "initContainers"):
            for each in spec.get(key, ()):
                yield f"{path.name}: {manifest['metadata']['name']}", each


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield where it is, and what ``fluxplain`` is given."""
    for name, service in SERVICES.items():
        yield f"compose: {name}", service["command"]
    for where, container in containers():
        if "args" in container:
            yield where, container["args"]
    [line] = re.findall(r"^ExecStart=\S+/fluxplain (.+)$", UNIT, flags=re.MULTILINE)
    yield "systemd", shlex.split(line)


def environment() -> Iterator[tuple[str, str, str | None]]:
    """Yield where it is, name and value of each environment variable; the value if it is known."""
    for name, service in SERVICES.items():
        for variable, value in service["environment"].items():
            yield f"compose: {name}", variable, value
    for where, container in containers():
        for each in container.get("env", ()):
            yield where, each["name"], each.get("value")
    for line in re.findall(r"^#?Environment=(.+)$", UNIT, flags=re.MULTILINE):
        variable, _, value = line.partition("=")
        yield "systemd", variable, value


@cache
def _fluxplain() -> Any:
    return typer.main.get_command(app)


def options(arguments: list[str]) -> dict[str, Any]:
    """Return the options of a command line, which ``fluxplain`` must take; nothing runs."""
    command = _fluxplain()
    while hasattr(command, "commands") and not arguments[0].startswith("-"):
        name, *arguments = arguments
        command = command.commands[name]
    parsed: dict[str, Any] = command.make_context(command.name, list(arguments)).params
    return parsed


def broker_settings(variables: Mapping[str, object]) -> dict[str, str]:
    """Return a broker's settings, as the image of Apache Kafka makes them of its environment."""
    return {
        name.removeprefix("KAFKA_").lower().replace("_", "."): str(value)
        for name, value in variables.items()
    }
