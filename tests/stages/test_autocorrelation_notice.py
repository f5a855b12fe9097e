"""What is published when inputs resemble even old replacements."""

import pickle
from collections.abc import Iterable

import numpy as np
import pytest

from fluxplain.config.replica import Replica
from fluxplain.schemas import Change, Record
from fluxplain.stages import ModelStage, process
from fluxplain.stages.autocorrelation_watch import AutocorrelationWatch, LongDependence
from tests.explain.test_autocorrelation import autoregressive
from tests.kit import support as kit
from tests.kit.stages import modelled

AGE = 250

STEPS = [
    {**each, "x": {**each["x"], "b": float(t)}} for t, each in enumerate(kit.linear_records(500))
]


def notices(records: Iterable[Record]) -> list[Change]:
    return [each for each in kit.of_kind(records, Change) if each.kind == "autocorrelation"]


@pytest.mark.parametrize("seed", range(4))
def test_only_values_that_resemble_old_replacements_are_reported(seed: int) -> None:
    """The "long" values have the correlation 0.78 with those of 250 records before."""
    n = 80 * AGE
    columns = {
        "still": autoregressive(0.0, n, seed),
        "short": autoregressive(0.95, n, seed),
        **{
            f"shifted {at}": autoregressive(0.0, n, seed) + 3.0 * (np.arange(n) >= at)
            for at in (AGE, 2 * AGE, 4 * AGE, 8 * AGE, n // 2)
        },
        "long": autoregressive(0.999, n, seed),
        "walk": np.cumsum(autoregressive(0.0, n, seed)),
    }
    dependence = LongDependence(tuple(columns), AGE)
    found: dict[str, int] = {}
    for row in np.column_stack([*columns.values()]).tolist():
        dependence.update(dict(zip(columns, row, strict=True)))
        found |= dependence.too_long()
    assert found.keys() == {"long", "walk"}
    assert all(75 <= each < AGE for each in found.values())


def test_a_uniform_sample_has_no_warning() -> None:
    for sampler, methods in {"geometric": ["ipfi", "isage"], "uniform": ["isage"]}.items():
        explain = {"ipfi": {"sampler": sampler, "reservoir_size": 5, "warm_up": 5}}
        watch = AutocorrelationWatch(kit.linear_config(explain=explain))
        found = [method for each in STEPS for method in watch.update(each["x"])]
        assert sorted(found) == methods


@pytest.mark.slow
def test_each_method_with_replacements_is_named_once() -> None:
    found = notices(modelled(kit.linear_config(), STEPS))
    assert [each.method for each in found] == ["ipfi", "isage"]
    assert found[0].detail.startswith("iPFI: b resembles its own past for so long")
    assert found[0].detail.endswith("Raise reservoir_size, now 5")
    assert notices(modelled(kit.linear_config(), kit.linear_records(500))) == []


@pytest.mark.slow
def test_only_the_first_shard_publishes_it_and_a_restarted_one_does_not_repeat_it() -> None:
    config = kit.linear_config(explain={"features": {"a": ["ipdp"], "c": ["ipdp"]}})
    first, second = (modelled(config, STEPS, Replica("model", shard, 2)) for shard in range(2))
    assert len(notices(first)) == 2, "although it explains no feature by iPFI or iSAGE"
    assert notices(second) == []

    stage, whole = ModelStage(config, kit.STREAM), list[Record]()
    for message in kit.messages_of(STEPS):
        stage = pickle.loads(pickle.dumps(stage))
        whole += process(stage, message)
    assert notices(whole) == notices(first)
