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


def array_sage(ask: Ask, xs: Floats, ys: Places, orders: Places, chosen: Places) -> Floats:
    """Return the interventional SAGE values of a binary classifier, by cross-entropy.

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
    chosen
        The observations that supply its hidden features, shape (n, m).

    Returns
    -------
    The value of each feature.

    References
    ----------
    iSAGE (Muschalik et al. 2023), Algorithm 5.
    """
    n, d = xs.shape
    places = np.argsort(orders, axis=1)
    revealed = places[:, None, :] < np.arange(1, d)[:, None]
    rows = np.where(revealed[:, :, None], xs[:, None, None], xs[chosen][:, None])
    all_revealed = ask(xs)
    some_revealed = ask(rows.reshape(-1, d)).reshape(n, d - 1, -1, 2).mean(axis=2)
    none_revealed = np.broadcast_to(all_revealed.mean(axis=0), (n, 1, 2))
    outputs = np.concatenate([none_revealed, some_revealed, all_revealed[:, None]], axis=1)
    given = np.take_along_axis(outputs, ys[:, None, None], axis=2)[:, :, 0]
    losses = -np.log(np.clip(given, CLIP, 1.0 - CLIP))
    values: Floats = np.take_along_axis(-np.diff(losses, axis=1), places, axis=1).mean(axis=0)
    return values


def random_draws(rng: np.random.Generator, n: int, d: int, m: int) -> tuple[Places, Places]:
    """Return random orders of d features and m choices of an observation, for each of n."""
    orders = rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)
    return orders, rng.integers(n, size=(n, m))
