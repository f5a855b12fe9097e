"""What `fluxplain doctor` concludes from what the roles took."""

import pytest

from fluxplain.cli.doctor.estimate import BUSY, READ_S, SENT_S, Estimate
from fluxplain.cli.doctor.measure import Measured, RoleCost
from tests.kit.support import make_config

MODEL = 0.010 - READ_S - SENT_S
PLAIN = 0.004 - READ_S - SENT_S


def estimate(*, plain_s: float = PLAIN, explainer_s: float = 0.002) -> Estimate:
    """Return the estimate of a model that takes 10 ms, of which 4 are not for explaining."""
    roles = {
        "model": RoleCost(MODEL, plain_s, taken=1.0, sent=1.0, checkpoint_bytes=1_000_000),
        "explainer": RoleCost(explainer_s, 0.0, taken=0.0, sent=0.0, checkpoint_bytes=1_000),
        "drift": RoleCost(0.001, 0.0, taken=0.0, sent=0.0, checkpoint_bytes=1_000),
    }
    return Estimate(make_config(), Measured(roles, {"evaluations": 1_000.0}, records=1, warm=1))


def test_the_slowest_role_limits_a_partition_and_all_of_them_a_core() -> None:
    found = estimate()
    assert found.slowest.name == "model"
    assert found.rate == pytest.approx(100.0)
    assert found.rate_of_one_core == pytest.approx(1 / 0.013)
    assert found.explaining == pytest.approx(1 - 0.004 / 0.013)
    assert estimate(explainer_s=0.020).rate == pytest.approx(50.0)


def test_messages_cost_besides_the_stage() -> None:
    roles = {"drift": RoleCost(0.001, 0.0, taken=3.0, sent=2.0, checkpoint_bytes=0)}
    found = Estimate(make_config(), Measured(roles, {}, records=1, warm=1))
    assert found.slowest.seconds == pytest.approx(0.001 + 3 * READ_S + 2 * SENT_S)


@pytest.mark.parametrize(
    ("rate", "partitions", "every"), [(50.0, 1, 1), (71.0, 2, 2), (139.0, 2, 6), (152.0, 3, 10)]
)
def test_a_rate_needs_partitions_or_explains_fewer(
    rate: float, partitions: int, every: int
) -> None:
    found = estimate()
    assert found.partitions_for(rate) == partitions
    assert found.every_for(rate) == every
    assert rate <= BUSY * found.rate_at(every)
    assert every == 1 or rate > BUSY * found.rate_at(every - 1)


def test_no_setting_helps_a_model_that_cannot_even_learn_in_time() -> None:
    found = estimate()
    assert found.every_for(1_000.0) is None
    assert found.budget_ms_for(1_000.0) is None
    assert found.partitions_for(1_000.0) == 15


def test_a_budget_leaves_time_for_the_messages() -> None:
    expected = 1000 * (BUSY / 100.0 - READ_S - SENT_S)
    assert estimate().budget_ms_for(100.0) == pytest.approx(expected)


def test_shards_share_only_the_explaining() -> None:
    assert estimate().rate_with_shards(2) == pytest.approx(1 / 0.007)
    assert estimate(explainer_s=0.009).rate_with_shards(2) == pytest.approx(1 / 0.009)


def test_disk_and_checkpoints_grow_with_the_rate_and_the_history() -> None:
    found = estimate()
    assert found.disk_a_day(2.0) == {"evaluations": pytest.approx(2.0 * 86_400 * 1_000)}
    assert found.checkpoint_bytes == 10 * 1_000_000 + 2 * 1_000 + 2 * 1_000
    assert found.explainers_for(100.0) == 1
    assert found.explainers_for(400.0) == 2
