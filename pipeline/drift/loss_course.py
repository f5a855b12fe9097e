"""Whether a model is still learning, by the course of its loss since its start."""

import math

TOGETHER = 32
"""Losses that are taken together: such means hardly depend on each other."""

POWERS = (0, 2, 8)
"""A mean with power p weighs the n-th loss like n^p: with larger powers, it is about later ones."""

STEADY = 2.0
"""Standard errors between two means: with less, the loss has not fallen."""

LEAST = 8
"""Smallest count of losses taken together."""


class LossCourse:
    """Polynomial averages of the losses since a model's start, in constant memory.

    References
    ----------
    Shamir, Zhang (2013), "Stochastic Gradient Descent for Non-smooth Optimization", Section 3.

    Examples
    --------
    >>> def is_falling(losses):
    ...     course = LossCourse()
    ...     for loss in losses:
    ...         course.add(loss)
    ...     return course.is_falling
    >>> falls = [0.1 + 1 / (1 + t / 50) + 0.1 * (t % 2) for t in range(1600)]
    >>> is_falling(falls), is_falling([1.0, 0.8] * 800), is_falling(falls + [0.1, 0.2] * 4000)
    (True, False, False)
    """

    def __init__(self) -> None:
        self._model: str | None = None
        self._restart()

    def _restart(self) -> None:
        self._losses: list[float] = []
        self._n = 0
        self._means = [0.0 for _ in POWERS]
        self._older, self._last, self._squares = 0.0, 0.0, 0.0

    def add(self, loss: float | None, model: str | None = None, *, times: int = 1) -> None:
        """Take the next loss, of a version of the model; another version begins anew.

        It is that of so many observations.
        """
        if model != self._model:
            self._model = model
            self._restart()
        if loss is None:
            return
        for _ in range(times):
            self._losses.append(loss)
            if len(self._losses) == TOGETHER:
                self._take(sum(self._losses) / TOGETHER)
                self._losses.clear()

    def _take(self, loss: float) -> None:
        self._n += 1
        for i, power in enumerate(POWERS):
            self._means[i] += (power + 1) / (self._n + power) * (loss - self._means[i])
        # a sixth of the squared second differences: the variance, also while the loss falls
        if self._n > 2:
            bend = loss - 2 * self._last + self._older
            self._squares += bend * bend / 6
        self._older, self._last = self._last, loss

    @property
    def is_falling(self) -> bool:
        """Whether the loss has fallen all the time, as far as one can tell from these means."""
        if self._n < LEAST:
            return False
        variance = self._squares / (self._n - 2) / self._n
        pairs = zip(POWERS, POWERS[1:], self._means, self._means[1:], strict=False)
        return all(
            early - late > STEADY * math.sqrt(_spread(p, q) * variance)
            for p, q, early, late in pairs
        )


def _spread(p: int, q: int) -> float:
    """Return the variance of the difference of two means, as a multiple of that of a plain mean."""
    own = (p + 1) * (p + 1) / (2 * p + 1) + (q + 1) * (q + 1) / (2 * q + 1)
    return own - 2 * (p + 1) * (q + 1) / (p + q + 1)
