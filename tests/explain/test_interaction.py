"""Interactions: 0 where the output is a sum, else the variance that two features cause together."""

import random
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from fluxplain.evaluate import Label
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain.interaction import Interaction
from fluxplain.explain.losses import get_loss
from fluxplain.explain.method import Given
from fluxplain.explain.players import Features, Players
from tests.kit import support as kit
from tests.kit.answers import answers_of

Row = Mapping[str, Any]

LOSS = get_loss("squared_error")


def make(features: Features, asked: str | None = None, size: int = 50) -> Interaction:
    players, rng = Players(features), random.Random(1)
    given = Given(players, {}, asked or players.names, (), 0.001, lambda _: rng)
    return Interaction.configured(given, reservoir_size=size, warm_up=None)


def answers(model: Any, method: Interaction, rows: list[Row]) -> tuple[Floats, Floats]:
    """Return the increments and the partners, shape (observations, players)."""
    found, partners = [], []
    for _, labels, blocks, points in answers_of(model, method, rows):
        own = np.zeros((1, len(labels)))
        found.append(method.increments(LOSS, [], labels, own, np.asarray(blocks)))
        partners.append(np.asarray(points)[:, 0])
    return np.array(found), np.array(partners)


def signs(n: int, names: str) -> list[Row]:
    """Return rows of independent features that are 1 or -1."""
    rng = random.Random(3)
    return [{name: rng.choice((-1.0, 1.0)) for name in names} for _ in range(n)]


def by_partner(model: Any, method: Interaction, rows: list[Row]) -> Floats:
    """Return the mean increments by player and partner."""
    found, partners = answers(model, method, rows)
    places = np.arange(len(method.players))
    return np.array([np.where(partners == k, found, 0.0).mean(axis=0) for k in places]).T


@pytest.mark.parametrize("names", ["abcd", "abcde"])
def test_the_mean_is_the_variance_of_all_terms_with_both(names: str) -> None:
    """Products of signs are the terms of the functional ANOVA, each with variance 1."""
    model = kit.Scripted(lambda x: 3.0 * x["a"] * x["b"] + 2.0 * x["a"] * x["b"] * x["c"] - x["d"])
    expected = np.zeros((len(names), len(names)))
    for (j, k), variance in {(0, 1): 9.0 + 4.0, (0, 2): 4.0, (1, 2): 4.0}.items():
        expected[j, k] = expected[k, j] = variance
    found = by_partner(model, make(list(names)), signs(4000, names))
    assert found == pytest.approx(expected, rel=0.3, abs=1e-12)
    assert (found == found.T).all(), "both members of a pair have the same answers"


SUMS: dict[str, Callable[[Row], float]] = {
    "terms of one feature": lambda x: 0.1 * x["a"] ** 3 + 7.7 * abs(x["b"]) + 1e6 * x["c"],
    "steps": lambda x: float(x["a"] > 0.3) + 0.7 * float(x["d"] < x["d"] ** 2),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_has_no_interactions(name: str) -> None:
    rows: list[Row] = [dict(row) for row in kit.normal_rows(300, "abcd", 1)]
    found, _ = answers(kit.Scripted(SUMS[name]), make(list("abcd")), rows)
    assert (found == 0.0).all()


def test_classes_count_like_the_probability_of_one() -> None:
    def classes(x: Row) -> dict[Label, float]:
        p = 0.5 + 0.4 * x["a"] * x["b"]
        return {True: p, False: 1.0 - p}

    number = kit.Scripted(lambda x: 0.4 * x["a"] * x["b"])
    rows = signs(300, "ab")
    of_classes, _ = answers(kit.Scripted(classes), make(["a", "b"]), rows)
    of_number, _ = answers(number, make(["a", "b"]), rows)
    assert of_classes == pytest.approx(of_number)
    assert of_number.any()


@pytest.mark.parametrize("names", ["a", "ab", "abcde"])
def test_partners_are_mutual_and_all_have_their_turns(names: str) -> None:
    _, partners = answers(kit.Scripted(lambda _: 1.0), make(list(names), size=5), signs(300, names))
    own = np.arange(len(names))
    for each in partners.astype(int):
        assert (each[each] == own).all()
        assert (each == own).sum() == len(names) % 2
    for player in own:
        others = {*own} - {player} | ({player} if len(names) % 2 else set())
        assert {*partners[:, player].astype(int)} == others


def test_each_part_of_the_players_has_the_answers_of_all() -> None:
    model, rows = (
        kit.Scripted(lambda x: x["a"] * x["b"] * x["c"] - x["d"] * x["e"]),
        signs(200, "abcde"),
    )
    whole = answers(model, make(list("abcde")), rows)
    for asked in ("a", "bd", "ce", "abcde"):
        part = answers(model, make(list("abcde"), asked), rows)
        places = ["abcde".index(name) for name in asked]
        for some, of_all in zip(part, whole, strict=True):
            assert (some == of_all[:, places]).all()


def test_a_group_is_replaced_as_a_whole() -> None:
    inside = kit.Scripted(lambda x: x["a"] * x["b"] + x["c"])
    across = kit.Scripted(lambda x: x["a"] * x["c"])
    features: Features = [{"g": ["a", "b"]}, "c", "d"]
    rows = signs(1500, "abcd")
    assert not answers(inside, make(features), rows)[0].any()
    found = by_partner(across, make(features), rows)
    expected = np.zeros((3, 3))
    expected[0, 1] = expected[1, 0] = 1.0
    assert found == pytest.approx(expected, rel=0.25)


def test_all_signs_give_the_variance_exactly() -> None:
    """The identity behind the method, over all observations and replacements."""
    squares = [
        (a * b - za * b - a * zb + za * zb) ** 2 / 4.0
        for a, b, za, zb in product((-1.0, 1.0), repeat=4)
    ]
    assert np.mean(squares) == 1.0
