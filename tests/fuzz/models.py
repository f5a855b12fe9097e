"""A cheap classifier that checks whatever it is given."""

import math
from collections.abc import Mapping
from typing import Any

from fluxplain.evaluate import Label
from fluxplain.schemas.numbers import MAX_NUMBER
from fluxplain.stages.limits import MAX_TEXT
from tests.kit.support import AGRAWAL_FEATURES

LABELS: dict[str, type] = {"boolean": bool, "integer": int, "string": str, "number": float}


class Watchful:
    """Says how often each class was there, a little more of the last one to the old.

    ``label`` is the configured type of the label, ``taught`` how often it was given one, and
    ``complaints`` what it was given and should not have been.
    """

    def __init__(self, label: str = "integer") -> None:
        self.label = label
        self.counts: dict[Label, int] = {}
        self.taught = 0
        self.complaints: list[str] = []

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Label, float]:
        self._check(x)
        total = sum(self.counts.values())
        shares = {label: count / total for label, count in self.counts.items()}
        if shares:
            shares[list(shares)[-1]] += 0.1 * math.tanh(x["age"] / 100) + 0.01 * (x["car"] == 3)
        return shares

    def learn_one(self, x: Mapping[str, Any], y: Any) -> None:
        self.taught += 1
        self._check(x)
        if type(y) is not LABELS[self.label] or (isinstance(y, str) and len(y) > MAX_TEXT):
            self.complaints.append(f"label {y!r}")
        self.counts[y] = self.counts.get(y, 0) + 1

    def _check(self, x: Mapping[str, Any]) -> None:
        if list(x) != list(AGRAWAL_FEATURES):
            self.complaints.append(f"features {list(x)}")
        for name, value in x.items():
            if AGRAWAL_FEATURES[name] == "numeric":
                fits = type(value) is float and abs(value) <= MAX_NUMBER
            else:
                fits = type(value) in (bool, int, str)
                fits = fits and not (isinstance(value, str) and len(value) > MAX_TEXT)
            if not fits:
                self.complaints.append(f"{name} {value!r}")


class WatchfulOfNumbers(Watchful):
    """Says the mean label."""

    def __init__(self) -> None:
        super().__init__("number")
        self.mean = 0.0

    predict_proba_one = None  # type: ignore[assignment]

    def predict_one(self, x: Mapping[str, Any]) -> float:
        self._check(x)
        return self.mean + math.tanh(x["age"] / 100)

    def learn_one(self, x: Mapping[str, Any], y: Any) -> None:
        super().learn_one(x, y)
        self.mean += 0.1 * (y - self.mean)
