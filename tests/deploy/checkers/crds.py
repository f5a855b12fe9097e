"""The schemas of what extends Kubernetes, as their authors publish them."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator

from tests.deploy.checkers.tools import CheckError, go_module, maven_jar, run

KEDA = ("github.com/kedacore/keda/v2", "v2.21.0")
PROMETHEUS_OPERATOR = ("github.com/prometheus-operator/prometheus-operator", "v0.85.0")
STRIMZI = ("io.strimzi", "api", "0.51.0")
STRIMZI_GENERATOR = ("io.strimzi", "crd-generator", "0.45.0")
"""The last one for Java 17."""

STRIMZI_TYPES = {"KafkaTopic": "topic", "KafkaUser": "user"}

Manifest = dict[str, Any]
Kind = tuple[str, str]
"""apiVersion and kind."""

TRIGGER_PARAMETER = re.compile(r'`keda:"name=(\w+),order=([\w;]+)')


def schemas() -> dict[Kind, Manifest]:
    """Return apiVersion and kind → schema, of all that extends Kubernetes here."""
    found = {}
    for crd in _crds():
        for version in crd["spec"]["versions"]:
            kind = f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]
            found[kind] = _closed(version["schema"]["openAPIV3Schema"])
    return found


def check(manifest: Manifest, schema: Manifest) -> None:
    """Compare a manifest with its schema; a CheckError has one line for each difference."""
    name = f"{manifest['kind']} {manifest['metadata']['name']}"
    errors = Draft7Validator(schema).iter_errors(manifest)
    if lines := [f"{name}: {error.json_path}: {error.message}" for error in errors]:
        raise CheckError("\n".join(lines))


def kafka_trigger_parameters() -> dict[str, set[str]]:
    """Return what KEDA's scaler for Kafka takes, by where from: the schema has no names of them."""
    source = go_module(*KEDA) / "pkg" / "scalers" / "kafka_scaler.go"
    found: dict[str, set[str]] = {"triggerMetadata": set(), "authParams": set()}
    for name, places in TRIGGER_PARAMETER.findall(source.read_text()):
        for place in found.keys() & set(places.split(";")):
            found[place].add(name)
    return found


def _crds() -> Iterator[Manifest]:
    keda = go_module(*KEDA) / "config" / "crd" / "bases"
    operator = go_module(*PROMETHEUS_OPERATOR) / "example" / "prometheus-operator-crd"
    for path in (
        keda / "keda.sh_scaledobjects.yaml",
        keda / "keda.sh_triggerauthentications.yaml",
        operator / "monitoring.coreos.com_podmonitors.yaml",
        operator / "monitoring.coreos.com_prometheusrules.yaml",
    ):
        yield yaml.safe_load(path.read_text())
    yield from _strimzi()


def _strimzi() -> Iterator[Manifest]:
    """Make what Strimzi's own build makes of its classes."""
    jars = f"{maven_jar(*STRIMZI_GENERATOR)}:{maven_jar(*STRIMZI)}"
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / kind for kind in STRIMZI_TYPES}
        classes = (
            f"io.strimzi.api.kafka.model.{package}.{kind}={files[kind]}"
            for kind, package in STRIMZI_TYPES.items()
        )
        run("java", "-cp", jars, "io.strimzi.crdgenerator.CrdGenerator", "--yaml", *classes)
        for path in files.values():
            yield yaml.safe_load(path.read_text())


def _closed(schema: Mapping[str, Any]) -> Manifest:
    """Return a schema that allows no other properties, as the API server prunes or refuses them."""
    closed = {name: _part(name, part) for name, part in schema.items()}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "properties" not in schema
    return closed if is_open else {"additionalProperties": False, **closed}


def _part(name: str, part: Any) -> Any:
    if name == "properties":
        return {each: _closed(schema) for each, schema in part.items()}
    if name == "items" or (name == "additionalProperties" and isinstance(part, dict)):
        return _closed(part)
    return part
