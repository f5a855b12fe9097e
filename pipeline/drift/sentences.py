"""A change in one sentence, for people."""

import math
from dataclasses import replace

from fluxplain.schemas import Change
from fluxplain.schemas.change_wording import like, named, outliers, percent, where, which, why
from fluxplain.schemas.methods import METHODS
from fluxplain.schemas.wording import STATUS, distinct_texts, moved, plural, subject, written

ADAPTED = "the model has adapted, or the cause has passed; explanations may have changed for good"
"""What a loss that fell again means: not that all is as before."""

MOST_NAMED = 2
"""Most observations that a sentence names."""


def sentence(change: Change) -> str:
    """Return what changed, by how much, and when, as far as it is known.

    Examples
    --------
    >>> change = Change(
    ...     id="5f0c88a3e1b2",
    ...     stream="features-0",
    ...     kind="drift",
    ...     seq=18204,
    ...     previous_seq=None,
    ...     ts=None,
    ...     feature="price",
    ...     method="ipfi",
    ...     detail="",
    ...     before=0.01234,
    ...     before_std_error=0.0004,
    ...     after=0.0456,
    ...     after_std_error=0.0051,
    ...     after_seq=18050,
    ...     delay_bound=312,
    ...     effect_size=0.214,
    ...     rank_before=5,
    ...     rank_after=1,
    ...     ranked=8,
    ...     loss_before=0.21,
    ...     loss_after=0.2,
    ... )
    >>> print(sentence(change))
    iPFI of price rose from 0.01234 ± 0.00040 to 0.0456 ± 0.0051 (rank 5 to 1 of 8), by 21 % of \
all importance; it began about 154 observations earlier (at most 312); the loss fell from 0.21 to \
0.2
    """
    if change.after is None:
        return change.detail
    text = _what(change)
    if change.rank_after is not None and change.is_step:
        text += f" ({_ranks(change)} of {change.ranked})"
    is_reversed = change.signal == "trend" and (change.effect_size or 0.0) > 1.0
    is_of_all = change.method in METHODS and change.is_step and not is_reversed
    if change.effect_size is not None and is_of_all:
        text += f", by {_share(change.effect_size)}"
    if change.learning:
        text += "; the model is still learning"
    if change.lasted is not None:
        text += f"; it lasted about {plural(change.lasted, 'observation')}"
        text += f"; {ADAPTED}" if _fell_again(change) else ""
    elif change.after_seq is not None:
        text += f"; it began about {change.seq - change.after_seq:,} observations earlier"
        text += f" (at most {change.delay_bound:,})" if change.delay_bound is not None else ""
    loss_before, loss_after = change.loss_before, change.loss_after
    if not change.is_of_loss and loss_before is not None and loss_after is not None:
        text += f"; the loss {moved((loss_before, None), (loss_after, None), written)}"
    if change.cause is not None and change.cause.kind != "unclear":
        text += f"; {why(change.cause)}"
    if change.region is not None:
        text += f"; where {where(change.region)}"
    if change.returns_to is not None:
        text += f"; the features have the same shares {like(change.returns_to)}"
    for each in outliers(change.evidence)[:MOST_NAMED]:
        text += f"; {named(each)} had {which(replace(each, increment=None))}"
    return text


def _share(effect: float) -> str:
    """Return an effect in words; with a change of the sign it exceeds all importance."""
    if effect > 1.0:
        return "more than the importance of all features together"
    return f"{percent(effect)} of all importance"


def _what(change: Change) -> str:
    """Return what changed, from which level to which."""
    what, after = subject(change), (change.after or 0.0, change.after_std_error)
    if change.before is None:
        return f"{what} changed to {_measured(*after)}"
    before = (change.before, change.before_std_error)
    if not change.is_step:
        ending = "was undone" if change.status == "reverted" else "did not last"
        texts = distinct_texts(before, after, _measured)
        about = (
            f"{what} has fallen again" if _fell_again(change) else f"the change of {what} {ending}"
        )
        when = "then" if change.status == "reverted" else "on average since"
        return f"{about}: {texts[0]} before, {texts[1]} {when}"
    seems, is_trend = change.status in {"noticed", "unclear"}, change.signal == "trend"
    text = f"{what} {moved(before, after, _measured, seems=seems and not is_trend)}"
    if is_trend:
        reversed_ = "seems to have reversed" if seems else "has reversed"
        text = f"the effect of {change.feature} {reversed_}: {text}"
    return text if change.status in {None, "noticed"} else f"{STATUS[change.status]}: {text}"


def _fell_again(change: Change) -> bool:
    """Return whether the loss, or the share of wrong predictions, rose only for a time."""
    return change.method == "loss" and change.direction == "rose" and not change.is_step


def _ranks(change: Change) -> str:
    if change.rank_before in {None, change.rank_after}:
        return f"rank {change.rank_after}"
    return f"rank {change.rank_before} to {change.rank_after}"


def _measured(value: float, std_error: float | None, more: int = 0) -> str:
    """Return a mean with the decimals of its standard error, which has two significant digits.

    Records of others may have a negative one, which is left out.
    """
    if std_error is None or std_error <= 0.0:
        return f"{value:.{4 + more}g}"
    decimals = 1 - math.floor(math.log10(std_error))
    if more or not 0 <= decimals <= 12:
        return f"{value:.{3 + more}g} ± {std_error:.2g}"
    return f"{value:z.{decimals}f} ± {std_error:.{decimals}f}"  # z: no minus before zero
