"""A live role is killed under a real Prometheus with the shipped rules.

``python -m tests.measure.alerts`` does the same for five minutes and more, and for all rules.
"""

import shutil
from pathlib import Path

import pytest

from tests.measure.alerts.scenarios import GONE
from tests.measure.alerts.site import Site

FIRST = "FluxplainWorkerDown"
"""The alert that waits for the shortest time."""


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("prometheus") or shutil.which("apt-get")), reason="there is no Prometheus"
)
def test_nothing_fires_until_a_role_is_killed_and_then_what_should(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        site.start()
        site.pass_time(20.0)
        assert site.prometheus.fired() == []
        site.begin()
        site.workers.crash("explainer-1")
        site.wait_for({FIRST}, GONE[FIRST], is_attended=False)
        [fired] = site.prometheus.fired()
        assert (fired.alert, fired.about) == (FIRST, "explainer-1")
