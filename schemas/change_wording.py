"""Wording of what is behind a change: why it came, where it is, and which observations show it."""

import math
from collections.abc import Sequence

from fluxplain.schemas.change import Cause, Condition, Evidence, Period, Region
from fluxplain.schemas.record import Value

OPERATORS = {"<=": "≤", ">": ">", "==": "=", "!=": "≠"}


def where(region: Region) -> str:
    """Return where a change is.

    Examples
    --------
    >>> conditions = [Condition("salary", ">", 75000.0), Condition("city", "==", "Graz")]
    >>> where(Region(conditions, coverage=0.22, share=0.8))
    'salary > 75,000 and city = Graz: 22 % of the observations, 80 % of the change'
    >>> where(Region([Condition("ts", "<=", 1700000802.9)], coverage=0.2, share=0.5))
    'ts ≤ 1,700,000,802.9: 20 % of the observations, 50 % of the change'
    """
    shares = (
        f"{percent(region.coverage)} of the observations, {percent(region.share)} of the change"
    )
    return f"{' and '.join(map(_condition, region.conditions))}: {shares}"


def why(cause: Cause) -> str:
    """Return why an explanation changed.

    Examples
    --------
    >>> why(Cause("model", 0.1, 0.02, 0.4, 0.05, 0.0, 0.01))
    'because the model changed (80 %)'
    >>> why(Cause("both", 0.2, 0.02, 0.2, 0.02, 0.02, 0.01))
    'because both the model (50 %) and the data changed'
    >>> why(Cause("labels", 0.0, 0.1, 0.0, 0.0, 0.0, 0.0))
    'because the labels fit the outputs differently'
    """
    if cause.kind == "unclear":
        return "for reasons that are not clear"
    if cause.kind == "labels":
        return "because the labels fit the outputs differently"
    data, model = (part + cause.interaction / 2.0 for part in (cause.data, cause.model))
    if cause.kind == "both":
        return f"because both the model{_of(model, data)} and the data changed"
    part, other = (data, model) if cause.kind == "data" else (model, data)
    return f"because the {cause.kind} changed{_of(part, other)}"


def _of(part: float, other: float) -> str:
    """Return which share a part is of both; nothing if they have opposite directions."""
    both = part + other
    is_share = 0.0 < abs(both) < math.inf and 0.0 <= part / both <= 1.0
    return f" ({percent(part / both)})" if is_share else ""


def like(period: Period) -> str:
    """Return the period to which a stream has returned.

    Examples
    --------
    >>> like(Period(12_000, 18_000))
    'as between seq 12,000 and 18,000'
    """
    return f"as between seq {period.begin:,} and {period.end:,}"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100.0 * share:.0f} %"


def _condition(condition: Condition) -> str:
    value = condition.value
    # all digits: with fewer it could be another condition
    text = f"{value:,}".removesuffix(".0") if isinstance(value, float) else str(value)
    return f"{condition.feature} {OPERATORS[condition.op]} {text}"


def _value(value: Value) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def which(evidence: Evidence) -> str:
    """Return what an observation shows.

    Examples
    --------
    >>> which(Evidence(7, feature="pressure", value=5503.8, low=978.2, high=1037.0))
    'pressure = 5503.8, before 978.2 to 1,037'
    >>> which(Evidence(7, increment=0.31234, feature="city", value="Gratz"))
    'increment 0.312; city = Gratz, never seen before'
    """
    parts = [] if evidence.increment is None else [f"increment {evidence.increment:.3g}"]
    if evidence.feature is not None and evidence.value is not None:
        said = f"{evidence.feature} = {_value(evidence.value)}"
        if evidence.low is None or evidence.high is None:
            parts.append(f"{said}, never seen before")
        else:
            parts.append(f"{said}, before {_value(evidence.low)} to {_value(evidence.high)}")
    return "; ".join(parts)


def named(evidence: Evidence) -> str:
    """Return the name of an observation: its seq, and its id if it is known."""
    id_ = "" if evidence.id is None else f" (id {evidence.id})"
    return f"observation {evidence.seq:,}{id_}"


def outliers(evidence: Sequence[Evidence] | None) -> list[Evidence]:
    """Return the observations with a value outside of all before."""
    return [each for each in evidence or () if each.feature is not None]
