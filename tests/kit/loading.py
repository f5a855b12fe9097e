"""The smallest settings, and how tests load them."""

from collections.abc import Callable

from fluxplain.config import Config

Load = Callable[[str], Config]


Refused = Callable[[str], str]


SECRET = "hush-7+/=,'ß"
"""With what has a meaning in SCRAM, in shells, and beyond ASCII."""


SMALLEST = {
    "features": 'features = {age = "numeric", city = "categorical"}',
    "model.factory": 'model.factory = "river.naive_bayes:GaussianNB"',
}
