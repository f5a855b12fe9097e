"""The command ``python -m tests.deploy.checkers``; its last line is the verdict."""

import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.checkers import crds
from tests.deploy.checkers.tools import ROOT, CheckError, debian_program, go_program, run

DEPLOY = ROOT / "deploy"

COMPOSE = ("github.com/compose-spec/compose-go/v2/cmd", "v2.16.2")
"""What `docker compose config` reads and checks files with."""

KUBERNETES = ("1.30", "1.37")
"""The oldest and the newest that the manifests are compared with."""

OVERLAY = re.compile(r"^```yaml\n(apiVersion: kustomize.*?)^```$", re.MULTILINE | re.DOTALL)

DERIVED = re.compile(r"^```dockerfile\n(.*?)^```$", re.MULTILINE | re.DOTALL)

MOST_EXPOSURE = "20"
"""Of 100; systemd calls up to 20 safe or OK."""

Manifest = dict[str, Any]


def container() -> str:
    """Lint the Dockerfile, and the one that the documentation shows."""
    [shown] = DERIVED.findall((DEPLOY / "README.md").read_text())
    with tempfile.NamedTemporaryFile("w", suffix=".Dockerfile") as file:
        file.write(shown)
        file.flush()
        run(_beside_python("hadolint"), DEPLOY / "Dockerfile", file.name)
    return "hadolint has nothing to say"


def compose() -> str:
    """Load the compose file as `docker compose` does."""
    told = run(go_program("compose-spec", *COMPOSE), "compose.yaml", cwd=DEPLOY)
    return f"{len(yaml.safe_load(told)['services'])} services"


def kubernetes() -> str:
    """Build what is built, and compare each manifest with the schema of its kind."""
    schemas = crds.schemas()
    builds = list(_builds())
    for manifests in builds:
        native = []
        for manifest in manifests:
            schema = schemas.get((manifest["apiVersion"], manifest["kind"]))
            if schema is None:
                native.append(manifest)
            else:
                crds.check(manifest, schema)
            _check_restricted(manifest)
        _validate(native)
        _check_triggers(manifests)
    _check_rules(schemas)
    counts = ", ".join(str(len(manifests)) for manifests in builds)
    return f"{counts} manifests; Kubernetes {' and '.join(KUBERNETES)}"


def systemd() -> str:
    """Verify the unit, and how much it is exposed."""
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "fluxplain.service"
        text = (DEPLOY / "systemd" / unit.name).read_text()
        # it must exist
        unit.write_text(text.replace("/opt/fluxplain/bin/", f"{sys.prefix}/bin/"))
        run("systemd-analyze", "verify", unit, warns=True)
        run("systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSURE}", unit)
    return f"verified; exposure at most {MOST_EXPOSURE} of 100"


def prometheus() -> str:
    """Check Prometheus's settings, with the alerting rules that they name, and when these fire."""
    promtool = debian_program("promtool", "prometheus")
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "prometheus.yml"
        text = (DEPLOY / "compose" / settings.name).read_text()
        settings.write_text(text.replace("/etc/prometheus/", f"{DEPLOY}/grafana/"))
        told = run(promtool, "check", "config", settings)
    run(promtool, "test", "rules", Path(__file__).parent / "alerts.yaml")
    return ", ".join(re.findall(r"\d+ rules? found", told))


def _builds() -> Iterator[list[Manifest]]:
    """Yield what is to be built: what is here, and the overlay that the documentation shows."""
    here = DEPLOY / "kubernetes"
    yield _build(here / "base")
    for overlay in (here / "overlays").iterdir():
        yield _build(overlay)
    # everything, with the components that no overlay here has
    kubernetes = "../fluxplain/deploy/kubernetes"
    more = [f"{kubernetes}/components/{name}" for name in ("joined", "models")]
    whole = {"resources": [f"{kubernetes}/overlays/strimzi"], "components": more}
    manifests = _built_of(yaml.safe_dump(whole))
    text = str(manifests)
    if "fluxplain.observations" not in text or "/paused" in text:
        raise CheckError("components/joined changes nothing")
    if "'emptyDir': {}" in text or "'claimName': 'fluxplain-models'" not in text:
        raise CheckError("components/models changes nothing")
    yield manifests
    [shown] = OVERLAY.findall((DEPLOY / "README.md").read_text())
    manifests = _built_of(shown)
    if "'fluxplain.toml': 'mine'" not in str(manifests) or "registry.example" not in str(manifests):
        raise CheckError("the overlay that the documentation shows changes nothing")
    yield manifests


