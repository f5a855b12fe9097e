import itertools
from dataclasses import replace

import pytest

from pipeline.monitor.past import MAX_CURVES, NothingError, Past, Selection
from pipeline.monitor.rates import Rates
from schemas import Explanation
from tests.monitor.plots.samples import LENGTH, drift_of, explained, names, stream_of
from tests.monitor.records import STREAM, explanation, loss_change
from tests.support import make_config


def test_keeps_curves_evenly_spread_up_to_the_newest() -> None:
    past = Past.of(stream_of(6))
    seqs = [curve.seq for curve in past.curves["f0"]]
    assert len(seqs) <= MAX_CURVES + 1
    assert seqs[-1] == LENGTH - 1
    gaps = {b - a for a, b in itertools.pairwise(seqs[:-1])}
    assert len(gaps) == 1


@pytest.mark.parametrize(
    ("selection", "features", "methods", "seqs"),
    [
        (Selection(features=frozenset({"f1"})), ["f1"], ["ipfi", "isage", "ipdp"], (19, 2999)),
        (Selection(methods=("isage",)), [*names(6)], ["isage"], (19, 2999)),
        (
            Selection(first_seq=100, last_seq=199),
            [*names(6)],
            ["ipfi", "isage", "ipdp"],
            (119, 199),
        ),
    ],
)
def test_holds_what_is_selected(
    selection: Selection, features: list[str], methods: list[str], seqs: tuple[int, int]
) -> None:
    state = Past.of(stream_of(6), selection).state
    assert state.features == features
    assert state.methods == methods
    points = next(iter(state.series.values())).points
    assert (points[0].seq, points[-1].seq) == seqs


def test_changes_of_the_loss_are_about_all_features() -> None:
    past = Past.of(
        [*explained(["f0", "f1"]), drift_of("f0"), loss_change(99)],
        Selection(features=frozenset({"f1"})),
    )
    assert [change.method for change in past.state.changes] == ["loss"]


def test_the_smoothing_rate_can_be_chosen() -> None:
    slow, fast = explanation("a", 9, 0.1), replace(explanation("a", 9, 0.9), alpha=0.01)
    for alpha, value in ((None, 0.1), (0.01, 0.9)):
        past = Past.of([slow, fast], Selection(rates=Rates(alpha)))
        assert past.state.latest["a", "ipfi"].value == value


def test_a_stream_may_have_a_smoothing_rate_of_its_own() -> None:
    config = make_config(streams={3: {"explain": {"alpha": [0.2, 0.01]}}})
    rates = Rates.first(config)
    slow = explanation("a", 9, 0.1)
    fast = replace(slow, alpha=0.2, value=0.9, stream="fluxplain.features-3")
    records = [replace(slow, alpha=0.01), replace(fast, alpha=0.01), fast, replace(fast, alpha=0.5)]
    past = Past.of(records, Selection(rates=rates))
    assert {name: state.alphas for name, state in past.history.streams.items()} == {
        slow.stream: [0.01],
        fast.stream: [0.2],
    }
    assert [rates.of(name) for name in (None, slow.stream, fast.stream)] == [0.01, 0.01, 0.2]


def test_what_says_nothing_new_is_not_shown_as_news() -> None:
    empty = replace(explanation("a", 19, 0.5), seqs=[], increments=[])
    past = Past.of([explanation("a", 9, 0.1), empty])
    assert past.state.latest["a", "ipfi"].seq == 9
    assert past.state.newest_seq == 9


def test_if_nothing_is_selected_it_says_what_there_is() -> None:
    with pytest.raises(NothingError, match="there are no explanations to plot"):
        _ = Past.of([]).state
    for wrong in (
        Selection(stream="features-7"),
        Selection(features=frozenset({"nonsense"})),
        Selection(rates=Rates(0.5)),
    ):
        with pytest.raises(NothingError) as error:
            _ = Past.of(stream_of(6), wrong).state
        for part in (STREAM, "f0, f1", "alpha: 0.001"):
            assert part in str(error.value)


def test_the_stream_with_data_is_shown_and_another_one_if_named() -> None:
    other = [
        replace(r, stream="features-1") for r in explained(["g"]) if isinstance(r, Explanation)
    ]
    records = [*stream_of(6), *other[:1]]
    assert Past.of(records).stream == STREAM
    assert list(Past.of(records, Selection(stream="features-1")).state.features) == ["g"]
