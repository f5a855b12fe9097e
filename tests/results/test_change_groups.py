"""What changed together, and what of it matters most."""

from dataclasses import replace

from fluxplain.results.change_groups import Incident, ranked
from fluxplain.results.notes import NO_NOTES, Notes
from fluxplain.schemas import Change, Note
from tests.kit.records import STREAM, change, error_change, loss_change

AT = "2026-03-01T12:00:00Z"

LOSS = replace(loss_change(5039), direction="rose", effect_size=0.8)

CONCEPT = replace(
    change("temperature", 5051, method="isage", before=0.26, after=-0.5),
    incident="features-0@5051",
    effect_size=1.18,
    loss_before=0.228,
    loss_after=1.15,
)

OUTPUT = replace(
    error_change(5070), kind="output", method=None, signal="share", category=True, effect_size=0.4
)

RECOVERED = replace(loss_change(5800), direction="fell", before=1.15, after=0.23, effect_size=0.8)

BROKEN = replace(change("oil", 7510), kind="input", method=None, signal="mean", effect_size=0.9)


def found(*changes: Change, notes: Notes = NO_NOTES) -> list[Incident]:
    return ranked(changes, notes, window=1000)


def test_what_belongs_to_an_incident_is_in_it_whatever_noticed_it_first() -> None:
    concept, broken = found(BROKEN, RECOVERED, OUTPUT, error_change(5060), CONCEPT, LOSS)
    assert concept.changes[0] == CONCEPT.id
    assert len(concept.changes) == 5
    assert (concept.first, concept.last, concept.severity) == (5039, 5800, "high")
    assert concept.text == (
        "iSAGE of temperature fell from 0.26 to -0.5, with 4 other changes; the loss rose"
    )
    assert (broken.changes, broken.severity, broken.effect) == ([BROKEN.id], "high", 0.9)


def test_what_is_urgent_names_the_incident() -> None:
    better = replace(
        change("temperature", 6875, method="ipdp"),
        incident="features-0@6875",
        effect_size=0.11,
        loss_before=0.5,
        loss_after=0.4,
    )
    [incident] = found(better, BROKEN)
    assert incident.changes == [BROKEN.id, better.id]
    assert incident.text.startswith("input oil rose")


def test_two_incidents_of_explanations_stay_two_however_near() -> None:
    other = replace(change("b", 5900), incident="features-0@5900", effect_size=0.2)
    assert [each.first for each in found(CONCEPT, other)] == [5051, 5900]


def test_what_lasts_and_nobody_knows_comes_first_then_severity_and_effect() -> None:
    small, large, learned, passed, known = (
        replace(change(name, seq), incident=f"features-0@{seq}", effect_size=effect)
        for name, seq, effect in (
            *(("small", 1000, 0.02), ("large", 3000, 0.3), ("learned", 5000, 0.9)),
            *(("passed", 7000, 0.9), ("known", 9000, 0.9)),
        )
    )
    learned, passed = replace(learned, learning=True), replace(passed, status="transient")
    notes = Notes([Note("acknowledged", AT, change=known.id, stream=STREAM)])
    order = found(passed, learned, known, small, large, notes=notes)
    expected = [large, small, known, learned, passed]
    assert [each.changes[0] for each in order] == [each.id for each in expected]
    assert [each.severity for each in order[:2]] == ["high", "low"]


def test_muted_features_and_notices_are_left_out() -> None:
    notes = Notes([Note("muted", AT, feature="oil", text="noise")])
    gap = Change.notice(kind="gap", stream=STREAM, seq=7, detail="some were lost")
    assert found(BROKEN, gap, notes=notes) == []
