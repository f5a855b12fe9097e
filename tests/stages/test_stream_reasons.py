"""Reasons for single outputs: which observations get them, by which model, at what price."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import pytest
from pydantic import ValidationError

from fluxplain.config import Config
from fluxplain.config.messages import explain_errors
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint
from fluxplain.local import first_needed, replayed_reasons
from fluxplain.schemas import DeadLetter, Prediction, Reasons, Record
from fluxplain.stages import Message, ModelStage
from tests.kit import support as kit
from tests.kit.stages import contents, local, metered, modelled

SMALL = {"enabled": True, "reservoir_size": 10, "most_inputs": 400}

WARM = 10


def config_of(*, classes: bool = False, **reasons: Any) -> Config:
    make = kit.make_config if classes else kit.linear_config
    return make(reasons={**SMALL, **reasons})


def reasons_of(config: Config, values: Sequence[object]) -> list[Reasons]:
    return kit.of_kind(modelled(config, values), Reasons)


def values_of_classes(n: int) -> list[object]:
    return [each.value for each in kit.observations(kit.agrawal(n))]


def test_every_observation_has_reasons_once_enough_are_stored() -> None:
    found = reasons_of(config_of(), kit.linear_records(40))
    assert [each.seq for each in found] == [*range(WARM, 40)]
    assert [each.previous_seq for each in found] == [None, *range(WARM, 39)]
    assert [each.skipped for each in found] == [WARM] + [0] * (len(found) - 1)


def test_they_are_about_the_prediction_before_the_model_learns() -> None:
    records = modelled(config_of(classes=True), values_of_classes(60))
    predictions = {each.seq: each for each in kit.of_kind(records, Prediction)}
    found = kit.of_kind(records, Reasons)
    assert len(found) == 50
    for each in found:
        said = predictions[each.seq]
        assert (each.prediction, each.label) == (said.prediction, said.prediction)
        assert said.classes is not None
        assert said.probabilities is not None
        assert each.output == said.probabilities[said.classes.index(each.label)]  # type: ignore[arg-type]
        total = each.base + sum(each.contributions) + each.rest
        assert total == pytest.approx(each.output, abs=1e-12)


def test_the_largest_come_first_and_the_others_are_summed() -> None:
    whole = reasons_of(config_of(), kit.linear_records(40))
    short = reasons_of(config_of(names=1), kit.linear_records(40))
    for each, first in zip(whole, short, strict=True):
        sizes = [*map(abs, each.contributions)]
        assert sizes == sorted(sizes, reverse=True)
        assert first.names == each.names[:1]
        assert first.rest == pytest.approx(sum(each.contributions[1:]))
        assert first.values == each.values[:1]


@pytest.mark.parametrize(
    "chosen",
    [
        {"share": 0.3},
        {"at_least": 2.0},
        {"at_least": -1.0, "at_most": 4.0},
        {"share": 0.5, "at_most": 0.0},
        {"share": 0.01, "ids": [17, "x-18"]},
    ],
)
def test_the_settings_choose_observations_and_the_others_are_counted(
    chosen: Mapping[str, Any],
) -> None:
    values = kit.linear_records(200)
    values[17]["id"], values[18]["id"] = 17, "x-18"
    every = {each.seq: each for each in reasons_of(config_of(), values)}
    found = reasons_of(config_of(**chosen), values)
    seqs = [each.seq for each in found]
    low, high = chosen.get("at_least", -1e9), chosen.get("at_most", 1e9)
    asked = {seq for seq in (17, 18) if "ids" in chosen}
    able = {seq for seq, each in every.items() if low <= each.output <= high} | asked
    assert set(seqs) <= able
    assert asked <= set(seqs)
    share = chosen.get("share", 1.0)
    assert abs(len(seqs) - share * len(able)) <= 4.0 * (len(able) * share * (1 - share)) ** 0.5 + 2
    assert seqs[-1] + 1 == len(seqs) + sum(each.skipped for each in found)
    for each in found:
        assert contents([each])[0] | {"skipped": 0} == contents([every[each.seq]])[0] | {
            "skipped": 0
        }, "which others have reasons changes nothing"


@pytest.mark.slow
def test_classes_are_chosen_by_the_prediction_and_explained_each_on_its_own() -> None:
    values = values_of_classes(80)
    for predicted in (0, 1):
        found = reasons_of(config_of(classes=True, predicted=[predicted]), values)
        assert {each.prediction for each in found} == {predicted}
    both = reasons_of(config_of(classes=True, labels="all"), values)
    pairs = [both[i : i + 2] for i in range(0, len(both), 2)]
    for one, other in pairs:
        assert (one.seq, one.previous_seq) == (other.seq, other.previous_seq)
        assert {one.label, other.label} == {0, 1}
        assert one.output + other.output == pytest.approx(1.0)
    ones = reasons_of(config_of(classes=True, labels=[1, 7]), values)
    assert {each.label for each in ones} == {1}
    assert {each.prediction for each in ones} == {0, 1}


def test_the_other_records_are_the_same_with_reasons_and_without() -> None:
    values = values_of_classes(80)
    without = local(kit.make_config(), values)
    with_reasons = local(config_of(classes=True), values)
    assert [each for each in with_reasons if not isinstance(each, Reasons)] == without


def test_a_stage_that_was_pickled_gives_the_same_reasons() -> None:
    config, messages = config_of(classes=True, share=0.5), kit.observations(kit.agrawal(60))
    stage, again = (ModelStage(config, kit.STREAM) for _ in range(2))
    for message in messages:
        again = kit.pickled(again)
        assert kit.run(stage, [message]) == kit.run(again, [message])


def test_the_first_shard_gives_all_reasons() -> None:
    config, values = config_of(classes=True), values_of_classes(60)
    alone = reasons_of(config, values)
    shards = [
        kit.of_kind(modelled(config, values, Replica("model", shard, 2)), Reasons)
        for shard in (0, 1)
    ]
    assert shards == [alone, []]


def test_a_late_label_changes_nothing_of_the_reasons_which_come_with_the_observation() -> None:
    rows = kit.linear_records(40)
    arrivals = [{"x": each["x"], "id": i} for i, each in enumerate(rows)]
    labels = [{"id": i, "y": each["y"]} for i, each in enumerate(rows)]
    found = reasons_of(config_of(), [*arrivals, *labels])
    assert [each.seq for each in found] == [*range(WARM, 40)]


def test_groups_are_one_reason_without_a_value() -> None:
    explain = {"groups": {"both": ["a", "b"]}}
    config = kit.linear_config(reasons=SMALL, explain=explain)
    found = reasons_of(config, kit.linear_records(30))
    for each in found:
        values = dict(zip(each.names, each.values, strict=True))
        assert values.keys() == {"both", "c"}
        assert values["both"] is None


def test_ids_are_compared_as_texts_as_why_does() -> None:
    values = kit.linear_records(60)
    values[40]["id"], values[41]["id"], values[42]["id"] = 40, "41", 42.5
    chosen: dict[str, Any] = {"at_least": 1e6, "ids": ["40", 41, "42.5"]}
    assert [each.seq for each in reasons_of(config_of(**chosen), values)] == [40, 41, 42]


@pytest.mark.parametrize("asked", [[40, 10**16], [40.0, 1e16], ["40.0", "1e16"]])
def test_an_integer_is_the_same_id_when_it_is_written_as_a_float(asked: list[Any]) -> None:
    values = kit.linear_records(60)
    for seq, written in ((40, 40), (41, 40.0), (42, 10**16), (43, 1e16), (44, "0040")):
        values[seq]["id"] = written
    found = reasons_of(config_of(at_least=1e6, ids=asked), values)
    assert [each.seq for each in found] == [40, 41, 42, 43]


def test_values_that_were_missing_are_said_to_be_imputed() -> None:
    values = kit.linear_records(40)
    del values[30]["x"]["a"]
    values[35]["x"] |= {"a": None, "c": None}
    explain = {"groups": {"both": ["b", "c"]}}
    for more in (dict[str, Any](), {"explain": explain}):
        config = kit.linear_config(reasons=SMALL, missing={"policy": "impute"}, **more)
        records = modelled(config, values)
        absent = {each.seq: each.missing for each in kit.of_kind(records, Prediction)}
        assert (absent[30], absent[35]) == (["a"], ["a", "c"])
        for each in kit.of_kind(records, Reasons):
            members = [m for name in each.names for m in {"both": ["b", "c"]}.get(name, [name])]
            imputed = [name for name in members if name in (absent[each.seq] or [])]
            assert each.missing == (imputed or None)
            assert (each.seq == 35) == ("c" in (each.missing or []))
            assert dict(zip(each.names, each.values, strict=True))["a"] is not None


class Brittle(kit.Additive):
    """Fails where a large a meets a small b, which no record has."""

    def predict_one(self, x: Mapping[str, Any]) -> float:
        if x["a"] > 0.0 and x["b"] < 0.0:
            raise ZeroDivisionError("no such thing")
        return super().predict_one(x)


def test_a_model_that_fails_on_mixed_inputs_gives_a_dead_letter_and_learns_all_the_same() -> None:
    def value(i: int) -> dict[str, Any]:
        sign = 1.0 if i % 2 else -1.0
        return {"x": {"a": sign * (1 + i), "b": sign * (2 + i), "c": "u"}, "y": 1.0}

    config = kit.linear_config(
        model=Brittle, reasons=SMALL, explain={"methods": ["ipdp"], "features": {"c": ["ipdp"]}}
    )
    records = modelled(config, [value(i) for i in range(40)])
    letters = [
        each for each in kit.of_kind(records, DeadLetter) if each.reason.startswith("no reasons")
    ]
    assert len(letters) == 30
    assert "no reasons: the model failed: ZeroDivisionError: no such thing" in letters[0].reason
    assert len(kit.of_kind(records, Prediction)) == 40


def test_the_time_they_take_is_counted_for_them() -> None:
    stage, tally = metered(config_of())
    kit.run(stage, kit.messages_of(kit.linear_records(40)))
    assert tally.inputs["reasons"] == 40


def said(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the records without their place among those that were published."""
    others = {"previous_seq", "skipped"}
    return [{k: v for k, v in each.items() if k not in others} for each in contents(records)]


