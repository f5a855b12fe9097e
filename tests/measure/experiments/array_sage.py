"""SAGE of a whole batch from one call of the model: what ``batch_sage`` gives, for less."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

Ask = Callable[[Floats], Floats]
"""Inputs, shape (rows, features) → probabilities of the classes 0 and 1, shape (rows, 2)."""

CLIP = 1e-15
"""As the library's cross-entropy."""


def array_sage(ask: Ask, xs: Floats, ys: Places, orders: Places, hidden: Floats) -> Floats:
    """Return what each observation adds to the SAGE values of a binary classifier.

    The loss is the cross-entropy.

    Parameters
    ----------
    ask
        The model.
    xs
        The observations, shape (n, features).
    ys
        Their labels, 0 or 1, shape (n,).
    orders
        For each observation the features in the order in which they are revealed, shape
        (n, features).
    hidden
        What stands in place of hidden features: m inputs for each observation and number of
        revealed features from 1 on, shape (n, features - 1, m, features), or such that broadcasts
        to it.

    Returns
    -------
    Increments, shape (n, features); their means are the values.

    References
    ----------
    iSAGE (Muschalik et al. 2023), Algorithm 5.
    """
    n, d = xs.shape
    rows = np.where(revealed(orders)[:, :, None], xs[:, None, None], hidden)
    all_revealed = ask(xs)
    some_revealed = ask(rows.reshape(-1, d)).reshape(n, d - 1, -1, 2).mean(axis=2)
    none_revealed = np.broadcast_to(all_revealed.mean(axis=0), (n, 1, 2))
    outputs = np.concatenate([none_revealed, some_revealed, all_revealed[:, None]], axis=1)
    given = np.take_along_axis(outputs, ys[:, None, None], axis=2)[:, :, 0]
    losses = -np.log(np.clip(given, CLIP, 1.0 - CLIP))
    increments: Floats = np.take_along_axis(-np.diff(losses, axis=1), _places(orders), axis=1)
    return increments


def revealed(orders: Places) -> NDArray[np.bool_]:
    """Return for 1, 2, … revealed features which ones, shape (n, features - 1, features)."""
    steps = np.arange(1, orders.shape[1])
    known: NDArray[np.bool_] = _places(orders)[:, None, :] < steps[:, None]
    return known


def _places(orders: Places) -> Places:
    return np.argsort(orders, axis=1)


def interventional(xs: Floats, chosen: Places) -> Floats:
    """Return whole observations in place of hidden features, the same along the order.

    Parameters
    ----------
    xs
        The observations, shape (n, features).
    chosen
        Which m of them for each observation, shape (n, m).
    """
    return xs[chosen][:, None]


def random_draws(rng: np.random.Generator, n: int, d: int, m: int) -> tuple[Places, Places]:
    """Return random orders of d features and m choices of an observation, for each of n."""
    orders = rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)
    return orders, rng.integers(n, size=(n, m))
