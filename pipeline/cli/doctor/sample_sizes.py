"""How many observations a measurement takes; without imports, for the command's help."""

WARM_RECORDS = 300
"""Observations to warm up, at least: reservoirs are full, and every role publishes."""

LEAST_RECORDS = 100
"""Fewest observations in each of two measurements; a slow model may exceed the seconds."""

LEAST_MEASURED = WARM_RECORDS + 2 * LEAST_RECORDS
"""Fewest observations that a file must have."""
