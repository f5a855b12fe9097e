"""Measuring programs: benchmarks, experiments, chaos, soak, recovery, hostile input."""
