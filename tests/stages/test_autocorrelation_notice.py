"""What is published when inputs resemble even old replacements."""

import pickle
from collections.abc import Iterable

from fluxplain.config.replica import Replica
from fluxplain.schemas import Change, Record
from fluxplain.stages import ModelStage, process
from tests.kit import support as kit
from tests.kit.stages import modelled

STEPS = [
    {**each, "x": {**each["x"], "b": float(t)}} for t, each in enumerate(kit.linear_records(400))
]


def notices(records: Iterable[Record]) -> list[Change]:
    return [each for each in kit.of_kind(records, Change) if each.kind == "autocorrelation"]


def test_each_method_with_replacements_is_named_once() -> None:
    found = notices(modelled(kit.linear_config(), STEPS))
    assert [each.method for each in found] == ["ipfi", "isage"]
    assert found[0].detail.startswith("iPFI: b resembles its own past for so long")
    assert notices(modelled(kit.linear_config(), kit.linear_records(400))) == []


def test_only_the_first_shard_publishes_it_and_a_restarted_one_does_not_repeat_it() -> None:
    config = kit.linear_config()
    first, second = (modelled(config, STEPS, Replica("model", shard, 2)) for shard in range(2))
    assert len(notices(first)) == 2
    assert notices(second) == []

    stage, whole = ModelStage(config, kit.STREAM), list[Record]()
    for message in kit.messages_of(STEPS):
        stage = pickle.loads(pickle.dumps(stage))
        whole += process(stage, message)
    assert notices(whole) == notices(first)
