"""Shapley values of a model's output on one observation, against stored observations.

Interventional Shapley values: the value of a set of players is the mean output on inputs in which
these have the observation's values, and the others those of a stored observation (Lundberg, Lee
2017, "A Unified Approach to Interpreting Model Predictions"; Janzing, Minorics, Blöbaum 2020,
"Feature relevance quantification in explainable AI: A causal problem").
"""

import math
import random
from typing import Literal, NamedTuple

import numpy as np

from fluxplain.evaluate import Evaluator, Inputs, Observed, Table
from fluxplain.evaluate.attribution import set_sizes, set_weights, shapley_values
from fluxplain.evaluate.encoding import Floats, Places, columns_of
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain.method import copies
from fluxplain.explain.players import Players
from fluxplain.explain.randoms import permuted
from fluxplain.explain.shapley_kernels import add_gains, put_chains, put_sets

Way = Literal["structure", "subsets", "permutations"]
"""How Shapley values were found: exactly from the model's structure or from all sets of players,
or estimated from some permutations."""

LEAST_PAIRS = 2
"""Pairs of permutations of each stored observation: their difference tells the error."""

LEAST_DRAWN = 4
"""Stored observations to draw, at least: with two and three, no error of a regression is known."""

LEAST_FREEDOM = 50
"""Differences of pairs from which an error is known well enough to end: fewer may all be 0."""

TINY = 1e-300
"""Smallest error that counts, where no player adds anything."""

TOLERANCE = 1e-9
"""Largest deviation from efficiency, as a share of the numbers that are added up."""


class Effort(NamedTuple):
    """When sampling ends.

    It goes on until no standard error is above ``error``, as a share of the largest contribution,
    but asks about at most ``most_inputs`` inputs.
    """

    error: float
    most_inputs: int


class Contributions(NamedTuple):
    """What each player adds to an output.

    Attributes
    ----------
    labels
        Labels of the output.
    output, base
        The output on the observation, and its mean over the stored ones, shape (labels,).
    values
        Shapley values, shape (players, labels). With the base they sum to the output.
    std_errors
        Their standard errors; 0 if they are exact.
    way
        How they were found.
    """

    labels: Labels
    output: Floats
    base: Floats
    values: Floats
    std_errors: Floats
    way: Way


class Game(NamedTuple):
    """An output that players share.

    ``stored`` are the background, shape (stored, features of the players), ``prediction`` the
    output on the observation.
    """

    evaluator: Evaluator
    observed: Observed
    prediction: Table
    stored: Floats
    players: Players

    @property
    def columns(self) -> Places:
        """The column of each feature of the players."""
        return columns_of(self.observed.features, self.players.features)

    def with_labels(self, labels: Labels) -> "Game":
        """Return the game with further labels, which only other outputs have."""
        known = tuple(dict.fromkeys((*self.prediction.labels, *labels)))
        return self._replace(prediction=Table(known, aligned(self.prediction, known)))

    @property
    def own(self) -> Floats:
        """The output on the observation, shape (labels,)."""
        own: Floats = self.prediction.numbers[0]
        return own

    def hidden(self) -> Floats:
        """Return the inputs in which all players have stored values."""
        rows = copies(self.observed, len(self.stored))
        rows[:, self.columns] = self.stored
        return rows

    def able(self) -> Places:
        """Return the players whose values differ from the observation's in any stored one."""
        return able_players(self.players, self.stored, self.observed.numbers[self.columns])

    def ask(self, rows: Floats) -> Floats:
        """Return the outputs on some inputs, with the labels of that on the observation."""
        table = self.evaluator(Inputs(self.observed, rows))
        return np.ascontiguousarray(aligned(table, self.prediction.labels))


def able_players(players: Players, stored: Floats, own: Floats) -> Places:
    """Return the players whose values differ from the observation's, ``own``, in any stored one."""
    differs = (stored != own).any(axis=0)
    return np.flatnonzero(np.logical_or.reduceat(differs, players.starts[:-1]))


