"""Simulated payments held for review, with an upstream fault that leaks the label for a while.

Every fifth payment or so is fraud. ``case_score`` is the score of the account's newest case in the
case system, joined to each payment. Normally it is of an older case and says nothing. While the
join lags, it finds the case of this very payment, whose score follows the outcome.
"""

import math
import random
from typing import Literal

Payment = tuple[dict[str, float], bool]

Fault = Literal["none", "migration", "hidden", "visible"]
"""``"hidden"``: the leaking scores have the same distribution as before, so that no monitor of
single inputs can see them. ``"visible"``: they have another one. ``"migration"``: as hidden, but
of ever more payments, and the amounts are those of other payments later."""

LEAKING = "case_score"

FRAUD = 0.2
"""Share of fraud, about: as many scores are high."""

EXACT = 0.97
"""Share of the leaking scores that follow the outcome, in the hidden and the visible fault."""

STRENGTH = 0.65
"""Share of the moved scores that leak, in the migration. With the seeds 1 to 8 it was chosen of
0.6, 0.65 and 0.7 as the one whose accuracy, in each 500 payments, is closest to the control's."""

MOVE = 0.625
"""Share of the migration in which the scores move, from its beginning, and the amounts, to its end.
A wrong amount costs accuracy at once, a leak is learned late: so amounts begin to move later."""


def payments(n: int, fault: Fault, begins: int, ends: int, seed: int) -> list[Payment]:
    """Return n payments; outside of the fault they are the same with any fault."""
    rng = random.Random(seed)
    made, amount_before = [], 0.0
    for t in range(n):
        x, y = _payment(rng)
        rank, chance = rng.random(), rng.random()
        amount = x["amount"]
        if begins <= t < ends and fault == "migration":
            progress = (t - begins) / (ends - begins)
            if rank < progress / MOVE and chance < STRENGTH:
                x[LEAKING] = _hidden(x[LEAKING], y)
            if rank < (progress - (1.0 - MOVE)) / MOVE:
                x["amount"] = amount_before
        elif begins <= t < ends:
            x[LEAKING] = _leaked(x[LEAKING], y == (chance < EXACT), fault)
        amount_before = amount
        made.append((x, y))
    return made


def _payment(rng: random.Random) -> Payment:
    x = {
        "amount": rng.gauss(0.0, 1.0),
        "distance": rng.expovariate(1.0),
        "velocity": rng.gauss(0.0, 1.0),
        "account_age": rng.expovariate(1.0),
        "hour": rng.uniform(0.0, 24.0),
        LEAKING: rng.random(),
    }
    z = -2.3 + 1.5 * x["amount"] + 0.7 * x["distance"] + x["velocity"] - 0.7 * x["account_age"]
    return x, rng.random() < 1.0 / (1.0 + math.exp(-z))


def _leaked(score: float, outcome: bool, fault: Fault) -> float:
    if fault == "hidden":
        return _hidden(score, outcome)
    if fault == "visible":
        return 1.0 - 0.2 * score if outcome else 0.5 * score
    return score


def _hidden(score: float, outcome: bool) -> float:
    """Return a score that follows the outcome; such scores are as evenly spread as the others."""
    return 1.0 - FRAUD * score if outcome else (1.0 - FRAUD) * score
