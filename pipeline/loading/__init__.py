"""Loads code on demand: own modules lazily, the user's by import string."""