def contributions(game: Game, effort: Effort, rng: random.Random) -> Contributions:
    """Return what each player adds to the output on the observation.

    Exact where the model's structure gives Shapley values, or few players make it cheap. Raises
    ``ValueError`` if a mean of the outputs is not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        found = _from_structure(game) or _from_outputs(game, effort, rng)
    if not (np.isfinite(found.values).all() and np.isfinite(found.base).all()):
        raise ValueError("the outputs are too large for a mean")
    return found


def _from_outputs(game: Game, effort: Effort, rng: random.Random) -> Contributions:
    able, table = game.able(), game.evaluator(Inputs(game.observed, game.hidden()))
    game = game.with_labels(table.labels)
    ends = np.ascontiguousarray(aligned(table, game.prediction.labels))
    of_pairs = LEAST_PAIRS * 2 * len(ends) * max(len(able) - 1, 0)
    is_fast = isinstance(game.evaluator, FastEvaluator)
    limit = min(effort.most_inputs, effort.most_inputs if is_fast else 2 * of_pairs)
    if len(able) < 2 or inputs_of_subsets(len(ends), len(able)) <= limit:
        return _from_subsets(game, able, ends)
    return _from_permutations(game, able, ends, effort, rng)


def inputs_of_subsets(stored: int, players: int) -> int:
    """Return the number of inputs about all sets of players but none and all."""
    return stored * ((1 << min(players, 62)) - 2)


def _from_structure(game: Game) -> Contributions | None:
    """Return exact values, if the evaluator knows them."""
    if not isinstance(game.evaluator, FastEvaluator):
        return None
    player_of = np.full(len(game.observed.features), -1)
    player_of[game.columns] = np.repeat(np.arange(len(game.players)), np.diff(game.players.starts))
    found = game.evaluator.attributed(Inputs(game.observed, game.hidden()), player_of)
    if found is None:
        return None
    game = game.with_labels(found.labels)
    labels = game.prediction.labels
    base = aligned(Table(found.labels, found.base[None]), labels)[0]
    values = np.zeros((len(game.players), len(labels)))
    given = aligned(Table(found.labels, found.contributions), labels)
    values[: len(given)] = given  # players behind the last one that takes part add nothing
    off = np.abs(base + values.sum(axis=0) - game.own)
    scale = np.abs(base) + np.abs(values).sum(axis=0) + np.abs(game.own)
    if not np.all(off <= TOLERANCE * scale):  # also false for what is not finite
        return None
    return Contributions(labels, game.own, base, values, np.zeros_like(values), "structure")


def _from_subsets(game: Game, able: Places, ends: Floats) -> Contributions:
    """Return exact values from the outputs about each set of the players that are able.

    ``ends`` are the outputs on the stored observations.
    """
    n, k, own = len(game.stored), len(able), game.own
    rows = copies(game.observed, max(inputs_of_subsets(n, k), 0))
    put_sets(rows, game.columns, game.stored, game.players.starts, able)
    numbers = np.concatenate((ends, game.ask(rows))) if len(rows) else ends
    means = numbers.reshape(-1, n, len(own)).mean(axis=1)
    sets = np.vstack((means, own[None])) if k else own[None]
    values = np.zeros((len(game.players), len(own)))
    for c in range(len(own)):
        outputs = np.ascontiguousarray(sets[:, c])
        values[able, c] = shapley_values(outputs, set_sizes(k), set_weights(k))
    labels = game.prediction.labels
    return Contributions(labels, own, sets[0], values, np.zeros_like(values), "subsets")


def _from_permutations(
    game: Game, able: Places, whole: Floats, effort: Effort, rng: random.Random
) -> Contributions:
    """Return estimates from permutations of the players, of each stored observation its own.

    A permutation and its reverse are a pair, whose mean is exact where at most two players
    interact. Each stored observation has as many pairs, so that their values add no error. If they
    are too many to be asked about, some are drawn, at least :data:`LEAST_DRAWN`. If as many inputs
    would be needed as for exact values, these are returned.

    ``whole`` are the outputs on the stored observations.
    """
    of_pair, total = 2 * (len(able) - 1), len(game.stored)
    most = (effort.most_inputs - total) // (LEAST_PAIRS * of_pair)
    n = min(total, max(most, LEAST_DRAWN))
    chosen = spread_over(whole[:, game.own.argmax()], n, rng)
    drawn, ends = game._replace(stored=np.ascontiguousarray(game.stored[chosen])), whole[chosen]
    sets, pairs, next_look = inputs_of_subsets(total, len(able)), list[Floats](), LEAST_PAIRS
    while True:
        pairs.append(_pair(drawn, able, ends, rng))
        asked = total + n * len(pairs) * of_pair
        is_last = asked + n * of_pair > effort.most_inputs
        if len(pairs) < LEAST_PAIRS or (len(pairs) < next_look and not is_last):
            continue
        values, errors = _estimated(np.stack(pairs), able, ends, whole)
        ratio = errors.max() / max(effort.error * np.abs(values).max(), TINY)
        is_known = n * (len(pairs) - 1) >= LEAST_FREEDOM
        if is_last or (ratio <= 1.0 and is_known):
            break
        if sets <= min(effort.most_inputs, asked * ratio * ratio):
            return _from_subsets(game, able, whole)
        next_look = len(pairs) + 1 + len(pairs) // 10
    labels, base = game.prediction.labels, whole.mean(axis=0)
    return Contributions(labels, game.own, base, values, errors, "permutations")


def spread_over(outputs: Floats, n: int, rng: random.Random) -> Places:
    """Return n places in the order of the outputs, at equal distances from a random one on."""
    total, begin = len(outputs), rng.random()
    if n == total:
        return np.arange(total)
    order = np.argsort(outputs, kind="stable")
    return order[((begin + np.arange(n)) * total / n).astype(np.intp)]


def _pair(game: Game, able: Places, ends: Floats, rng: random.Random) -> Floats:
    """Return gains by a permutation and its reverse, shape (stored, players, labels)."""
    n, k, own = len(game.stored), len(able), game.own
    orders = able[np.array([permuted(k, rng) for _ in range(n)], np.intp)]
    both = orders, np.ascontiguousarray(orders[:, ::-1])
    rows = copies(game.observed, 2 * n * (k - 1))
    for part, order in zip(np.split(rows, 2), both, strict=True):
        put_chains(part, game.columns, game.stored, game.players.starts, order)
    gains = np.zeros((n, len(game.players), len(own)))
    for numbers, order in zip(np.split(game.ask(rows), 2), both, strict=True):
        add_gains(own, ends, numbers, order, gains)
    return gains / 2.0


def _estimated(pairs: Floats, able: Places, ends: Floats, whole: Floats) -> tuple[Floats, Floats]:
    """Return the mean gains over all stored observations, and their standard errors.

    ``pairs`` has the shape (pairs, drawn, players, labels). ``ends`` are the outputs on the drawn
    observations, ``whole`` those on all of them. Where some are drawn, the gains are corrected by
    their regression on the outputs, so that they still sum to the output less its mean: two-stage
    sampling, systematic in the first stage, with a regression estimator (Cochran 1977, "Sampling
    Techniques", Sections 7.1, 8.11 and 10.3).
    """
    count, n = pairs.shape[:2]
    share = n / len(whole)
    means, within = pairs.mean(axis=0), pairs.var(axis=0, ddof=1).mean(axis=0) / (count * n)
    values = means.mean(axis=0)
    if share == 1.0:
        return values, _not_below(np.sqrt(within), able, count * n)
    off = ends - ends.mean(axis=0)
    spread = (off * off).sum(axis=0)
    slopes = np.zeros(values.shape)
    slopes[able] = -1.0 / len(able)  # where all outputs are the same
    is_spread = spread > 0.0
    slopes[:, is_spread] = np.einsum("npc,nc->pc", means, off)[:, is_spread] / spread[is_spread]
    values = values + slopes * (whole.mean(axis=0) - ends.mean(axis=0))
    rest = means - values - slopes * off[:, None, :]
    steps = np.diff(rest, axis=0)  # neighbours in the order of the outputs
    between = (steps * steps).sum(axis=0) / (2.0 * (n - 2) * n)
    errors = np.sqrt((1.0 - share) * between + share * within)
    return values, _not_below(errors, able, count * n)


def _not_below(errors: Floats, able: Places, draws: int) -> Floats:
    """Return errors of players that may change an output, none far below the largest.

    What a player does rarely, few draws may have missed.
    """
    errors[able] = np.maximum(errors[able], errors.max(axis=0) / math.sqrt(draws))
    return errors
