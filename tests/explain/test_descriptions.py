"""What explainers show of themselves, as text and in a notebook."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from river import linear_model, preprocessing

from fluxplain.explain import IncrementalPairPDP, IncrementalReasons
from tests.explain.kinds import KINDS, NUMBERS, Kind, Known, explain, known, make, stream
from tests.kit.support import Linear

OTHERS = [Kind(IncrementalPairPDP), Kind(IncrementalReasons)]


def made(kind: Kind, model: object, features: list[str]) -> Any:
    """Return an explainer; of pairs, one of the first two features."""
    if kind.of is IncrementalPairPDP:
        return IncrementalPairPDP(model, [(features[0], features[1])], storage_size=5, seed=1)
    if kind.of is IncrementalReasons:
        return IncrementalReasons(model, features, reservoir_size=5, seed=1)
    return make(kind, model, features)


def explained(explainer: Any, n: int) -> Any:
    """Return the explainer after n observations."""
    takes_label = hasattr(explainer, "loss")
    for x, y in stream(n):
        explainer.explain_one(x, y) if takes_label else explainer.explain_one(x)
    return explainer


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS], ids=str)
def test_the_text_names_what_is_explained_and_the_largest_importances(kind: Kind) -> None:
    explainer = made(kind, Known(), ["a", "b", "c"])
    assert "no observation explained yet" in repr(explainer)
    text = repr(explained(explainer, 105))
    assert text.startswith(f"<{kind.of.__name__} of Known: ")
    assert "alpha 0.001" in text
    assert ("loss squared_error" in text) == hasattr(explainer, "loss")
    # the first five only fill the reservoir, or the grid of the windows of 8
    assert re.search(r"\b(10[01]|9[789]) observations explained", text)
    largest = sorted(explainer.values.items(), key=lambda item: -abs(item[1]))[:3]
    places = [text.index(f"{name} {value:.3g}") for name, value in largest]
    assert places == sorted(places)
    assert text.count("\n") == 1


def test_the_text_lists_few_names_and_counts_all() -> None:
    names = [f"feature {i}" for i in range(30)]
    text = repr(make(KINDS[0], Linear({}), names))
    assert "feature 4, … (30 in all)" in text
    assert "feature 5" not in text


def test_a_standard_error_is_shown_once_it_is_known() -> None:
    explainer = make(KINDS[0], Known())
    assert "±" not in repr(explained(explainer, 7))
    explained(explainer, 300)
    assert f"± {explainer.std_errors['a']:.2g}" in repr(explainer)
    assert f"± {explainer.std_errors['a']:.2g}" in explainer._repr_html_()


def test_the_name_of_a_pipeline_and_of_a_loss_of_ones_own_is_shown() -> None:
    def surprise(y: Any, output: Any) -> float:
        return abs(float(output) - float(y))

    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    text = repr(make(KINDS[0], model, ["a"], loss=surprise, alpha=[0.5, 0.25]))
    assert "of StandardScaler | LinearRegression: a; loss surprise, alpha 0.5 and 0.25;" in text


class Cells(HTMLParser):
    """The texts and tags of a table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_notebook_gets_a_table_whose_names_are_text_only() -> None:
    evil, long = "<script>alert(1)</script>&", "x" * 200
    explainer = make(KINDS[0], Linear({evil: 2.0, long: 1.0}), [evil, long], size=2)
    for t in range(5):
        explain(explainer, {evil: float(t), long: float(t % 2)}, 0.0)
    found = Cells(explainer._repr_html_())
    assert evil in found.texts
    assert "script" not in found.tags
    assert f"{explainer.values[evil]:.3g}" in found.texts
    assert max(map(len, found.texts)) < 100


def test_a_table_has_the_largest_rows_and_the_number_of_all() -> None:
    names = [f"f{i}" for i in range(40)]
    explainer = make(KINDS[0], Linear({name: float(i) for i, name in enumerate(names)}), names)
    for t in range(20):
        explain(explainer, {name: float((t * t) % 7) for name in names}, 0.0)
    found = Cells(explainer._repr_html_())
    assert [text for text in found.texts if text in names] == sorted(
        names, key=lambda name: -abs(explainer.values[name])
    )[:15]
    assert "the largest 15 of 40" in " ".join(found.texts)


def test_showing_an_explainer_changes_nothing() -> None:
    shown, other = (explained(make(KINDS[0], Known()), 20) for _ in range(2))
    repr(shown)
    shown._repr_html_()
    for each in (shown, other):
        explain(each, {"a": 1.0, "b": 2.0, "c": "u"}, known({"a": 1.0, "b": 2.0, "c": "u"}))
    assert [getattr(shown, n) for n in NUMBERS] == [getattr(other, n) for n in NUMBERS]
