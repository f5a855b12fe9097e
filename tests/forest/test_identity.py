"""The arrays are River's models: the same predictions, trees, drifts and random numbers."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest
from river import drift

from fluxplain.forest import as_arrays
from tests.forest.models import (
    CASES,
    KINDS,
    learn_both,
    outcome,
    pair,
    predicted,
    stream_of,
    summary,
)
from tests.forest.parameters import LIMITED
from tests.forest.streams import STREAMS

RECORDS = 800

UNTIL_IT_IS_TOO_LARGE = 600
"""Records after which a tree has outgrown its memory."""

QUICK = "late_classes"
"""The stream of the quick suite."""

QUICK_LIMIT = ("HoeffdingTreeClassifier", "numbers", False)
"""The tree of the quick suite that outgrows its memory; each takes a process of its own."""

ADAPTIVE = [kind for kind in KINDS if "Adaptive" in kind]

TREES = {kind for kind in KINDS if "Tree" in kind}
"""Kinds of one tree, for which the quick suite tries every parameter."""

FAR = {"ARFRegressor", "HoeffdingAdaptiveTreeRegressor"}
"""Kinds that show errors to detectors, which cannot be too large."""


def marks(kind: str, parameters: str, stream: str) -> list[pytest.MarkDecorator]:
    """Return whether a combination is for the slow suite."""
    is_quick = stream == QUICK and (parameters == "defaults" or kind in TREES)
    return [] if is_quick else [pytest.mark.slow]


def is_tested(kind: str, parameters: str, stream: str) -> bool:
    """Return whether a combination is tested; ``python -m tests.forest`` takes all."""
    places = [*KINDS[kind][3]].index(parameters), [*STREAMS].index(stream)
    return stream == QUICK or parameters == "defaults" or sum(places) % 40 == 0


@pytest.mark.sampled(24)
@pytest.mark.parametrize(
    ("kind", "parameters", "stream"),
    [
        pytest.param(*case, stream, marks=marks(*case, stream))
        for case in CASES
        for stream in STREAMS
        if is_tested(*case, stream)
    ],
)
def test_it_gives_rivers_numbers(kind: str, parameters: str, stream: str) -> None:
    given = KINDS[kind][3][parameters]
    river, ours = learn_both(*pair(kind, given), stream_of(kind, stream, RECORDS, given))
    # River does not switch off a feature whose name is 0; adaptive trees switch none off
    has_zero = stream in {"digits", "sea"} and kind != "HoeffdingAdaptiveTreeClassifier"
    gives_up = "poor features off" in parameters and has_zero
    if kind in FAR and stream == "magnitudes":  # leaves' models explode
        assert ours.reason in {None, "a prediction is far from the target"}
    else:
        assert (ours.river is not None) == gives_up
    assert summary(ours) == summary(river)
    assert summary(ours.to_river()) == summary(river)


def outgrow(kind: str, stream: str, *, stops: bool) -> str | None:
    """Compare trees that outgrow their memory; return why they go on as River's."""
    given = {**LIMITED, "stop_mem_management": stops}
    records = stream_of(kind, stream, UNTIL_IT_IS_TOO_LARGE, given)
    river, ours = learn_both(*pair(kind, given), records)
    assert summary(ours.to_river()) == summary(river)
    return ours.reason  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stream", "stops"),
    [
        pytest.param(*each, marks=[] if each == QUICK_LIMIT else pytest.mark.slow)
        for kind in KINDS
        for each in ((kind, "numbers", False), (kind, "numbers", True), (kind, "categories", False))
        # members of an ensemble are such trees
        if kind in TREES or each == (kind, "numbers", False)
        # sizes are those of a copy: here, River would switch off one leaf more of an adaptive tree
        if each != ("HoeffdingAdaptiveTreeClassifier", "categories", False)
    ],
)
def test_a_tree_that_outgrows_its_memory_goes_on_as_rivers(
    kind: str, stream: str, *, stops: bool
) -> None:
    # sizes depend on the attributes of all objects that a process has had
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        reason = pool.submit(outgrow, kind, stream, stops=stops).result()
    assert stops or reason in {"a tree has reached max_size", "a tree is near max_size"}


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_an_adaptive_tree_goes_on_as_rivers_before_it_outgrows_its_memory(kind: str) -> None:
    given = {**LIMITED, "max_size": 0.7, "memory_estimate_period": 250}
    river, ours = pair(kind, given)
    for x, y in stream_of(kind, "late_classes", 3000):
        river.learn_one(x, y)
        ours.learn_one(x, y)
        if ours.reason is not None:
            break
    assert ours.reason == "a tree is near max_size"
    assert river.n_inactive_leaves == 0
    assert summary(ours) == summary(river)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_no_float_holds_goes_on_with_rivers_objects(kind: str) -> None:
    stream = stream_of(kind, "numbers", 300)
    river, ours = learn_both(*pair(kind, {}), [*stream, ({**stream[0][0], "salary": 2**60}, 1)])
    assert ours.reason == f"no float holds {2**60}"
    assert summary(ours) == summary(river)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_empty_observations_may_come_first(kind: str) -> None:
    first, second = (0.0, 1.0) if kind.endswith("Regressor") else ("p", "q")
    stream = [({}, first), ({}, second), *stream_of(kind, "late_classes", 600)]
    river, ours = learn_both(*pair(kind, {}), stream)
    assert ours.river is None
    assert summary(ours) == summary(river)


