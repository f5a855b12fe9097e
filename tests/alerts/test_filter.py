"""Which changes have an alert."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fluxplain.alerts import filter as filter_module
from fluxplain.alerts.alerted_incidents import MAX_OF_STREAM, AlertedIncidents
from fluxplain.alerts.filter import AlertFilter
from fluxplain.config import AlertSettings
from fluxplain.config.messages import explain_errors
from fluxplain.results.notes import Notes
from fluxplain.schemas import Change, Note
from fluxplain.schemas.change import Cause, CauseKind, Kind, Status
from fluxplain.schemas.methods import Watched
from tests.kit.records import STREAM, change, error_change, loss_change
from tests.kit.support import PROPERTY, make_config

ALERT = None
"""What there is no objection to."""


def objection(change: Change, **settings: Any) -> str | None:
    return AlertFilter(AlertSettings(**settings)).objection(change, 0.0)


def notice(kind: Any, **fields: Any) -> Change:
    return Change.notice(kind=kind, stream=STREAM, seq=5, detail="x", **fields)


def sent(alerts: AlertFilter, change: Change, at_s: float) -> bool:
    """Ask, deliver if there is to be an alert, and return whether there was."""
    if alerts.objection(change, at_s) is not None:
        return False
    alerts.delivered(change, at_s)
    return True


def caused(kind: CauseKind) -> Change:
    cause = Cause(kind, 0.1, 0.01, 0.1, 0.01, 0.0, 0.01)
    return replace(change("a", 1), status="confirmed", cause=cause)


def input_change(seq: int) -> Change:
    return replace(change("a", seq), kind="input", method=None, signal="mean", effect_size=0.9)


BY_CAUSE = {"causes": ["model", "both"], "statuses": ["confirmed", "unclear"]}

MINOR = replace(change("a", 1), effect_size=0.05, loss_before=0.2, loss_after=0.2)


@pytest.mark.parametrize(
    ("event", "settings", "reason"),
    [
        (change("a", 1), {}, ALERT),
        (change("a", 1), {"kinds": ["gap"]}, "kind"),
        (change("a", 1), {"methods": ["loss", "ipdp"]}, "method"),
        (change("a", 1), {"methods": ["ipfi"]}, ALERT),
        (change("a", 1), {"features": ["b"]}, "feature"),
        (change("a", 1), {"features": ["b", "a"]}, ALERT),
        (loss_change(1), {"methods": ["ipfi"]}, "method"),
        (loss_change(1), {"features": ["a"]}, ALERT),
        (notice("cold-start"), {"methods": ["ipfi"], "features": ["a"]}, ALERT),
        (notice("cold-start"), {"kinds": ["drift", "gap"]}, "kind"),
        (notice("gap", feature="a", method="ipfi"), {"features": ["b"]}, "feature"),
        (notice("gap"), {"min_effect": 1.0}, ALERT),
        (replace(change("a", 1), effect_size=0.75), {"min_effect": 0.75}, ALERT),
        (replace(change("a", 1), effect_size=0.75), {"min_effect": 0.76}, "min_effect"),
        (replace(change("a", 1), effect_size=None), {"min_effect": 1.0}, ALERT),
        (change("a", 1), {"mute": {"a": "known"}}, "mute"),
        (change("a", 1), {"mute": {"b": "known"}}, ALERT),
        (loss_change(1), {"mute": {"a": "known"}}, ALERT),
        (MINOR, {}, "min_severity"),
        (input_change(1), {}, ALERT),
        (replace(input_change(1), effect_size=0.1), {}, "min_severity"),
        (replace(input_change(1), kind="output"), {}, "kind"),
        (replace(MINOR, effect_size=0.5), {}, "min_severity"),
        (replace(MINOR, effect_size=0.5, loss_after=0.3), {}, ALERT),
        (MINOR, {"min_severity": "low"}, ALERT),
        (replace(MINOR, status="transient"), {}, "unknown"),
        (replace(loss_change(1), before=0.9, after=0.2), {}, "min_severity"),
        (replace(MINOR, loss_before=0.2, loss_after=0.3), {"min_severity": "medium"}, ALERT),
        (notice("model"), {}, ALERT),
        (replace(change("a", 1), status="noticed"), {}, ALERT),
        (replace(change("a", 1), status="noticed"), {"statuses": ["confirmed"]}, "status"),
        (replace(change("a", 1), status="confirmed"), {}, "status"),
        (replace(change("a", 1), status="confirmed"), {"statuses": ["confirmed"]}, ALERT),
        (replace(change("a", 1), status="transient"), {}, "unknown"),
        (replace(change("a", 1), learning=True), {}, "learning"),
        (replace(change("a", 1), learning=True), {"learning": True}, ALERT),
        (notice("gap"), {"statuses": ["confirmed"]}, ALERT),
        (caused("model"), BY_CAUSE, ALERT),
        (caused("both"), BY_CAUSE, ALERT),
        (caused("data"), BY_CAUSE, "cause"),
        (caused("unclear"), BY_CAUSE, "cause"),
        (caused("data"), {"statuses": ["confirmed"]}, ALERT),
        (replace(caused("data"), cause=None), BY_CAUSE, ALERT),
        (replace(loss_change(1), status="confirmed"), BY_CAUSE, ALERT),
        (notice("gap"), BY_CAUSE, ALERT),
    ],
)
def test_each_setting_excludes_what_it_names(
    event: Change, settings: dict[str, Any], reason: str | None
) -> None:
    assert objection(event, **settings) == reason


@PROPERTY
@given(
    st.sampled_from(get_args(Kind)),
    st.sampled_from([None, *get_args(Watched)]),
    st.sampled_from([None, "a", "b"]),
    st.floats(0.0, 2.0),
    st.floats(0.0, 1.0),
    st.sets(st.sampled_from(["kinds", "methods", "features"])),
)
def test_less_strict_settings_have_no_new_objection(
    kind: Kind,
    method: Watched | None,
    feature: str | None,
    effect_size: float,
    min_effect: float,
    strict: set[str],
) -> None:
    event = replace(change("a", 1), kind=kind, method=method, feature=feature)
    event = replace(event, effect_size=effect_size)
    narrow = {"kinds": ["drift"], "methods": ["ipfi"], "features": ["a"]}
    settings = {key: narrow[key] for key in strict}
    if objection(event, min_effect=min_effect, **settings) is ALERT:
        assert objection(event, min_effect=min_effect / 2, **settings) is ALERT
        for key in strict:
            looser = {k: v for k, v in settings.items() if k != key}
            assert objection(event, min_effect=min_effect, **looser) is ALERT


def test_after_an_alert_there_is_quiet_of_the_same_stream_and_feature() -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=60.0))
    assert alerts.objection(change("a", 0), 1000.0) is ALERT  # not delivered: no quiet
    assert sent(alerts, change("a", 1), 1000.0)
    assert not sent(alerts, change("a", 2, method="isage"), 1059.9)
    assert sent(alerts, change("b", 2), 1001.0)
    assert sent(alerts, change("a", 3, stream="features-1"), 1001.0)
    assert sent(alerts, loss_change(4), 1001.0)
    assert not sent(alerts, loss_change(5), 1002.0)
    assert sent(alerts, notice("gap", feature="a", method="ipfi"), 1001.0)
    # the one that was held back does not make it longer
    assert sent(alerts, change("a", 6), 1060.0)


@pytest.mark.parametrize("quiet_s", [0.0, 60.0])
def test_one_incident_is_one_alert(quiet_s: float) -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=quiet_s))
    events = [replace(change(f, 7), incident="features-0@7") for f in "abc"]
    assert [sent(alerts, event, 1000.0) for event in events] == [True, False, False]
    # a partition that is read later holds what came earlier
    assert alerts.objection(events[1], 900.0) == "incident"
    assert alerts.objection(events[2], 9000.0) == "incident"
    assert sent(alerts, replace(change("a", 99), incident="features-0@99"), 9000.0)


def test_after_a_change_that_did_not_last_the_rest_of_its_incident_is_news() -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=0.0))
    one, other, late = (
        replace(change(f, 7), incident="features-0@7", status="noticed") for f in "abc"
    )
    assert sent(alerts, one, 0.0)
    assert alerts.objection(other, 1.0) == "incident"
    assert sent(alerts, replace(one, status="transient"), 2.0)
    assert sent(alerts, late, 3.0)


def test_what_belongs_to_an_incident_and_names_none_has_no_alert_of_its_own() -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=0.0), window=1000)
    loss = replace(loss_change(5039), status="noticed")
    explained = [
        replace(change(f, 5051 + i), incident="features-0@5051") for i, f in enumerate("ab")
    ]
    assert sent(alerts, loss, 0.0)
    for each in [*explained, error_change(5060), loss_change(6039)]:
        assert alerts.objection(each, 1.0) == "incident", each
    assert sent(alerts, loss_change(6040), 4.0)
    assert sent(alerts, replace(change("a", 8000), incident="features-0@8000"), 5.0)
    assert alerts.objection(loss_change(7990), 6.0) == "incident", "its partition is read later"
    assert sent(alerts, replace(change("a", 9001), incident="features-0@9001"), 7.0)


CONCEPT = replace(change("b", 5990), status="noticed", incident="features-0@5990", effect_size=0.5)


@pytest.mark.parametrize("first", [replace(loss_change(5950), status="noticed"), CONCEPT])
def test_a_concept_change_after_inputs_that_changed_has_its_alert_and_its_outcome(
    first: Change,
) -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=0.0, statuses=["noticed", "confirmed"]))
    other = replace(change("c", 5995), status="noticed", incident="features-0@5990")
    events = [input_change(5000), input_change(5100), first, other, loss_change(5996)]
    outcomes = [replace(each, status="confirmed") for each in (first, other)]
    told = [sent(alerts, event, 0.0) for event in [*events, *outcomes]]
    assert told == [True, False, True, False, False, True, False]


def test_inputs_that_change_altogether_have_an_alert_also_in_an_incident_of_the_model() -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=0.0, min_severity="medium"))
    some, all_, more = (
        replace(input_change(seq), effect_size=effect)
        for seq, effect in ((6000, 0.2), (6010, 0.4), (6020, 0.5))
    )
    told = [sent(alerts, event, 0.0) for event in (CONCEPT, some, all_, more)]
    assert told == [True, False, True, False]


@pytest.mark.parametrize("status", ["transient", "reverted"])
def test_after_a_loss_that_did_not_last_a_new_incident_has_an_alert(status: Status) -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=0.0))
    loss = replace(loss_change(5950), status="noticed")
    assert sent(alerts, loss, 0.0)
    assert alerts.objection(CONCEPT, 1.0) == "incident"
    assert sent(alerts, replace(loss, status=status), 2.0)
    assert sent(alerts, CONCEPT, 3.0)


def test_an_incident_holds_back_nothing_of_other_streams_and_incarnations() -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=0.0))
    named = replace(CONCEPT, stream="features-1")
    assert sent(alerts, loss_change(5950), 0.0)
    for other in (CONCEPT, replace(loss_change(5960), id="0" * 12)):
        assert alerts.objection(other, 0.0) == "incident"
        assert alerts.objection(replace(other, incarnation="later"), 0.0) is ALERT
        assert alerts.objection(replace(other, stream="features-1"), 0.0) is ALERT
    assert sent(alerts, named, 0.0)
    assert alerts.objection(replace(named, id="0" * 12, incarnation="later"), 0.0) is ALERT


def test_an_incident_holds_back_nothing_for_more_than_six_hours() -> None:
    now_s = 0.0
    alerts = AlertFilter(AlertSettings(quiet_s=0.0), clock=lambda: now_s)
    assert sent(alerts, loss_change(5950), 0.0)
    now_s = 6 * 3600.0
    assert alerts.objection(CONCEPT, 0.0) == "incident"
    now_s += 1.0
    assert sent(alerts, CONCEPT, 0.0)


def test_a_change_is_compared_with_a_few_alerts_however_many_there_were() -> None:
    asked = 0

    class Counted(int):
        def __sub__(self, other: int) -> int:
            nonlocal asked
            asked += 1
            return int(self) - int(other)

    alerted = AlertedIncidents(window=1000)
    for seq in range(0, 400_000, 2_000):
        alerted.add(replace(input_change(0), seq=Counted(seq)))
    asked = 0
    assert len(alerted.of(input_change(398_000))) == 1
    assert 0 < asked <= MAX_OF_STREAM


def test_an_incident_that_becomes_more_urgent_has_another_alert() -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=0.0, min_severity="medium"))
    medium = replace(MINOR, effect_size=0.5, incident="features-0@1")
    assert sent(alerts, medium, 0.0)
    assert alerts.objection(replace(medium, feature="b", id="0" * 12), 1.0) == "incident"
    assert sent(alerts, loss_change(3), 2.0)
    assert alerts.objection(error_change(4), 3.0) == "incident"
    assert alerts.objection(replace(medium, feature="b", id="0" * 12), 4.0) == "incident"


@pytest.mark.parametrize("quiet_s", [0.0, 60.0])
def test_a_change_that_comes_again_has_no_second_alert(quiet_s: float) -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=quiet_s))
    assert sent(alerts, change("a", 1), 1000.0)
    assert alerts.objection(change("a", 1), 2000.0) == "repeated"
    assert sent(alerts, change("a", 2), 2000.0)


def test_without_quiet_time_each_change_has_an_alert() -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=0.0))
    events = [change("a", seq) for seq in range(5)]
    assert all(sent(alerts, event, 1000.0) for event in events)


@PROPERTY
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 500)), max_size=60))
def test_two_alerts_of_a_feature_are_apart_by_the_quiet_time(
    arrivals: list[tuple[str, int]],
) -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=100.0))
    last: dict[str, float] = {}
    for seq, (feature, at_s) in enumerate(sorted(arrivals, key=lambda arrival: arrival[1])):
        due = at_s - last.get(feature, -1e9) >= 100.0
        assert sent(alerts, change(feature, seq), at_s) == due
        if due:
            last[feature] = at_s


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_module, "MAX_REMEMBERED", 10)
    alerts = AlertFilter(AlertSettings())
    for seq in range(100):
        assert sent(alerts, change(f"f{seq}", seq), 0.0)
    assert alerts.objection(change("f99", 99), 0.0) == "repeated"
    assert alerts.objection(change("f0", 0), 0.0) is ALERT  # forgotten


def test_those_who_were_told_of_a_change_are_told_once_that_it_did_not_last() -> None:
    alerts = AlertFilter(AlertSettings(quiet_s=1_000.0, min_effect=0.2))
    noticed = replace(change("a", 1), status="noticed", effect_size=0.3)
    second = replace(noticed, status="transient", effect_size=0.01)
    assert sent(alerts, noticed, 0.0)
    assert sent(alerts, second, 1.0), "whatever is left, and within the quiet time"
    assert not sent(alerts, second, 2.0)
    other = replace(change("a", 2), status="noticed", effect_size=0.3)
    assert not sent(alerts, other, 3.0)
    assert alerts.objection(replace(other, status="reverted"), 4.0) == "unknown"


def refused(**settings: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        make_config(**settings)
    return explain_errors(caught.value)


@pytest.mark.parametrize("statuses", [["noticed", "confirmed"], ["transient", "reverted"]])
def test_changes_are_chosen_by_cause_only_when_it_is_known(statuses: list[str]) -> None:
    assert refused(alerts={"causes": ["model"], "statuses": statuses}) == (
        "alerts.causes is ['model'], but a cause is known when a change is confirmed: statuses "
        "must name 'confirmed' or 'unclear', and not 'noticed'"
    )
    every = list(get_args(CauseKind))
    assert make_config(alerts={"causes": every, "statuses": statuses})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"methods": ["loss"]}, "methods is ['loss']: changes of the loss have no cause"),
        (
            {"kinds": ["input", "gap"]},
            "kinds is ['input', 'gap']: only changes of the kind 'drift' have a cause",
        ),
    ],
)
def test_causes_of_changes_that_never_have_one_cannot_be_chosen(
    settings: dict[str, Any], reason: str
) -> None:
    said = refused(alerts={**BY_CAUSE, **settings})
    assert said == f"alerts.causes is ['model', 'both'], but {reason}"
    assert make_config(alerts={**settings, "statuses": ["confirmed"]})
    assert make_config(alerts={**BY_CAUSE, "methods": ["loss", "ipfi"], "kinds": ["drift", "gap"]})


def test_without_causes_none_can_be_chosen() -> None:
    reason = refused(alerts=BY_CAUSE, drift={"causes": False})
    assert reason.startswith("alerts.causes is ['model', 'both'], but drift.causes is false")


def test_a_feature_that_people_mute_sends_no_alert_from_then_until_the_mute_ends() -> None:
    notes = Notes()
    alerts = AlertFilter(AlertSettings(quiet_s=0.0), notes)
    assert sent(alerts, change("a", 1), at_s=1_000.0)
    end = "1970-01-01T01:00:00Z"
    notes.add(Note("muted", end, feature="a", stream=STREAM, text="noise", until=end))
    assert alerts.objection(change("a", 2), at_s=3_599.0) == "mute"
    assert alerts.objection(change("b", 2), at_s=3_599.0) is ALERT
    assert alerts.objection(change("a", 2, stream="other-0"), at_s=3_599.0) is ALERT
    assert alerts.objection(change("a", 3), at_s=3_600.0) is ALERT
    notes.add(Note("unmuted", end, feature="a", stream=STREAM))
    assert alerts.objection(change("a", 2), at_s=3_599.0) is ALERT
