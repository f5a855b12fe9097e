"""A simulated network of pressure sensors, and what goes wrong with them."""

import numpy as np

from fluxplain.evaluate.encoding import Floats

SENSORS = 29
ZONES = 3
DAY = 24
MEMORY = 0.9
"""Correlation of a zone's random demand with that of the hour before."""

NOISE = 0.3

SIZE = 5.0
"""Of an offset or of noise, in standard deviations of the sensor's readings before the fault."""

FAULTS = ("offset", "noise", "dead", "drift", "stuck")
"""A constant is added, or random numbers; nothing is measured, 0; a growing number is added, twice
the offset at last; the last reading is repeated."""


def readings(rng: np.random.Generator, hours: int) -> Floats:
    """Return the pressures at all sensors, shape (hours, sensors).

    The demand of each zone has a daily cycle of its own and a random part, and lowers the pressure
    of all sensors, most of those in the zone.
    """
    demand = np.column_stack([_demand(rng, hours) for _ in range(ZONES)])
    zone = rng.integers(ZONES, size=SENSORS)
    effect = rng.uniform(0.1, 0.5, (SENSORS, ZONES))
    effect[np.arange(SENSORS), zone] += rng.uniform(0.4, 2.0, SENSORS)
    at_rest = rng.uniform(30.0, 60.0, SENSORS)
    return at_rest - demand @ effect.T + rng.normal(0.0, NOISE, (hours, SENSORS))


def _demand(rng: np.random.Generator, hours: int) -> Floats:
    phase = 2.0 * np.pi * np.arange(hours) / DAY + rng.uniform(0.0, 2.0 * np.pi)
    chance = rng.normal(0.0, np.sqrt(1.0 - MEMORY**2), hours)
    for hour in range(1, hours):
        chance[hour] += MEMORY * chance[hour - 1]
    demand: Floats = np.sin(phase) + 0.5 * np.sin(2.0 * phase) + 0.5 * chance
    return demand


def break_sensor(
    pressures: Floats, sensor: int, fault: str, hours: range, rng: np.random.Generator
) -> None:
    """Change what a sensor reads in some hours, in place; see :data:`FAULTS`."""
    size = SIZE * pressures[: hours.start, sensor].std()
    broken = pressures[hours.start : hours.stop, sensor]
    if fault == "offset":
        broken += size
    elif fault == "noise":
        broken += rng.normal(0.0, size, len(broken))
    elif fault == "dead":
        broken[:] = 0.0
    elif fault == "drift":
        broken += np.linspace(0.0, 2.0 * size, len(broken))
    else:
        broken[:] = pressures[hours.start - 1, sensor]
