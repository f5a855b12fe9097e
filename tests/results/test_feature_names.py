"""Features have the names of the settings where people read, and their own ones in records."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.alerts.formats import content
from fluxplain.config import AlertSettings
from fluxplain.drift.sentences import sentence
from fluxplain.results.feature_names import FeatureNames
from fluxplain.results.headline import headline
from fluxplain.results.published import Published
from fluxplain.results.selection import Selection
from fluxplain.results.store import Store
from fluxplain.schemas import Change, Note, Record
from fluxplain.schemas.change import Condition, Evidence, Region
from fluxplain.schemas.wording import in_short
from tests.kit import records
from tests.kit.any_records import ANY, FLOATS, maybe
from tests.kit.records import STREAM
from tests.kit.support import PROPERTY, make_config

NAMES = FeatureNames({"feat_8": "Oil pressure"}, {"feat_8": "bar"})

REGION = Region([Condition("feat_8", ">", 3.0)], coverage=0.2, share=0.8)

OUTLIER = Evidence(7, feature="feat_8", value=99.0, low=1.0, high=4.0)

CHANGE = replace(
    records.change("feat_8", 90, before=0.1, after=0.3), region=REGION, evidence=[OUTLIER]
)

OURS = replace(CHANGE, detail=sentence(CHANGE))

NUMBERS = ("before", "before_std_error", "after", "after_std_error", "effect_size", "loss_after")


def test_the_sentence_of_a_change_names_its_feature_region_and_outliers() -> None:
    shown = NAMES.change(OURS)
    assert shown.detail.count("Oil pressure") == 3
    assert "feat_8" not in shown.detail
    assert NAMES.change(replace(CHANGE, detail="of feat_8")).detail == "of feat_8"
    assert NAMES.change(shown) == shown


@PROPERTY
@given(ANY[Change] | st.builds(replace, st.just(OURS), **dict.fromkeys(NUMBERS, maybe(FLOATS))))
def test_any_change_that_can_be_read_has_names(told: Change) -> None:
    read = Change.decode(told.encode())
    named = FeatureNames({"feat_8": "Oil pressure", str(read.feature): "Age"}).change(read)
    assert named.id == read.id


@pytest.mark.parametrize("std_error", [-1.0, -0.0, 5e-324, 1.7976931348623157e308])
def test_a_standard_error_that_none_can_have_stops_no_reader(std_error: float) -> None:
    forged = replace(OURS, before_std_error=std_error, after_std_error=std_error, effect_size=-9.0)
    named = NAMES.change(Change.decode(forged.encode()))
    assert (named.feature, named.detail) == ("Oil pressure", forged.detail)


def test_the_headline_names_features_as_people_do() -> None:
    store = Store()
    for each in (records.prediction(99), records.explanation("feat_8", 99, 0.3, std_error=0.01)):
        store.add(each)
    store.add(OURS)
    text = headline(store.streams[STREAM], store.status, names=NAMES).text
    assert "Oil pressure (100 %)" in text
    assert in_short(NAMES.change(OURS)) in text
    assert "feat_8" not in text


@pytest.mark.parametrize("kind", ["json", "slack", "teams", "pagerduty"])
def test_alerts_name_features_and_send_the_record_as_it_is(kind: str) -> None:
    settings = AlertSettings.model_validate({"format": kind, "secret": "0" * 32})
    alert = content(settings, OURS, NAMES)
    assert b"of Oil pressure" in alert
    if kind == "json":
        assert orjson.loads(alert)["change"] == orjson.loads(OURS.encode())


def test_explanations_and_mutes_of_pairs_have_the_names_of_their_features() -> None:
    mute = Note("muted", "2026-03-01T12:00:00Z", feature="feat_8|age", text="noise")
    of_pair: list[Record] = [mute, records.explanation("feat_8|age", 99, 0.3)]
    for record in of_pair:
        assert getattr(NAMES.record(record), "feature") == "Oil pressure|age"  # noqa: B009


def test_names_and_units_come_from_the_settings_and_change_no_record() -> None:
    tables = {"features": {"feat_8": "numeric"}}
    shown = {"features": {"feat_8": "Oil pressure"}, "units": {"feat_8": "bar"}}
    config = make_config(**tables, dashboard=shown)
    assert FeatureNames.configured(config) == NAMES
    assert config.fingerprint() == make_config(**tables).fingerprint()


def test_figures_read_records_with_the_names_to_show() -> None:
    told = [Published(OURS, 3), Published(records.prediction(5), 3)]
    read = NAMES.reading(lambda *_: iter(told))("changes")
    assert list(read) == [Published(NAMES.change(OURS), 3), told[1]]
    only = Selection(features=frozenset({NAMES.of("feat_8")}))
    assert only.fits(NAMES.change(OURS))
