"""The arrays are River's models: the same predictions, trees, drifts and random numbers."""

import pytest

from tests.forest.models import CASES, KINDS, LIMITED, learn_both, pair, summary
from tests.forest.streams import STREAMS

RECORDS = 1500

QUICK = "late_classes"
"""The stream on which the quick suite tries every parameter."""


@pytest.mark.parametrize(
    ("kind", "parameters", "stream"),
    [
        pytest.param(
            *case, stream, marks=() if "defaults" in case or stream == QUICK else pytest.mark.slow
        )
        for case in CASES
        for stream in STREAMS
    ],
)
def test_it_gives_rivers_numbers(kind: str, parameters: str, stream: str) -> None:
    given = KINDS[kind][3][parameters]
    river, ours = learn_both(*pair(kind, given), STREAMS[stream](RECORDS))
    # River does not switch off a feature whose name is 0
    has_zero = stream in {"digits", "sea"}
    assert (ours.river is not None) == (parameters == "poor features off" and has_zero)
    assert summary(ours) == summary(river)
    assert summary(ours.to_river()) == summary(river)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", ["numbers", "categories"])
@pytest.mark.parametrize("stops", [False, True])
def test_a_tree_that_outgrows_its_memory_goes_on_as_rivers(
    kind: str, stream: str, *, stops: bool
) -> None:
    given = {**LIMITED, "stop_mem_management": stops}
    river, ours = learn_both(*pair(kind, given), STREAMS[stream](RECORDS))
    assert stops or ours.reason == "a tree has reached max_size"
    assert summary(ours.to_river()) == summary(river)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_no_float_holds_goes_on_with_rivers_objects(kind: str) -> None:
    stream = STREAMS["numbers"](300)
    river, ours = learn_both(*pair(kind, {}), [*stream, ({**stream[0][0], "salary": 2**60}, 1)])
    assert ours.reason == f"no float holds {2**60}"
    assert summary(ours) == summary(river)


@pytest.mark.parametrize("kind", KINDS)
def test_empty_observations_may_come_first(kind: str) -> None:
    stream = [({}, "p"), ({}, "q"), *STREAMS["late_classes"](600)]
    river, ours = learn_both(*pair(kind, {}), stream)
    assert ours.river is None
    assert summary(ours) == summary(river)


@pytest.mark.parametrize("kind", KINDS)
def test_changed_parameters_go_on_with_rivers_objects(kind: str) -> None:
    stream = STREAMS["categories"](800)
    both = learn_both(*pair(kind, {}), stream[:300])
    for model in both:
        model.mutate({"grace_period": 20, "tau": 0.4})
    for x, y in stream[300:]:
        river, ours = (model.predict_proba_one(x) for model in both)
        assert ours == river
        for model in both:
            model.learn_one(x, y)
    assert both[1].reason == "its parameters were changed"


def test_a_negative_weight_goes_on_with_rivers_objects() -> None:
    river, ours = pair("HoeffdingTreeClassifier", {})
    for x, y in STREAMS["numbers"](100):
        river.learn_one(x, y)
        ours.learn_one(x, y)
    river.learn_one(x, y, w=-1.0)
    ours.learn_one(x, y, w=-1.0)
    assert ours.reason == "a weight is negative"
    assert summary(ours) == summary(river)
