"""The Kubernetes manifests: they say what the code does, and their parts fit together."""

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

import fluxplain
from deploy.strimzi import topics, users
from fluxplain.config import ENV_PREFIX, Config, ControlSettings, load_config
from fluxplain.config.replica import Role
from fluxplain.kafka.faust.app import SHUTDOWN_S
from tests.deploy import processes as deployed

PAUSED = "autoscaling.keda.sh/paused"

COMPONENT = "app.kubernetes.io/component"


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv(deployed.KEY, "k" * 32)
    return load_config(deployed.DEPLOY / "kubernetes" / "base" / "fluxplain.toml")


def deployments() -> set[str]:
    """Return what runs, without what all names begin with; no patches."""
    return {
        manifest["metadata"]["name"].removeprefix("fluxplain-")
        for path, manifest in deployed.MANIFESTS
        if manifest["kind"] == "Deployment" and path.parent.name == "base"
        if "selector" in manifest["spec"]
    }


def test_there_is_a_deployment_for_each_role() -> None:
    run = [
        each["args"] for _, each in deployed.containers() if each.get("args", [""])[0] == "worker"
    ]
    assert [deployed.options(each)["role"] for each in run] == sorted(get_args(Role))
    assert deployments() == {*get_args(Role), "dashboard", "alerts", "operator"}


def test_topics_and_users_are_those_of_the_code(config: Config) -> None:
    assert list(deployed.of_kind("KafkaTopic")) == topics(config)
    assert list(deployed.of_kind("KafkaUser")) == users(config)


@pytest.mark.parametrize(
    ("settings", "writers"),
    [
        ({}, set()),
        ({"control": {"topic": True}}, {"operator"}),
        ({"control": {"topic": True}, "explain": {"budget_ms": 5}}, {"model", "operator"}),
        (
            {"control": {"topic": True}, "streams": {"3": {"explain": {"budget_ms": 5}}}},
            {"model", "operator"},
        ),
    ],
    ids=["no topic", "no budget", "a budget", "a budget of one stream"],
)
def test_who_has_something_to_announce_may_write_control(
    config: Config, settings: dict[str, Any], writers: set[str]
) -> None:
    prefix = config.topics.prefix
    found = {
        user["metadata"]["name"].removeprefix(prefix)
        for user in users(Config(**{**config.model_dump(), **settings}))
        for rule in user["spec"]["authorization"]["acls"]
        if rule["resource"]["name"] == f"{prefix}control" and "Write" in rule["operations"]
    }
    assert found == writers


def test_each_deployment_has_a_user_and_its_password(config: Config) -> None:
    joined = config.model_copy(update={"control": ControlSettings(topic=True)})
    known = {user["metadata"]["name"] for user in users(joined)}
    found = set()
    for path, manifest in deployed.MANIFESTS:
        if path.name == "users.yaml":
            spec = manifest["spec"]["template"]["spec"]
            [container], [volume] = spec["containers"], spec["volumes"]
            name = manifest["metadata"]["name"].replace("fluxplain-", config.topics.prefix)
            assert container["env"] == [{"name": f"{ENV_PREFIX}KAFKA__USERNAME", "value": name}]
            assert volume["secret"]["secretName"] == name
            assert name in known
            found.add(name.removeprefix(config.topics.prefix))
    assert found == deployments()


def test_workers_are_scaled_by_the_lag_of_their_groups_up_to_their_partitions(
    config: Config,
) -> None:
    most = {
        "model": config.topics.features_partitions,
        "explainer": config.topics.partitions,
        "drift": min(config.topics.features_partitions, config.topics.partitions),
    }
    scaled = {
        each["spec"]["scaleTargetRef"]["name"]: each["spec"]
        for each in deployed.of_kind("ScaledObject")
        if PAUSED not in each["metadata"].get("annotations", {})
    }
    assert len(scaled) == len(config.replicas())
    for replica in config.replicas():
        spec = scaled[f"fluxplain-{replica}"]
        [trigger] = spec["triggers"]
        [topic] = config.inputs(replica.role)
        assert trigger["metadata"]["consumerGroup"] == config.group(replica)
        assert trigger["metadata"]["topic"] == config.topic(topic)
        assert trigger["metadata"]["bootstrapServers"] == config.kafka.bootstrap_servers
        assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, most[replica.role])


