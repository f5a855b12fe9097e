"""Measures how often the true value lies within two standard errors of an estimate."""