@pytest.mark.parametrize("labels", ["predicted", "all"])
def test_replayed_reasons_are_those_that_were_published(labels: str) -> None:
    config = config_of(classes=True, labels=labels, share=0.5)
    messages = kit.observations(kit.agrawal_with_drift(120, at=60))
    records = kit.run(ModelStage(config, kit.STREAM), messages)
    published = kit.of_kind(records, Reasons)
    seq = published[-1].seq
    again = replayed_reasons(config, 0, seq, messages)
    assert said(again.reasons) == said([each for each in published if each.seq == seq])
    assert again.prediction == next(
        each for each in kit.of_kind(records, Prediction) if each.seq == seq
    )


def replayed_from(config: Config, messages: Sequence[Message], seq: int, at: int) -> list[Reasons]:
    """Return the reasons by a replay from a checkpoint at an offset."""
    stage = ModelStage(config, kit.STREAM)
    kit.run(stage, messages[:at])
    start = Checkpoint(at, kit.pickled(stage))
    return replayed_reasons(config, 0, seq, messages[at:], start).reasons


@pytest.mark.sampled(2)
@pytest.mark.parametrize("at", [1, 30, 75, 110, "seq"])
def test_a_replay_from_any_checkpoint_gives_the_same(at: int | Literal["seq"]) -> None:
    config = config_of(classes=True, labels="all", share=0.5)
    early = [
        {"x": x, "y": y} if i % 3 else {"x": x, "id": i}
        for i, (x, y) in enumerate(kit.agrawal_with_drift(120, at=60))
    ]
    late = [{"id": i, "y": i % 2} for i in range(0, 120, 3)]
    # labels come 20 observations later, some after the checkpoint
    values = [*early[:20], *chain.from_iterable(zip(early[20:60], late, strict=True)), *early[60:]]
    messages = kit.messages_of(values)
    published = kit.of_kind(kit.run(ModelStage(config, kit.STREAM), messages), Reasons)
    seq = published[-1].seq
    again = replayed_from(config, messages, seq, seq if at == "seq" else at)
    assert said(again) == said([each for each in published if each.seq == seq])