def _built_of(kustomization: str) -> list[Manifest]:
    """Return what is built of an overlay beside a clone of the repository."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "fluxplain").symlink_to(ROOT)
        mine = Path(folder) / "mine"
        mine.mkdir()
        (mine / "kustomization.yaml").write_text(kustomization)
        (mine / "fluxplain.toml").write_text("mine")
        return _build(mine)


def _build(folder: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(run("kubectl", "kustomize", folder)))


def _beside_python(name: str) -> Path:
    return Path(sys.prefix) / "bin" / name


def _validate(manifests: list[Manifest]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "manifests.yaml"
        file.write_text(yaml.safe_dump_all(manifests))
        for version in KUBERNETES:
            run(_beside_python("kubernetes-validate"), "--strict", "--quiet", "-k", version, file)


def _check_restricted(manifest: Manifest) -> None:
    """See that a pod fits Kubernetes' own restricted profile, and what else this project wants."""
    spec = manifest.get("spec", {}).get("template", {}).get("spec")
    if spec is None:
        return
    who = manifest["metadata"]["name"]
    pod = spec["securityContext"]
    wanted = {
        "not root": pod["runAsNonRoot"] and pod["runAsUser"] > 0,
        "a system call filter": pod["seccompProfile"] == {"type": "RuntimeDefault"},
        "no token": spec["automountServiceAccountToken"] is False,
        "no variables of services": spec["enableServiceLinks"] is False,
    }
    for each in [*spec["containers"], *(spec.get("initContainers") or ())]:
        rights = each["securityContext"]
        wanted |= {
            f"{each['name']}: no new privileges": rights["allowPrivilegeEscalation"] is False,
            f"{each['name']}: a read-only root": rights["readOnlyRootFilesystem"],
            f"{each['name']}: no capabilities": rights["capabilities"] == {"drop": ["ALL"]},
            f"{each['name']}: /tmp": "/tmp" in {at["mountPath"] for at in each["volumeMounts"]},
            f"{each['name']}: a limit of memory": "memory" in each["resources"]["limits"],
            f"{each['name']}: requests": each["resources"]["requests"].keys() == {"cpu", "memory"},
            f"{each['name']}: a version": ":" in each["image"],
        }
    if missing := [what for what, holds in wanted.items() if not holds]:
        raise CheckError(f"{who} lacks {', '.join(missing)}")


def _check_triggers(manifests: list[Manifest]) -> None:
    """See that KEDA's scaler for Kafka knows what it is given."""
    known = crds.kafka_trigger_parameters()
    for manifest in manifests:
        spec = manifest.get("spec", {})
        for trigger in spec.get("triggers", ()):
            if unknown := trigger["metadata"].keys() - known["triggerMetadata"]:
                raise CheckError(f"{manifest['metadata']['name']}: unknown: {unknown}")
        for source in ("secretTargetRef", "configMapTargetRef"):
            given = {each["parameter"] for each in spec.get(source, ())}
            if unknown := given - known["authParams"]:
                raise CheckError(f"{manifest['metadata']['name']}: unknown: {unknown}")


def _check_rules(schemas: dict[crds.Kind, Manifest]) -> None:
    """See that the alerting rules are also what the Prometheus Operator takes."""
    kind = ("monitoring.coreos.com/v1", "PrometheusRule")
    rules = yaml.safe_load((DEPLOY / "grafana" / "alerts.yaml").read_text())
    metadata = {"name": "fluxplain"}
    crds.check(
        {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": rules},
        schemas[kind],
    )


CHECKS: tuple[Callable[[], str], ...] = (container, compose, kubernetes, systemd, prometheus)


def _failures() -> Iterator[str]:
    for check in CHECKS:
        began_at = time.monotonic()
        try:
            told = check()
        except CheckError as error:
            told = f"FAIL\n{error}"
            yield check.__name__
        print(f"{check.__name__:10} {time.monotonic() - began_at:5.1f} s  {told}", flush=True)


if __name__ == "__main__":
    failed = list(_failures())
    print(f"FAIL: {', '.join(failed)}" if failed else "PASS: what is to run them takes all files")
    sys.exit(bool(failed))
