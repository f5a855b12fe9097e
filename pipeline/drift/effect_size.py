"""The size of a change, compared with all that a model relies on."""

from fluxplain.schemas import Change


def effect_of(change: Change, others: float = 0.0) -> float | None:
    """Return the difference of the means as a share of the importance of all features.

    Parameters
    ----------
    others
        Sum of the absolute means of the other features.

    Returns
    -------
    effect
        From 0 to 2; None if nothing is known of before.
    """
    if change.before is None or change.after is None:
        return None
    all_of_them = others + max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) / all_of_them if all_of_them else 0.0