def test_an_observation_without_reasons_gets_them_by_a_replay_without_any_settings() -> None:
    messages = kit.observations(kit.agrawal(150))
    [reasons] = replayed_reasons(kit.make_config(), 0, 140, messages).reasons
    assert (reasons.seq, len(reasons.names)) == (140, 9)
    assert replayed_reasons(kit.make_config(), 0, 20, messages).reasons == [], "too few are stored"
    assert replayed_reasons(kit.make_config(), 0, 999, messages).prediction is None


def test_without_reasons_in_the_settings_the_begin_of_the_replay_changes_nothing() -> None:
    config = kit.linear_config(reasons={"reservoir_size": 10})
    messages = kit.messages_of(kit.linear_records(400))
    assert first_needed(config, 0, 390) == 190
    expected = replayed_reasons(config, 0, 390, messages).reasons
    assert len(expected) == 1
    for at in (1, 100, 190):
        assert replayed_from(config, messages, 390, at) == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 0.0}, "reasons.share"),
        ({"warm_up": 11}, "reasons.warm_up is 11, but must be at most the reservoir_size, 10"),
        ({"at_least": 2.0, "at_most": 1.0}, "reasons.at_least is 2.0, but must be at most"),
        ({"labels": []}, "reasons.labels"),
        ({"labels": "any"}, "reasons.labels"),
        ({"names": 0}, "reasons.names"),
        ({"at_least": float("nan")}, "reasons.at_least"),
        ({"at_most": float("inf")}, "reasons.at_most"),
        ({"ids": [1.5, float("nan")]}, "reasons.ids"),
    ],
)
def test_mistakes_in_the_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        config_of(**settings)
    assert message in explain_errors(caught.value)


