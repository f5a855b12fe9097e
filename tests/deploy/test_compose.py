"""The compose file: what it names is there, and its parts fit together."""

from pathlib import Path
from typing import get_args

import pytest

from deploy.kafka.java import kafka_version
from fluxplain.config import Config, load_config
from fluxplain.config.replica import Role
from fluxplain.kafka.faust.app import SHUTDOWN_S
from tests.deploy.processes import COMPOSE, CONFIG, DEPLOY, KEY, SERVICES, options, read

ALL = COMPOSE["services"]


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv(KEY, "k" * 32)
    return load_config(DEPLOY / "compose" / "fluxplain.toml")


@pytest.mark.parametrize("role", get_args(Role))
def test_there_is_a_service_for_each_role(role: Role, config: Config) -> None:
    assert options(SERVICES[role]["command"])["role"] == role
    # what the settings do not need waits for its profile
    assert ("profiles" in SERVICES[role]) != bool(config.replicas(role))


def test_what_is_named_is_defined() -> None:
    for service in ALL.values():
        assert set(service.get("depends_on", ())) <= set(ALL)
        assert {each["source"] for each in service.get("configs", ())} <= set(COMPOSE["configs"])
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        volumes = {each.partition(":")[0] for each in service.get("volumes", ())}
        assert volumes <= set(COMPOSE["volumes"])


def test_files_exist() -> None:
    for each in COMPOSE["configs"].values():
        assert (DEPLOY / each["file"]).is_file()
    for service in SERVICES.values():
        build = service["build"]
        assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


def test_the_key_is_made_where_it_is_looked_for() -> None:
    [secret] = COMPOSE["secrets"].values()
    makefile = (DEPLOY.parent / "Makefile").read_text()
    assert f"\ncompose: deploy/{secret['file']} " in makefile
    assert f"\ndeploy/{secret['file']}:\n" in makefile


@pytest.mark.parametrize("name", SERVICES)
def test_each_has_the_settings_and_those_with_state_the_key(name: str) -> None:
    service = SERVICES[name]
    assert {"source": "fluxplain", "target": CONFIG} in service["configs"]
    key = service["environment"].get(f"{KEY}_FILE")
    secrets = [f"/run/secrets/{secret}" for secret in service.get("secrets", ())]
    assert secrets == ([key] if key else [])
    assert bool(key) == (name in {"topics", *get_args(Role)})


@pytest.mark.parametrize("name", SERVICES)
def test_each_is_confined_and_has_the_time_to_stop(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert int(service["stop_grace_period"].removesuffix("s")) > SHUTDOWN_S


@pytest.mark.parametrize("name", SERVICES)
def test_the_operator_alone_writes_models(name: str, config: Config) -> None:
    folder = f"models:{config.model.directory}"
    assert SERVICES[name]["volumes"] == [folder if name == "operator" else f"{folder}:ro"]


def test_only_this_machine_reaches_what_is_published(config: Config) -> None:
    published = {name: each["ports"] for name, each in ALL.items() if "ports" in each}
    port = config.dashboard.port
    assert published == {
        name: [f"127.0.0.1:{port}:{port}"]
        for name, port in {
            "kafka": 9092,
            "dashboard": port,
            "prometheus": 9090,
            "grafana": 3000,
        }.items()
    }
    assert f"http://127.0.0.1:{port}/" in ALL["dashboard"]["healthcheck"]["test"][-1]


def test_kafka_is_the_one_that_is_tested_and_is_found(config: Config) -> None:
    kafka = ALL["kafka"]
    assert kafka["image"] == f"apache/kafka:{kafka_version()}"
    advertised = kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert advertised == f"INSIDE://{config.kafka.bootstrap_servers},OUTSIDE://localhost:9092"


def test_prometheus_asks_all_workers_and_the_dashboard(config: Config) -> None:
    settings = read("compose/prometheus.yml")
    [job] = settings["scrape_configs"]
    [found] = job["dns_sd_configs"]
    assert found["port"] == config.health.port == config.dashboard.metrics_port
    assert found["names"] == [*get_args(Role), "dashboard"]
    files = {each["target"] for each in ALL["prometheus"]["configs"]}
    assert files == {"/etc/prometheus/prometheus.yml", *settings["rule_files"]}
    assert f'job="{job["job_name"]}"' in (DEPLOY / "grafana" / "alerts.yaml").read_text()


def test_grafana_shows_the_dashboard() -> None:
    home = ALL["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert {"source": "dashboard", "target": home} in ALL["grafana"]["configs"]
    [provider] = read("compose/grafana-dashboards.yaml")["providers"]
    assert provider["options"]["path"] == str(Path(home).parent)
    [source] = read("compose/grafana-datasources.yaml")["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
