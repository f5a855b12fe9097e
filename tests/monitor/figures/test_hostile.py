"""Whatever numbers a record may hold, a figure is drawn."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxplain.monitor.figures import report_page
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.selection import SelectedResults
from fluxplain.results.store import MAX_SEQ
from fluxplain.schemas.change import Curve
from tests.kit.records import METHODS, change, explanation, prediction
from tests.kit.support import SLOW_PROPERTY
from tests.monitor.figures.samples import GRID, drift_of

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1e150, -1e150])


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    grid = draw(st.lists(NUMBERS | st.text(max_size=5) | st.booleans(), max_size=4))
    return Curve(draw(st.integers(0, 10**9)), grid or [*GRID], draw(st.lists(NUMBERS, max_size=4)))


@pytest.mark.slow
@settings(SLOW_PROPERTY, max_examples=5)
@given(st.lists(NUMBERS, min_size=12, max_size=12), curves(), st.integers(0, MAX_SEQ - 10))
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_any_numbers_can_be_drawn(numbers: list[float], curve: Curve, seq: int) -> None:
    drift = replace(
        drift_of("f0"),
        seq=seq + 5,
        after_seq=seq,
        replay_seq=max(0, seq - 5),
        before=numbers[0],
        after=numbers[1],
        before_std_error=abs(numbers[2]),
        loss_before=numbers[3],
        curve_before=curve,
        curve_after=curve,
    )
    records = [
        replace(
            explanation(feature, seq + i, numbers[i], method=method, std_error=abs(numbers[-i])),
            seqs=[seq + i],
            increments=[numbers[i]],
            grid=curve.grid,
            effect=curve.effect,
        )
        for i in range(6)
        for feature in ("f0", "f1")
        for method in METHODS
    ]
    predictions = [prediction(seq + i, loss=numbers[i]) for i in range(6)]
    later = [explanation("f0", seq + 9, 0.1), change("f1", seq)]
    published = [*records, *predictions, drift, *later]
    assert report_page(SelectedResults.of(published, contexts=[ChangeContext(drift)]))
