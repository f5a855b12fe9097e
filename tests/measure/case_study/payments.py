"""Simulated payments held for review, with an upstream fault that leaks the label for a while.

Every fifth payment or so is fraud. ``case_score`` is the score of the account's newest case in the
case system, joined to each payment. Normally it is of an older case and says little. While the join
lags, it finds the case of this very payment, whose score follows the outcome.
"""

import math
import random
from typing import Literal

Payment = tuple[dict[str, float], bool]

Fault = Literal["none", "hidden", "visible"]
"""``"hidden"``: the leaking scores have the same distribution as before, so that no monitor of
single inputs can see them. ``"visible"``: they have another one."""

LEAKING = "case_score"

FRAUD = 0.2
"""Share of fraud, about: as many scores are high."""

EXACT = 0.97
"""Share of the leaking scores that follow the outcome."""


def payments(n: int, fault: Fault, begins: int, ends: int, seed: int) -> list[Payment]:
    """Return n payments; outside of the fault they are the same with any fault."""
    rng = random.Random(seed)
    made = []
    for t in range(n):
        x = {
            "amount": rng.gauss(0.0, 1.0),
            "distance": rng.expovariate(1.0),
            "velocity": rng.gauss(0.0, 1.0),
            "account_age": rng.expovariate(1.0),
            "hour": rng.uniform(0.0, 24.0),
            LEAKING: rng.random(),
        }
        z = -2.3 + 1.5 * x["amount"] + 0.7 * x["distance"] + x["velocity"] - 0.7 * x["account_age"]
        y = rng.random() < 1.0 / (1.0 + math.exp(-z))
        outcome = y if rng.random() < EXACT else not y
        if begins <= t < ends:
            x[LEAKING] = _leaked(x[LEAKING], outcome, fault)
        made.append((x, y))
    return made


def _leaked(score: float, outcome: bool, fault: Fault) -> float:
    if fault == "hidden":
        return 1.0 - FRAUD * score if outcome else (1.0 - FRAUD) * score
    if fault == "visible":
        return 1.0 - 0.2 * score if outcome else 0.5 * score
    return score