def test_what_is_joined_scales_the_join_and_then_the_model(config: Config) -> None:
    joined = config.model_copy(update={"control": ControlSettings(topic=True)})
    patches = {
        (each["target"]["kind"], each["target"]["name"]): yaml.safe_load(each["patch"])
        for each in deployed.read("kubernetes/components/joined/kustomization.yaml")["patches"]
    }
    topic = joined.topic(joined.source)
    path = "/spec/triggers/0/metadata/topic"
    assert patches == {
        ("Deployment", "fluxplain-join"): [{"op": "remove", "path": "/spec/replicas"}],
        ("ScaledObject", "fluxplain-join"): [{"op": "remove", "path": "/metadata/annotations"}],
        ("ScaledObject", "fluxplain-model"): [{"op": "replace", "path": path, "value": topic}],
    }
    [join] = (
        each for each in deployed.of_kind("ScaledObject") if each["metadata"].get("annotations")
    )
    assert join["metadata"] == {"name": "fluxplain-join", "annotations": {PAUSED: "true"}}
    assert join["spec"]["maxReplicaCount"] == config.topics.features_partitions
    [trigger] = join["spec"]["triggers"]
    assert trigger["metadata"]["consumerGroup"] == joined.group("join")
    assert "topic" not in trigger["metadata"]  # all that the group reads


def test_the_scaler_has_a_user_and_its_password(config: Config) -> None:
    [username] = (each["data"]["username"] for each in deployed.of_kind("ConfigMap"))
    [authentication] = deployed.of_kind("TriggerAuthentication")
    secrets = {
        each["parameter"]: each["name"] for each in authentication["spec"]["secretTargetRef"]
    }
    assert secrets["password"] == username
    assert username in {user["metadata"]["name"] for user in users(config)}


def test_files_that_are_named_are_mounted() -> None:
    mounts = {
        mount["mountPath"]
        for _, each in deployed.containers()
        for mount in each.get("volumeMounts", ())
    }
    values = [
        variable.get("value", "")
        for _, each in deployed.containers()
        for variable in each.get("env", ())
    ]
    files = {value for value in values if value.startswith("/")}
    assert len(files) == 4
    assert {str(Path(file).parent) for file in (*files, deployed.CONFIG)} <= mounts
    assert deployed.read("kubernetes/base/kustomization.yaml")["configMapGenerator"] == [
        {"name": "fluxplain", "files": [Path(deployed.CONFIG).name]}
    ]


def test_all_have_the_folder_of_models_and_the_operator_alone_writes_it(config: Config) -> None:
    mounts = [
        (where, mount["readOnly"])
        for where, each in deployed.containers()
        for mount in each.get("volumeMounts", ())
        if mount["mountPath"] == str(config.model.directory)
    ]
    assert mounts == [
        ("model.yaml: fluxplain-model", True),
        ("pod.yaml: every", True),
        ("operator.yaml: fluxplain-operator", False),
    ]
    [claim] = deployed.of_kind("PersistentVolumeClaim")
    claimed = {
        volume["persistentVolumeClaim"]["claimName"]
        for _, manifest in deployed.MANIFESTS
        for volume in manifest.get("spec", {})
        .get("template", {})
        .get("spec", {})
        .get("volumes", ())
        if "persistentVolumeClaim" in volume
    }
    assert claimed == {claim["metadata"]["name"]}


def test_ports_are_those_of_the_settings(config: Config) -> None:
    ports = {
        (port["name"], port["containerPort"])
        for _, each in deployed.containers()
        for port in each.get("ports", ())
    }
    assert ports == {("metrics", config.health.port), ("http", config.dashboard.port)}
    assert config.dashboard.metrics_port == config.health.port, "the monitor knows one name"
    probes = {
        (probe["httpGet"]["path"], probe["httpGet"]["port"])
        for _, each in deployed.containers()
        for name, probe in each.items()
        if name.endswith("Probe")
    }
    assert probes == {("/healthz", "metrics"), ("/readyz", "metrics"), ("/", "http")}
    [monitor] = deployed.of_kind("PodMonitor")
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": "metrics"}]
    [policy] = deployed.of_kind("NetworkPolicy")
    assert [rule["ports"] for rule in policy["spec"]["ingress"]] == [[{"port": "metrics"}]]


def test_pods_have_the_time_to_stop() -> None:
    [common] = (manifest for path, manifest in deployed.MANIFESTS if path.name == "pod.yaml")
    assert common["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > SHUTDOWN_S


def test_each_role_has_a_disruption_budget() -> None:
    budgets = [
        each["spec"]["selector"]["matchLabels"][COMPONENT]
        for each in deployed.of_kind("PodDisruptionBudget")
    ]
    assert sorted(budgets) == sorted(get_args(Role))


def test_the_image_is_of_this_version() -> None:
    images = deployed.read("kubernetes/base/kustomization.yaml")["images"]
    assert images == [{"name": "fluxplain", "newTag": fluxplain.__version__}]
