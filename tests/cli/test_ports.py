"""The ports of workers are checked before any of them starts."""

import pytest

from fluxplain.cli.ports import LARGEST, check_ports
from fluxplain.config import ConfigError
from tests.kit.free_ports import free_ports, last_port_taken
from tests.kit.support import make_config


def test_free_ports_and_port_0_are_accepted() -> None:
    check_ports(make_config(), 100)
    check_ports(make_config(health={"port": free_ports(3)}), 1)


def test_a_port_that_is_taken_is_named() -> None:
    with last_port_taken(3) as first:
        config = make_config(health={"port": first})
        with pytest.raises(ConfigError, match=f"none can listen at {first + 2}: "):
            check_ports(config, 1)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (LARGEST - 4, f"{LARGEST} is the largest"),
        (20_001, "dashboard.port is 20006"),
        (20_007, r"dashboard\.metrics_port is 20008"),
    ],
)
def test_ports_of_others_or_beyond_the_last_are_refused(first: int, reason: str) -> None:
    config = make_config(health={"port": first}, dashboard={"port": 20_006, "metrics_port": 20_008})
    with pytest.raises(ConfigError, match=reason):
        check_ports(config, 2)
