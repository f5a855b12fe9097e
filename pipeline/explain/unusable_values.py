"""Names the value of an observation that is behind an error of a model or of a storage."""

import math
import reprlib

from fluxplain.evaluate import Encoding, Observation, as_observation


def error_of_value(error: Exception, x: Observation, encoding: Encoding) -> Exception | None:
    """Return an error that names the unusual value of an observation; None if there is none.

    It is a ``TypeError`` if the other one is, else a ``ValueError``; None also if the other one
    names a feature. The feature does not stay categorical because of this value.

    Values are judged only after something has failed: some models take None, NaN, or text among
    numbers, and looking at each value of each observation would cost time.

    Examples
    --------
    >>> encoding = Encoding()
    >>> _ = encoding.observe({"age": 30.0})
    >>> error_of_value(TypeError("no real number"), {"age": "old"}, encoding)
    TypeError("the feature 'age' is 'old', but was a number before: no real number")
    """
    try:
        x = as_observation(x)
    except TypeError:  # it is the error itself
        return None
    for feature, value in x.items():
        if reason := _reason(value, had_numbers=encoding.had_numbers(feature)):
            encoding.take_back(feature)
            if "the feature '" in str(error):
                return None
            of = TypeError if isinstance(error, TypeError) else ValueError
            return of(f"the feature {feature!r} is {reprlib.repr(value)}, {reason}: {error}")
    return None


def _reason(value: object, *, had_numbers: bool) -> str:
    if isinstance(value, str):
        return "but was a number before" if had_numbers else ""
    if not isinstance(value, bool | int | float):
        return "not a number, a boolean or text"
    is_finite = not isinstance(value, float) or math.isfinite(value)
    return "" if is_finite else "not a finite number"
