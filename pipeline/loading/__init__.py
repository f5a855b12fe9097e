"""Loads code when it is needed: own modules lazily, the user's by import string."""
