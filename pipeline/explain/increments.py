"""What one observation adds to iPFI and iSAGE."""

from collections.abc import Sequence

from pipeline.evaluate import Output
from pipeline.evaluate.compiled import plain
from pipeline.explain import kernels
from pipeline.explain.losses import Loss, Target

_running_mean = plain(kernels.running_mean)


def pfi_increment(loss: Loss, y: Target, prediction: Output, outputs: Sequence[Output]) -> float:
    """Return λ_t: the mean loss on the replaced inputs minus the loss on the observation.

    References
    ----------
    iPFI, Algorithm 1, line 3, averaged over M draws.

    Examples
    --------
    >>> from pipeline.explain.losses import absolute_error
    >>> pfi_increment(absolute_error, 1.0, 1.5, [3.0, 2.0])
    1.0
    """
    return mean_loss(loss, y, outputs) - float(loss(y, prediction))


def mean_loss(loss: Loss, y: Target, outputs: Sequence[Output]) -> float:
    """Return the mean loss over the draws: the first term of λ_t."""
    # a user's loss may give numpy numbers or truth values, which are no JSON
    return _running_mean([float(loss(y, output)) for output in outputs])


def sage_increment(loss: Loss, y: Target, before: Output, after: Output) -> float:
    """Return Δ_t: how much the loss falls when the feature is revealed.

    References
    ----------
    iSAGE, Algorithm 1, line 16.

    Examples
    --------
    >>> from pipeline.explain.losses import squared_error
    >>> sage_increment(squared_error, 1.0, 3.0, 2.0)
    3.0
    """
    return float(loss(y, before)) - float(loss(y, after))
