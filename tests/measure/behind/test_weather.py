"""The two corrupt rows of the weather are named in the story of the change that they caused."""

import orjson

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Change
from tests.kit.support import singles
from tests.measure.behind.corruptions import scaled_logistic
from tests.measure.experiments.streams import weather

ENOUGH = 4_200
"""Rows of the weather."""

SOON = 300
"""Observations within which a change is noticed."""

USUAL = range(900, 1_100)
"""Air pressure in hPa."""


def test_a_change_names_the_two_rows_with_a_pressure_outside_of_all_before(
    data_is_there: None,
) -> None:
    rows = weather()[:ENOUGH]
    corrupt = {i: x["feat_3"] for i, (x, _) in enumerate(rows) if int(x["feat_3"]) not in USUAL}
    assert corrupt == {3595: 5503.8, 3596: 5503.1}
    config = Config(
        features=dict.fromkeys(rows[0][0], "numeric"),
        label={"type": "integer"},
        model={"factory": f"{scaled_logistic.__module__}:{scaled_logistic.__name__}"},
    )
    values = (orjson.dumps({"x": x, "y": y}) for x, y in rows)
    records = singles(LocalPipeline(config).run(values))
    changes = [each for each in records if isinstance(each, Change) and each.status == "noticed"]
    named = [{each.seq: each for each in change.evidence or ()} for change in changes]
    naming = [i for i, seqs in enumerate(named) if corrupt.keys() <= seqs.keys()]
    assert naming
    assert changes[naming[0]].seq <= min(corrupt) + SOON
    for seq, pressure in corrupt.items():
        found = named[naming[0]][seq]
        assert (found.feature, found.value) == ("feat_3", pressure)
        assert found.low is not None
        assert found.high is not None
        assert {int(found.low), int(found.high)} <= {*USUAL}
