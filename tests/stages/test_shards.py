"""Shards of the model role: together they publish what a single one does, bit for bit."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.schemas import DeadLetter, Evaluation, Prediction, Record
from fluxplain.stages import Message, ModelStage, contrasts
from tests.kit import support as kit
from tests.kit.settings import all_methods

LINEAR = kit.linear_records(60)

LONGER = kit.linear_records(200)

OBSERVED = {record["x"]["b"] for record in (*LINEAR, *LONGER)}


class Picky:
    """Fails at times on a value of ``b`` that was never observed, as grid points are."""

    _learned = 0

    def predict_one(self, x: Mapping[str, Any]) -> float:
        if self._learned % 3 == 0 and x["b"] not in OBSERVED:
            raise RuntimeError(f"b is never {x['b']}")
        return float(x["a"]) + self._learned

    def learn_one(self, _x: Mapping[str, Any], _y: float) -> None:
        self._learned += 1


class Silent:
    """Names no class before it has learned often."""

    _learned = 0

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[int, float]:
        p = float(x["age"]) / 100
        return {0: p, 1: 1 - p} if self._learned > 60 else {}

    def learn_one(self, _x: Mapping[str, Any], _y: int) -> None:
        self._learned += 1


class Sparse:
    """Leaves out classes with small probabilities."""

    _learned = 0

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[str, float]:
        a, b = abs(float(x["a"])), abs(float(x["b"])) + self._learned / 100
        shares = {"low": a, "mid": b, "high": (a + b) / 3}
        total = sum(shares.values())
        return {label: share / total for label, share in shares.items() if share > 0.3 * total}

    def learn_one(self, _x: Mapping[str, Any], _y: str) -> None:
        self._learned += 1


class Shuffled(Sparse):
    """Leaves out classes, and gives them in an order that depends on the input."""

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[str, float]:
        a, b = abs(float(x["a"])), abs(float(x["b"])) + self._learned / 100
        sizes = {"low": a, "mid": b, "high": (a + b) / 3, "top": ord(x["c"]) % 3 + 0.1}
        order = sizes if float(x["a"]) > 0 else reversed(sizes)
        total = sum(sizes.values())
        return {label: sizes[label] / total for label in order if sizes[label] > 0.2 * total}


def hostile(messages: Sequence[Message]) -> list[Message]:
    """Put what cannot be used, and what has no label, between observations."""
    mixed: list[Message] = []
    for each in messages:
        if each.offset % 7 == 3:
            mixed.append(kit.message(len(mixed), b"not JSON"))
        mixed.append(Message(each.topic, each.partition, len(mixed), each.key, each.value))
    return mixed


def forest() -> tuple[Config, list[Message]]:
    config = kit.make_config(
        model={"factory": "river.forest:ARFClassifier", "params": {"n_models": 3, "seed": 1}},
        explain={"loss": "brier", "isage": {"inner_samples": 2}},
    )
    return config, hostile(kit.observations(kit.agrawal(400)))


def linear() -> tuple[Config, list[Message]]:
    return kit.linear_config(), hostile(kit.messages_of(LINEAR))


def failing() -> tuple[Config, list[Message]]:
    config = kit.linear_config(model=Picky)
    return config, kit.messages_of(LINEAR)


def failing_older() -> tuple[Config, list[Message]]:
    """A model that fails on some of the inputs on which it is compared with an older one."""
    config, _ = failing()
    return config, kit.messages_of(LONGER)


def with_imputer(imputer: str) -> tuple[Config, list[Message]]:
    """Both methods with the imputer, for long enough that trees split."""
    settings = {"imputer": imputer, "reservoir_size": 5, "inner_samples": 2}
    config = kit.linear_config(explain={"ipfi": settings, "isage": settings})
    return config, kit.messages_of(kit.linear_records(450))


def pairs() -> tuple[Config, list[Message]]:
    """Surfaces beside curves, whose features other shards may have."""
    ipdp = {"storage_size": 5, "grid_size": 3, "entrance_probability": 0.7}
    config = kit.linear_config(
        explain={
            "ipfi": {"reservoir_size": 2},  # warm before the curves are
            "ipdp": {**ipdp, "pairs": [["a", "b"], ["c", "a"]]},
            "groups": {"one": ["b", "c"]},
        }
    )
    return config, hostile(kit.messages_of(LINEAR))


def groups() -> tuple[Config, list[Message]]:
    """More shards than players of iPFI: some have nothing but curves to ask about."""
    settings = {"reservoir_size": 5, "inner_samples": 2}
    explain = {"ipfi": settings, "isage": settings, "groups": {"all": ["c", "a", "b"]}}
    return kit.linear_config(explain=explain), hostile(kit.messages_of(LINEAR))


def groups_of_a_forest() -> tuple[Config, list[Message]]:
    config, messages = forest()
    groups = {"house": ["hyears", "hvalue", "zipcode"], "income": ["salary", "commission"]}
    isage = {"inner_samples": 2, "imputer": "observational"}
    explain = {"loss": "brier", "isage": isage, "groups": groups}
    return kit.make_config(model=config.model.model_dump(), explain=explain), messages


def late_class() -> tuple[Config, list[Message]]:
    """A tree of which some leaves have met a class that others have not."""
    factory = "river.tree:HoeffdingTreeClassifier"
    params = {"grace_period": 20, "delta": 0.1, "tau": 0.5}
    config = kit.make_config(
        model={"factory": factory, "params": params}, explain={"loss": "brier"}
    )
    records = [
        (x, 2 if t > 200 and float(x["age"]) > 70 else y)
        for t, (x, y) in enumerate(kit.agrawal(400))
    ]
    return config, kit.observations(records)


def no_class() -> tuple[Config, list[Message]]:
    """A model that knows no class yet when the reservoirs are warm."""
    model = {"factory": "tests.stages.test_shards:Silent", "params": {}}
    return kit.make_config(model=model, explain={"loss": "brier"}), kit.observations(
        kit.agrawal(100)
    )


def classes_left_out() -> tuple[Config, list[Message]]:
    """A model whose classes depend on the input."""
    return several_classes(Sparse, {"loss": "cross_entropy"}, LINEAR * 4)


def classes_in_any_order() -> tuple[Config, list[Message]]:
    """All methods about a model whose order of classes depends on the input, too."""
    explain = {"loss": "cross_entropy", **all_methods(5, 2, 3), "groups": {"one": ["b", "c"]}}
    return several_classes(Shuffled, explain, LONGER)


def several_classes(
    model: type[Sparse], explain: dict[str, Any], records: Sequence[Mapping[str, Any]]
) -> tuple[Config, list[Message]]:
    config = kit.linear_config(model=model, label={"type": "string"}, explain=explain)
    labelled = [{**each, "y": ["low", "mid", "high"][i % 3]} for i, each in enumerate(records)]
    return config, kit.messages_of(labelled)


CASES: dict[str, Callable[[], tuple[Config, list[Message]]]] = {
    "no class at first": no_class,
    "a class that comes late": late_class,
    "classes that are left out": classes_left_out,
    "classes in any order": classes_in_any_order,
    "groups": groups,
    "groups of a forest": groups_of_a_forest,
    "pairs and a group": pairs,
    "product": partial(with_imputer, "product"),
    "observational": partial(with_imputer, "observational"),
    "forest": forest,
    "linear": linear,
    "a model that fails on changed values": failing,
    "an older model that fails on changed values": failing_older,
}


def of_shards(config: Config, messages: Iterable[Message], shards: int) -> list[list[Record]]:
    """Return what each shard publishes."""
    stages = [ModelStage(config, kit.STREAM, Replica("model", i, shards)) for i in range(shards)]
    return [kit.run(stage, list(messages)) for stage in stages]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shards", [3, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "case",
    [pytest.param(n, marks=[pytest.mark.slow] if "forest" in n else []) for n in CASES],
)
def test_shards_publish_what_a_single_one_does(
    case: str, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contrasts, "AGE", 20)  # so that there are some
    config, messages = CASES[case]()
    whole = kit.run(ModelStage(config, kit.STREAM), messages)
    published = of_shards(config, messages, shards)
    everything = [record.encode() for records in published for record in records]
    assert sorted(everything) == sorted(record.encode() for record in whole)
    assert len(kit.of_kind(whole, Evaluation)) > 100

    together: dict[str, list[Evaluation]] = {}
    for i, records in enumerate(published):
        mine = kit.by_feature(records)
        assert mine.keys() <= set(Replica("model", i, shards).share(config.explained))
        together |= mine
    assert together == kit.by_feature(whole), "in the order of the observations"


def test_a_feature_on_whose_changed_values_the_model_fails_is_a_dead_letter() -> None:
    config, messages = failing()
    published = kit.run(ModelStage(config, kit.STREAM), messages)
    letters = kit.of_kind(published, DeadLetter)
    assert {letter.key for letter in letters} == {"b"}
    reason = "cannot explain b: the model failed: RuntimeError: b is never"
    assert all(reason in letter.reason for letter in letters)
    assert [p.seq for p in kit.of_kind(published, Prediction)] == list(range(len(LINEAR)))
    runs = kit.by_feature(published)
    # all go on: of b there is an evaluation in which nothing was asked
    assert len(runs["a"]) == len(runs["c"]) == len(runs["b"])
    nothing = [[None]] * 3
    empty = [run.seqs[0] for run in runs["b"] if [*run.outputs.values()] == nothing]
    assert {letter.seq for letter in letters} <= set(empty)
    for each in runs.values():
        seqs = [run.seqs[0] for run in each]
        assert [run.previous_seq for run in each] == [None, *seqs[:-1]]
