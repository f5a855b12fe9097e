"""Reads published records back in bounded memory, for terminal, dashboard and figures."""
