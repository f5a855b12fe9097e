"""Names the value of an observation that is behind an error of a model or of a storage."""

import math
import re
import reprlib

from fluxplain.evaluate import Encoding, Observation, as_observation

_TAKES_NUMBERS = re.compile("real number|convert string|unsupported operand|multiply sequence")
"""In errors of Python, NumPy and River about text in the place of a number."""


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
    >>> error_of_value(TypeError("must be real numbers"), {"city": "Graz"}, encoding)
    TypeError("the feature 'city' is 'Graz', but the model takes numbers: must be real numbers")
    """
    try:
        x = as_observation(x)
    except TypeError:  # it is the error itself
        return None
    for feature, value in x.items():
        had_numbers = encoding.had_numbers(feature)
        if reason := _reason(value, str(error), had_numbers=had_numbers):
            encoding.take_back(feature)
            if "the feature '" in str(error):
                return None
            of = TypeError if isinstance(error, TypeError) else ValueError
            return of(f"the feature {feature!r} is {reprlib.repr(value)}, {reason}: {error}")
    return None


def _reason(value: object, error: str, *, had_numbers: bool) -> str:
    if isinstance(value, str):
        if had_numbers:
            return "but was a number before"
        return "but the model takes numbers" if _TAKES_NUMBERS.search(error) else ""
    if not isinstance(value, bool | int | float):
        return "not a number, a boolean or text"
    is_finite = not isinstance(value, float) or math.isfinite(value)
    return "" if is_finite else "not a finite number"
