"""Costs, as ratios of two things measured in the same run: ``make bench``."""
