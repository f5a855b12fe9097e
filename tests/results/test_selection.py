"""The results that a figure or a report is about."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from fluxplain.results.published import Published
from fluxplain.results.selection import EVERYTHING, NothingToPlotError, SelectedResults, Selection
from fluxplain.results.stream_results import Alphas
from fluxplain.schemas import Explanation, Record
from tests.kit.records import STREAM, explanation, loss_change
from tests.kit.support import make_config
from tests.monitor.figures.samples import drift_of, explained, names, stream_of


def with_alphas(records: Iterable[Record], alphas: Alphas) -> SelectedResults:
    return SelectedResults(map(Published, records), alphas=alphas)


@pytest.mark.parametrize(
    ("selection", "features", "methods", "seqs"),
    [
        (Selection(features=frozenset({"f1"})), ["f1"], ["ipfi", "isage", "ipdp"], (19, 2999)),
        (Selection(methods=frozenset({"isage"})), [*names(6)], ["isage"], (19, 2999)),
        (
            Selection(first_seq=100, last_seq=199),
            [*names(6)],
            ["ipfi", "isage", "ipdp"],
            (119, 199),
        ),
    ],
)
def test_only_what_is_selected_is_taken(
    selection: Selection, features: list[str], methods: list[str], seqs: tuple[int, int]
) -> None:
    view = SelectedResults.of(stream_of(6), selection).view
    assert (view.features, view.methods) == (features, methods)
    points = next(iter(view.series[view.methods[0]].values())).points
    assert (points.seq[0], points.seq[-1]) == seqs


def test_changes_of_the_loss_concern_all_features() -> None:
    records = [*explained(["f0", "f1"]), drift_of("f0"), loss_change(99)]
    view = SelectedResults.of(records, Selection(features=frozenset({"f1"}))).view
    assert [change.method for change in view.changes] == ["loss"]


@pytest.mark.parametrize(("alpha", "value"), [(None, 0.1), (0.01, 0.9)])
def test_the_smoothing_rate_can_be_chosen(alpha: float | None, value: float) -> None:
    slow = explanation("a", 9, 0.1)
    fast = replace(slow, alpha=0.01, value=0.9)
    view = with_alphas([slow, fast], Alphas.only(alpha)).view
    assert view.series["ipfi"]["a"].newest.value == value


def test_a_stream_may_have_smoothing_rates_of_its_own() -> None:
    config = make_config(streams={3: {"explain": {"alpha": [0.2, 0.01]}}})
    alphas = Alphas.configured(config)
    own = "fluxplain.features-3"
    fast = replace(explanation("a", 9, 0.9), alpha=0.2, stream=own)
    records = [replace(fast, alpha=0.01), fast, replace(fast, alpha=0.5)]
    assert with_alphas(records, alphas).view.results.alphas() == [0.2]
    assert [list(alphas.of(name)) for name in (None, "s-0", own)] == [[0.01], [0.01], [0.2, 0.01]]
    assert alphas.known(own, [0.5, 0.01, 0.2]) == [0.2, 0.01]
    assert alphas.known(own, [0.5]) == [0.5]


def test_if_nothing_is_selected_the_message_lists_what_there_is() -> None:
    with pytest.raises(NothingToPlotError, match="there are no explanations to plot"):
        _ = SelectedResults.of([]).view
    for selection, alphas in (
        (Selection(streams=frozenset({"features-7"})), Alphas()),
        (Selection(features=frozenset({"nonsense"})), Alphas()),
        (EVERYTHING, Alphas.only(0.5)),
    ):
        results = SelectedResults(map(Published, stream_of(6)), selection, alphas=alphas)
        with pytest.raises(NothingToPlotError) as error:
            _ = results.view
        for part in (STREAM, "f0, f1", "alpha: 0.001", "seq: 19 to 2999"):
            assert part in str(error.value)


def test_the_stream_with_data_is_shown_and_another_one_if_named() -> None:
    other = [
        replace(r, stream="features-1") for r in explained(["g"]) if isinstance(r, Explanation)
    ]
    records = [*stream_of(6), *other[:1]]
    assert SelectedResults.of(records).stream == STREAM
    named = SelectedResults.of(records, Selection(streams=frozenset({"features-1"})))
    assert named.view.features == ["g"]
