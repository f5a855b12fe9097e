"""A Prometheus with the shipped rules, and what fired there."""

import json
import math
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

from tests.deploy.checkers.tools import ROOT, debian_program
from tests.kit.free_ports import free_ports
from tests.kit.waiting import wait_until

RULES = ROOT / "deploy" / "grafana" / "alerts.yaml"

SHIPPED = ROOT / "deploy" / "compose" / "prometheus.yml"
"""Its intervals are taken."""

STEP_S = 5
"""Seconds between two looks at what fired: shorter than the interval of the rules."""

ABOUT = ("role", "kind", "method", "feature")
"""Labels that tell an alert of one scenario from another."""


class Fired(NamedTuple):
    """A time in which an alert fired, in seconds since 1970; it ended, or the run did."""

    alert: str
    about: str
    begin: float
    end: float


class Prometheus:
    """A server that scrapes some ports of this machine, as the job `fluxplain`."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        self._url = f"http://127.0.0.1:{(port := free_ports(1))}"
        shipped: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())
        targets = [{"targets": [f"127.0.0.1:{each}" for each in ports.values()]}]
        shipped["rule_files"] = [str(RULES)]
        shipped["scrape_configs"] = [{"job_name": "fluxplain", "static_configs": targets}]
        settings = folder / "prometheus.yml"
        settings.write_text(yaml.safe_dump(shipped))
        self._names = {f"127.0.0.1:{port}": name for name, port in ports.items()}
        with (folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    debian_program("prometheus", "prometheus"),
                    f"--config.file={settings}",
                    f"--storage.tsdb.path={folder / 'tsdb'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
            )
        self._began_at = time.time()
        wait_until(self._is_ready, what=lambda: f"{self._url} is ready")

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire now."""
        asked = self._get("query", query='ALERTS{alertstate="firing"}')
        return {each["metric"]["alertname"] for each in asked["result"]}

    def fired(self) -> list[Fired]:
        """Return everything that has fired so far, by its beginning."""
        end = time.time()
        steps = math.ceil((end - self._began_at) / STEP_S)  # the last one is now
        asked = self._get(
            "query_range",
            query='ALERTS{alertstate="firing"}',
            start=end - steps * STEP_S,
            end=end,
            step=STEP_S,
        )
        found = [
            Fired(each["metric"]["alertname"], self._about(each["metric"]), *span)
            for each in asked["result"]
            for span in _spans([float(at) for at, _ in each["values"]])
        ]
        return sorted(found, key=lambda each: each.begin)

    def _about(self, labels: Mapping[str, str]) -> str:
        """Return the process, or the labels that an alert is about."""
        named = self._names.get(labels.get("instance", ""))
        return named or " ".join(labels[each] for each in ABOUT if labels.get(each))

    def _get(self, path: str, **options: Any) -> dict[str, Any]:
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(options)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
        return data

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _spans(times: list[float]) -> list[tuple[float, float]]:
    """Return the begin and end of each run of times without a gap.

    Examples
    --------
    >>> _spans([10.0, 15.0, 20.0, 60.0, 65.0])
    [(10.0, 20.0), (60.0, 65.0)]
    """
    spans: list[tuple[float, float]] = []
    for at in times:
        if spans and at - spans[-1][1] <= STEP_S:
            spans[-1] = spans[-1][0], at
        else:
            spans.append((at, at))
    return spans
