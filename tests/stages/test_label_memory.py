"""Whatever waits for a label, or for its observation, takes bounded memory."""

import pickle
from dataclasses import replace
from typing import Any

import pytest

from fluxplain.config import LabelSettings
from fluxplain.schemas import DeadLetter, LateLabel
from fluxplain.stages.intake.late_labels import MAX_KEPT_BYTES, LateLabels
from fluxplain.stages.intake.sample import Labelled, Sample
from fluxplain.stages.join_stage import MAX_HEADERS
from fluxplain.stages.limits import HEADER_MEMORY_BYTES, MAX_TEXT
from tests.kit.stages import modelled
from tests.kit.support import linear_config, message, of_kind


def test_where_no_label_comes_later_none_is_remembered() -> None:
    def state(n: int) -> int:
        labels = LateLabels(LabelSettings())
        for i in range(n):
            labels.advance(message(i, None), is_observation=True)
            assert labels.observe(i, True, []) is True
        return len(pickle.dumps(labels))

    assert state(1_000) < state(0) + 10


def test_labels_alone_do_not_fill_the_memory() -> None:
    labels = linear_config(label={"type": "number", "wait": 3})
    letters = of_kind(modelled(labels, [{"id": i, "y": 3.0} for i in range(10)]), DeadLetter)
    assert [letter.offset for letter in letters] == list(range(7))


@pytest.mark.parametrize("kind", ["labels", "observations"])
def test_large_messages_do_not_fill_the_memory(kind: str) -> None:
    size, n = 900_000, 2 * MAX_KEPT_BYTES // 900_000
    config = linear_config(label={"type": "number", "unlabelled": "dead-letter"})
    fields = {"y": 3.0} if kind == "labels" else {"x": {"a": 1.0, "b": 2.0, "c": "u"}}
    values = ({**fields, "id": i, "note": "x" * size} for i in range(n))
    letters = of_kind(modelled(config, values), DeadLetter)
    kept = n - len(letters)
    assert [letter.offset for letter in letters] == list(range(len(letters)))
    assert MAX_KEPT_BYTES - size < kept * size <= MAX_KEPT_BYTES


def test_many_headers_do_not_fill_the_memory() -> None:
    headers = {f"h{i}": b"" for i in range(MAX_HEADERS)}
    labels = LateLabels(LabelSettings(type="number"))
    letters: list[Any] = []
    n = 2 * MAX_KEPT_BYTES // (HEADER_MEMORY_BYTES * MAX_HEADERS)
    for i in range(n):
        came = replace(message(i, None), headers=headers)
        labels.advance(came, is_observation=False)
        labels.join(Labelled(LateLabel(id=i, y=1.0), came), letters)
    assert [letter.offset for letter in letters] == list(range(len(letters)))
    assert len(letters) > n // 2


def test_long_categories_do_not_fill_the_memory() -> None:
    """Nor do they where nothing of what waits can become a dead letter."""
    size, n = 100 * MAX_TEXT, 2 * MAX_KEPT_BYTES // (100 * MAX_TEXT)
    labels = LateLabels(LabelSettings())
    for i in range(n):
        x: dict[str, Any] = {f"c{k}": f"{i} {k}".ljust(MAX_TEXT, "c") for k in range(100)}
        came = message(i, None)
        assert not labels.advance(came, is_observation=True)
        labels.wait(Sample(i, x, None, i, None, came), None, [])
    told = labels.counts
    assert told is not None
    assert MAX_KEPT_BYTES - size < told.waiting * size <= MAX_KEPT_BYTES
    assert told.missing == n - told.waiting


def test_long_labels_do_not_fill_the_memory() -> None:
    """As what is known, so that those that come again are."""
    n = MAX_KEPT_BYTES // (2 * MAX_TEXT) + 10
    labels = LateLabels(LabelSettings(type="string", wait=1_000_000))
    letters: list[Any] = []

    def come(i: int) -> None:
        id_, y = f"{i}".ljust(MAX_TEXT, "i"), f"{i}".ljust(MAX_TEXT, "y")
        labelled = Labelled(LateLabel(id=id_, y=y), message(2 * i, None))
        assert labels.join(labelled, letters) is None
        assert labels.observe(id_, None, letters) in (y, None)

    for i in range(n):
        come(i)
    for i in (n - 1, 0):  # the first is known no longer, and waits
        come(i)
    assert not letters
    assert labels.counts is not None
    assert (labels.counts.repeated, labels.counts.joined) == (1, n + 1)