@pytest.mark.parametrize("kind", ["ARFClassifier", "HoeffdingTreeClassifier", *ADAPTIVE])
def test_changed_parameters_go_on_with_rivers_objects(kind: str) -> None:
    stream = stream_of(kind, "categories", 800)
    both = learn_both(*pair(kind, {}), stream[:300])
    for model in both:
        model.mutate({"grace_period": 20, "tau": 0.4})
    for x, y in stream[300:]:
        assert predicted(both[1], x) == predicted(both[0], x)
        for model in both:
            model.learn_one(x, y)
    assert both[1].reason == "its parameters were changed"


@pytest.mark.parametrize("kind", ["HoeffdingTreeClassifier", *ADAPTIVE])
def test_a_negative_weight_goes_on_with_rivers_objects(kind: str) -> None:
    river, ours = pair(kind, {})
    for x, y in stream_of(kind, "numbers", 100):
        river.learn_one(x, y)
        ours.learn_one(x, y)
    learned = [outcome(partial(model.learn_one, w=-1.0), x, y) for model in (river, ours)]
    assert learned[0] == learned[1]
    assert ours.reason == "a weight is -1.0"
    assert summary(ours) == summary(river)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [None, float("nan")])
def test_a_label_that_equals_no_prediction_goes_on_with_rivers_objects(
    kind: str, label: float | None
) -> None:
    stream = STREAMS["numbers"](200)
    _, ours = learn_both(*pair(kind, {}), [(x, float(y)) for x, y in stream])
    outcome(ours.learn_one, stream[0][0], label)
    what = "target" if kind.endswith("Regressor") else "label"
    assert ours.reason == f"a {what} is {label}"


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("HoeffdingAdaptiveTreeClassifier", "switch_significance", 2.5),
        ("HoeffdingAdaptiveTreeClassifier", "switch_significance", 0.0),
        ("HoeffdingAdaptiveTreeClassifier", "drift_window_threshold", -1),
        ("HoeffdingAdaptiveTreeRegressor", "switch_significance", None),
        ("HoeffdingAdaptiveTreeRegressor", "drift_window_threshold", float("inf")),
    ],
)
def test_odd_parameters_of_an_adaptive_tree_stay_with_rivers_objects(
    kind: str, name: str, value: float | None
) -> None:
    river, ours = pair(kind, {name: value})
    assert as_arrays(river) is river
    learn_both(river, ours, stream_of(kind, "recurring", 600))
    assert ours.reason == f"{name} is {value}"


def test_a_regressor_with_a_detector_of_mistakes_stays_with_rivers_objects() -> None:
    detector = drift.binary.DDM(warm_start=10)
    river, ours = pair("HoeffdingAdaptiveTreeRegressor", {"drift_detector": detector})
    assert as_arrays(river) is river
    learn_both(river, ours, stream_of("HoeffdingAdaptiveTreeRegressor", "recurring", 300))
    assert ours.reason == "its detector is for errors that are 0 or 1"