@pytest.mark.parametrize(
    ("label", "settings", "message"),
    [
        (
            "number",
            {"predicted": ["fraud"]},
            "reasons.predicted is ['fraud'], but label.type is 'number', so there are no classes: "
            "leave it out, and choose by reasons.at_least and at_most",
        ),
        ("none", {"predicted": [True]}, "reasons.predicted is [True], but label.type is 'none'"),
        ("number", {"labels": ["a"]}, "reasons.labels is ['a'], but label.type is 'number'"),
        (
            "boolean",
            {"predicted": ["fraud"]},
            "reasons.predicted is ['fraud'], but label.type is 'boolean', so classes must be "
            "true or false",
        ),
        ("boolean", {"labels": [1]}, "reasons.labels is [1], but label.type is 'boolean'"),
        ("integer", {"predicted": [1, True]}, "so classes must be integers"),
        ("string", {"predicted": [1]}, "so classes must be texts"),
        ("boolean", {"at_least": 1.5}, "reasons.at_least is 1.5, but must be at most 1"),
        ("integer", {"at_most": -0.1}, "reasons.at_most is -0.1, but must be at least 0"),
    ],
)
def test_what_no_output_can_meet_is_a_mistake(
    label: str, settings: dict[str, Any], message: str
) -> None:
    about = {"label": {"type": label}, "explain": {"loss": "auto"}}
    with pytest.raises(ValidationError) as caught:
        kit.make_config(**about, reasons={"enabled": True, **settings})
    assert message in explain_errors(caught.value)


@pytest.mark.parametrize(
    ("label", "settings"),
    [
        ("boolean", {"predicted": [True], "labels": [True, False], "at_least": 1.0}),
        ("string", {"predicted": ["fraud"], "labels": "all"}),
        ("number", {"at_least": 1.5, "labels": "all"}),
    ],
)
def test_what_an_output_can_meet_is_accepted(label: str, settings: dict[str, Any]) -> None:
    about = {"label": {"type": label}, "explain": {"loss": "auto"}}
    assert kit.make_config(**about, reasons={"enabled": True, **settings})


def test_conditions_of_reasons_that_are_switched_off_are_no_mistake() -> None:
    off: dict[str, Any] = {"enabled": False, "predicted": ["fraud"], "at_least": 1.5}
    assert kit.make_config(reasons=off)
